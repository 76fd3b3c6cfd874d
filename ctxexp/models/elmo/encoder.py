"""ELMo's network, and ELMo as an `Encoder`: sentences in, three layers of word vectors out, with states reset or
carried. The network is a character CNN, highway, projection and two stacks of projected LSTMs (Peters et al. 2018).

Both directions run side by side: everything that belongs to the stacks carries a leading axis of 2 (0 forward, 1
backward, the latter in reversed time), so that a step of the two is one batched product. Time comes before the
sentence: (2, n_steps, n_sentences, width). (torch's projected LSTM has neither the cell's clip nor the projection's.)

One step of the recurrence (TensorFlow's LSTMCell, with the forget bias already in `bias`):
    i, j, f, o = [x, m] weight + bias
    c = clip(sigmoid(f) c + sigmoid(i) tanh(j))
    m = clip((sigmoid(o) tanh(c)) project)
It has no gradient: ctxexp-lab has that (`ctxexp_lab.training.elmo_lm`).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ctxexp.dataset import Sentence
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder
from ctxexp.models.elmo.files import ElmoOptions, read_weights, write_options, write_weights
from ctxexp.models.options import Dtype, layer_selection, resolve_device

BEGIN, END = "<S>", "</S>"  # the words that stand for the sentence markers, as in the original
_MARKERS = {BEGIN: 256, END: 257}
_WORD_BEGIN, _WORD_END, _PADDING = 258, 259, 260
State = list[tuple[Tensor, Tensor]]
"""Per layer the cells (2, n_sentences, cells) and the projected outputs (2, n_sentences, projection)."""
Weights = tuple[Tensor, Tensor, Tensor]  # of the four gates, their bias, the projection
CellState = tuple[Tensor, Tensor]  # cells and outputs, to start from
MOST_WORDS = 50_000  # token vectors kept from call to call
AT_ONCE = 8192  # words of one pass, sentence markers included, where the caller gives more
BLOCK = 4096  # about the sentences whose unique words are embedded together


def scan(
    x: Tensor, weights: Weights, start: CellState, sizes: Sequence[int], clips: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (2, n_steps, n, projection), last cells (2, n, cells) and last outputs (2, n, projection).

    x (2, n_steps, n, width); weight (2, width + projection, 4 cells), bias (2, 4 cells) and project (2, cells,
    projection); cells and outputs to start from. Step t touches the first `sizes[t]` sentences; outputs of the others
    are 0 and their states stay. `clips` bound cells and outputs.
    """
    weight, bias, project = weights
    _, _, n, width = x.shape
    n_cells, n_out = project.shape[1:]
    c, m = start[0].clone(), start[1]
    inputs = torch.cat([x.new_zeros(2, n, width), m.to(x.dtype)], dim=2)  # [x, m] of the current step
    outputs = x.new_zeros(*x.shape[:3], n_out)
    room = x.new_empty(2, n, 4 * n_cells)
    hidden = x.new_empty(2, n, n_cells)
    bias = bias.unsqueeze(1)
    for t, k in enumerate(sizes):
        now, ck, hk = inputs[:, :k], c[:, :k], hidden[:, :k]
        now[..., :width] = x[:, t, :k]
        g = room[:, :k]
        torch.baddbmm(bias, now, weight, out=g)
        i, j, f_o = g[..., :n_cells].sigmoid_(), g[..., n_cells : 2 * n_cells].tanh_(), g[..., 2 * n_cells :].sigmoid_()
        ck.mul_(f_o[..., :n_cells]).addcmul_(i, j).clamp_(-clips[0], clips[0])
        torch.tanh(ck, out=hk).mul_(f_o[..., n_cells:])
        mk = torch.bmm(hk, project).clamp_(-clips[1], clips[1])
        now[..., width:] = mk
        outputs[:, t, :k] = mk
    return outputs, c, inputs[..., width:]


def character_ids(words: Sequence[str], width: int = 50) -> np.ndarray:
    """Character ids (len(words), width), int64, 1 to 261: UTF-8 bytes between word markers, padded.

    Bytes beyond `width - 2` are cut, as in the original; an empty word is its two markers; `BEGIN` and `END` are the
    sentence markers. Id 0, which no word gets here, is the original's mask and reads a zero vector.
    """
    ids = np.full((len(words), width), _PADDING, dtype=np.int64)
    for row, word in zip(ids, words, strict=True):
        inner = [_MARKERS[word]] if word in _MARKERS else list(word.encode("utf-8", "ignore")[: width - 2])
        row[: len(inner) + 2] = [_WORD_BEGIN, *inner, _WORD_END]
    return ids + 1


class Highway(nn.Module):
    """x (n, width) -> (n, width): g relu(x W_transform) + (1 - g) x with g = sigmoid(x W_carry).

    The original's name `carry` is kept though its gate weights the transformed branch; it starts at bias -2, that is
    near the identity. The two products are one: columns carry, then transform.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 2 * width))
        self.bias = nn.Parameter(torch.empty(2 * width))

    def reset(self, generator: torch.Generator) -> None:
        width = len(self.weight)
        nn.init.normal_(self.weight, 0.0, 1 / math.sqrt(width), generator=generator)
        nn.init.constant_(self.bias[:width], -2.0)
        nn.init.zeros_(self.bias[width:])

    def forward(self, x: Tensor) -> Tensor:
        carry, transform = torch.addmm(self.bias, x, self.weight).chunk(2, dim=-1)
        gate = torch.sigmoid(carry)
        return x + gate * (functional.relu(transform) - x)


class TokenLayer(nn.Module):
    """Character ids (n, 50) -> context-independent word vectors (n, projection)."""

    buckets = 4  # words are convolved in as many groups by length: short ones need few positions

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        self.options = options
        self.characters = nn.Parameter(torch.empty(options.n_characters - 1, options.character_dim))
        self.filters = nn.ParameterList(torch.empty(n, options.character_dim, w) for w, n in options.filters)
        self.biases = nn.ParameterList(torch.empty(n) for _, n in options.filters)
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        self.projection: nn.Linear | None = None
        if options.has_projection:
            self.projection = nn.Linear(options.n_filters, options.projection)

    def reset(self, generator: torch.Generator) -> None:
        nn.init.uniform_(self.characters, -1.0, 1.0, generator=generator)
        for (width, _), weight, bias in zip(self.options.filters, self.filters, self.biases, strict=True):
            if self.options.activation == "relu":
                nn.init.uniform_(weight, -0.05, 0.05, generator=generator)
            else:
                nn.init.normal_(weight, 0.0, 1 / math.sqrt(width * self.options.character_dim), generator=generator)
            nn.init.zeros_(bias)
        for highway in self.highways:
            highway.reset(generator)  # type: ignore[operator]  # a ModuleList doesn't know its items' type
        if self.projection is not None:
            nn.init.normal_(self.projection.weight, 0.0, 1 / math.sqrt(self.options.n_filters), generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        lengths = (ids != _PADDING + 1).sum(1)
        if len(ids) < 8 * self.buckets:
            x = self._convolve(ids, lengths)
        else:
            order = lengths.argsort(stable=True)  # of equally long ones any sort may be another on another processor
            parts = [self._convolve(ids[rows], lengths[rows]) for rows in order.tensor_split(self.buckets)]
            x = torch.cat(parts)[order.argsort()]
        for highway in self.highways:
            x = highway(x)
        return x if self.projection is None else self.projection(x)

    def _convolve(self, ids: Tensor, used: Tensor) -> Tensor:
        """Filter responses (n, n_filters), the largest over positions.

        Positions past the longest word see padding only and all answer the same: one of them is enough.
        """
        longest = int(used.max()) if len(used) else 0
        ids = ids[:, : longest + self.options.widest]
        table = functional.pad(self.characters, (0, 0, 1, 0))  # id 0, the mask, is a zero vector
        x = functional.embedding(ids, table).transpose(1, 2)  # (n, character_dim, positions)
        bias = torch.cat(list(self.biases))
        peaks = torch.cat([functional.conv1d(x, weight).amax(2) for weight in self.filters], dim=1) + bias
        return functional.relu(peaks) if self.options.activation == "relu" else torch.tanh(peaks)


class LstmLayer(nn.Module):
    """One layer of both directions' projected LSTMs: x (2, n_steps, n_sentences, projection) -> the same shape.

    Gates in the file's order i, j, f, o. The forget bias 1 is added here, not stored, as in the original. `scan` may be
    replaced by one that has a gradient.
    """

    scan = staticmethod(scan)

    def __init__(self, options: ElmoOptions) -> None:
        super().__init__()
        self.clips = options.cell_clip, options.projection_clip
        width, cells = options.projection, options.cells
        self.weight = nn.Parameter(torch.empty(2, 2 * width, 4 * cells))  # rows: input, then recurrent
        self.bias = nn.Parameter(torch.empty(2, 4 * cells))
        self.project = nn.Parameter(torch.empty(2, cells, width))

    def reset(self, generator: torch.Generator) -> None:
        for weight in (self.weight, self.project):
            bound = math.sqrt(6 / (weight.shape[1] + weight.shape[2]))  # Glorot, TensorFlow's default
            nn.init.uniform_(weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, sizes: Sequence[int], c: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs and the last cells and outputs of each sentence; `sizes[t]` sentences are longer than t."""
        cells = self.project.shape[1]
        forget = functional.pad(self.bias.new_ones(cells), (2 * cells, cells))
        return self.scan(x, (self.weight, self.bias + forget, self.project), (c, m), sizes, self.clips)


class ElmoNetwork(nn.Module):
    """The bidirectional language model up to its softmax.

    `options` is the content of an `options.json`, or its parsed form. Weights are drawn from `generator` (seed 0 if
    none) as the original drew them. `BEGIN` and `END` are the words that mark a sentence's ends, `character_ids(words)`
    what the network reads of words. `scan` is the recurrence of a layer, without gradient; a layer's own may be
    replaced by one that has it.

    Example:
        >>> network = ElmoNetwork(
        ...     {
        ...         "char_cnn": {
        ...             "embedding": {"dim": 4}, "filters": [[1, 8]], "n_characters": 262,
        ...             "max_characters_per_token": 50, "activation": "relu",
        ...         },
        ...         "lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2},
        ...     }
        ... )
        >>> network = network.requires_grad_(False)
        >>> ids = network.character_ids([network.BEGIN, "bank", network.END])
        >>> network(torch.from_numpy(ids)[None]).shape  # layers, sentences, words, both directions
        torch.Size([3, 1, 3, 16])
    """

    BEGIN, END = BEGIN, END
    character_ids = staticmethod(character_ids)
    scan = staticmethod(scan)

    def __init__(
        self, options: ElmoOptions | Mapping[str, object], *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.options = options if isinstance(options, ElmoOptions) else ElmoOptions.parse(options)
        self.tokens = TokenLayer(self.options)
        self.layers = nn.ModuleList(LstmLayer(self.options) for _ in range(self.options.n_layers))
        if not self.tokens.characters.is_meta:
            self.reset(torch.Generator().manual_seed(0) if generator is None else generator)

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        self.tokens.reset(generator)
        for layer in self.layers:
            layer.reset(generator)  # type: ignore[operator]  # a ModuleList doesn't know its items' type

    def load(self, folder: Path) -> None:
        """Take the weights of a folder that `save` wrote, of the same shape."""
        self.load_state_dict(read_weights(folder / "weights.hdf5", self.options))

    def save(self, folder: Path, *, dtype: str = "float32") -> None:
        """Write options.json and weights.hdf5 in AllenNLP's layout; `dtype` "float16" halves the file."""
        folder.mkdir(parents=True, exist_ok=True)
        write_options(folder / "options.json", self.options)
        write_weights(folder / "weights.hdf5", self.state_dict(), self.options, dtype=dtype)

    def contextual(
        self, x: Tensor, lengths: Sequence[int] | None = None, state: State | None = None
    ) -> tuple[list[Tensor], State]:
        """Outputs of each layer, (2, n_steps, n_sentences, projection) in reading order, and the final states.

        `x` (n_steps, n_sentences, projection) are token vectors, markers included. `lengths` (descending) are the true
        numbers of steps where they differ; outputs beyond them mean nothing. `state` is what an earlier call returned
        for as many sentences; zero if absent. No gradient flows into it.
        """
        n_steps, n_sentences, _ = x.shape
        if lengths is None:
            sizes = [n_sentences] * n_steps
        else:
            sizes = [sum(length > t for length in lengths) for t in range(n_steps)]
        if state is None:
            shapes = (2, n_sentences, self.options.cells), (2, n_sentences, self.options.projection)
            state = [(x.new_zeros(shapes[0]), x.new_zeros(shapes[1]))] * len(self.layers)
        x = torch.stack([x, _reverse(x, lengths)])
        outputs, final = [], []
        for number, (layer, (c, m)) in enumerate(zip(self.layers, state, strict=True)):
            y, c, m = layer(x, sizes, c, m)
            x = x + y if number and self.options.skip else y  # no residual from the token layer
            outputs.append(torch.stack([x[0], _reverse(x[1], lengths)]))
            final.append((c.detach(), m.detach()))
        return outputs, final

    def forward(self, characters: Tensor, index: Tensor | None = None) -> Tensor:
        """All layers (n_layers + 1, n_sentences, n_steps, 2 * projection) of sentences of equal length.

        Either `characters` are the ids of every word (n_sentences, n_steps, 50), or they are those of the batch's
        unique words (n_unique, 50) and `index` (n_sentences, n_steps) says which word stands where: the token layer
        then runs once a unique word. Sentence markers are words like others and keep their places.
        """
        x = self.embed(characters, index)
        outputs, _ = self.contextual(x)
        layers = [torch.cat([x, x], dim=-1), *(torch.cat([y[0], y[1]], dim=-1) for y in outputs)]
        return torch.stack(layers).transpose(1, 2)

    def embed(self, characters: Tensor, index: Tensor | None = None) -> Tensor:
        """Token vectors (n_steps, n_sentences, projection) from the arguments of `forward`."""
        if index is None:
            x: Tensor = self.tokens(characters.flatten(0, 1))
            return x.view(*characters.shape[:2], -1).transpose(0, 1)
        return functional.embedding(index.t(), self.tokens(characters))


def _reverse(x: Tensor, lengths: Sequence[int] | None) -> Tensor:
    """x (n_steps, n_sentences, width) with each sentence's first `length` steps in reverse."""
    if lengths is None:
        return x.flip(0)
    steps = torch.arange(len(x), device=x.device)[:, None]
    last = torch.tensor(lengths, device=x.device)[None] - 1
    source = torch.where(steps <= last, last - steps, steps)
    return torch.take_along_dim(x, source[..., None], dim=0)


class ElmoEncoder(Encoder):
    """The layers of a biLM for each word: layer 0 is the token vector twice, layer l both directions' outputs joined.

    `weights` is the state of an `ElmoNetwork`. Words are cut after 48 bytes; "<S>" and "</S>" are the sentence markers,
    as in the original. An empty sentence has no vectors (with state=carry its markers still move the state).
    `network` is for what inspects it, not to be changed.
    """

    positional = False

    def __init__(
        self,
        options: ElmoOptions,
        weights: Mapping[str, Tensor],
        *,
        source: str,
        identity: str,
        state: str = "reset",
        device: str = "auto",
        dtype: Dtype = "float32",
        layers: Sequence[int] | None = None,
    ) -> None:
        self.options, self.sequential, self.dtype = options, state == "carry", dtype
        self.n_layers, self.dim = options.n_layers + 1, 2 * options.projection
        self.layers = layer_selection(layers, self.n_layers, source)
        self._type, self._device = getattr(torch, dtype), resolve_device(device)
        self._out = torch.float32 if dtype == "float32" else torch.float16
        with torch.device("meta"):
            self.network = ElmoNetwork(options)
        self.network.load_state_dict(dict(weights), assign=True)
        self.network.requires_grad_(False).eval().to(self._device, self._type)
        self._row_of: dict[str, int] = {}
        self._table = torch.empty(0, options.projection)
        few = f" layers={','.join(map(str, self.layers))}" if self.layers is not None else ""
        self.name = f"elmo {identity} state={state}{few} dtype={dtype}"
        self.details = {
            "checkpoint": source,
            "revision": "-",
            "weights_hash": identity.split(":")[1],
            "content_hash": identity.split(":")[-1],
            "architecture": "ELMo biLM",
            "layers": options.n_layers,
            "width": self.dim,
            "cells": options.cells,
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "state": state,
            "dtype": dtype,
        }
        del self.network.layers[max(self.layer_numbers) :]  # no layer depends on those above it

    @classmethod
    def untrained(cls, options: ElmoOptions, *, seed: int, source: str, **choices: Any) -> ElmoEncoder:
        """The same shape with the original's initialisation, drawn from `seed`; `choices` as an encoder takes them."""
        weights = ElmoNetwork(options, generator=torch.Generator().manual_seed(seed)).state_dict()
        digest = hashlib.sha256(repr(options).encode())
        for value in weights.values():
            digest.update(value.numpy().tobytes())
        identity = f"untrained:{digest.hexdigest()[:16]}"
        return cls(options, weights, source=source, identity=identity, **choices)

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """The vectors of each sentence, in order; with state=carry the states start at zero with the call."""
        c = torch.zeros(2, 1, self.options.cells, device=self._device)  # float32, whatever it computes in
        state = [(c, c.new_zeros(2, 1, self.options.projection))] * len(self.network.layers)
        for first in range(0, len(batch), BLOCK):
            block = batch[first : first + BLOCK]
            self._embed(word for sentence in block for word in sentence.words)
            if not self.sequential:
                yield from map(EncodedSentence, (s.words for s in block), self._reset(block))
                continue
            for sentence in block:
                (layers,), state = self._run([sentence], state)
                yield EncodedSentence(sentence.words, layers)

    @torch.inference_mode()
    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """`token_layer`: the character CNN's vector of each distinct word of `sentences`, half as wide as layer 0."""
        count_by_word = Counter(word for sentence in sentences for word in sentence.words)
        words = sorted(count_by_word)
        nothing = np.empty((0, self.options.projection), np.float32)
        parts = [nothing, *(part.float().cpu().numpy() for part in self._token_vectors(words))]
        counts = np.array([count_by_word[word] for word in words], np.int64)
        note = "the words of the measured text; the output matrix is no part of the encoder"
        return [EmbeddingTable("token_layer", words, np.concatenate(parts), counts, note=note)]

    def _token_vectors(self, words: Sequence[str]) -> Iterator[Tensor]:
        """The character CNN's vectors of words, some thousand (n, projection) at a time."""
        for start in range(0, len(words), 2048):
            ids = character_ids(words[start : start + 2048], self.options.word_width)
            yield self.network.tokens(torch.from_numpy(ids).to(self._device))

    def _reset(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Each sentence's layers from zero states, sentences of equal length together."""
        layers: list[np.ndarray] = [np.empty(0)] * len(sentences)
        groups: dict[int, list[int]] = {}
        for number, sentence in enumerate(sentences):
            groups.setdefault(len(sentence), []).append(number)
        for length, numbers in groups.items():
            size = max(1, AT_ONCE // (length + 2))
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                arrays, _ = self._run([sentences[i] for i in part])
                for number, array in zip(part, arrays, strict=True):
                    layers[number] = array
        return layers

    @torch.inference_mode()
    def _run(self, sentences: Sequence[Sentence], state: State | None = None) -> tuple[list[np.ndarray], State]:
        """The given layers (n, n_words, dim) of sentences of one length, and the states after them."""
        length, row_of = len(sentences[0]), self._row_of
        rows = np.full((length + 2, len(sentences)), row_of[END])
        rows[0] = row_of[BEGIN]
        for number, sentence in enumerate(sentences):
            rows[1:-1, number] = [row_of[word] for word in sentence.words]
        x = self._table[torch.from_numpy(rows).to(self._device)]
        outputs, state = self.network.contextual(x, state=state)
        shape = len(sentences), len(self.layer_numbers), length, 2, self.options.projection
        layers = torch.empty(shape, dtype=self._out, device=self._device)
        for at, number in enumerate(self.layer_numbers):
            y = outputs[number - 1].permute(2, 1, 0, 3) if number else x.transpose(0, 1).unsqueeze(2)
            layers[:, at] = y[:, 1:-1]
        return list(layers.flatten(3).cpu().numpy()), state

    def forget_words(self) -> None:
        """Drop the kept token vectors (they change nothing but the time)."""
        self._row_of = {}

    @torch.inference_mode()
    def _embed(self, words: Iterable[str]) -> None:
        """Make the token table hold these words and the markers; it starts anew when it has grown too large.

        A word goes through the network once, beside the other new words of its block. So its vector hangs by rounding
        (1.3e-7 of its length at most on the embedded sentences) on what this encoder met before: worker processes
        meet other blocks and repeat a single one's vectors to that, not to the last bit.
        """
        vocabulary = dict.fromkeys((BEGIN, END, *words))
        new = [word for word in vocabulary if word not in self._row_of]
        if len(self._row_of) + len(new) > MOST_WORDS:
            self._row_of, new = {}, list(vocabulary)
        if not new:
            return
        self._table = torch.cat([*([self._table] if self._row_of else []), *self._token_vectors(new)])
        self._row_of.update((word, row) for row, word in enumerate(new, start=len(self._row_of)))
