"""A transformer as an `Encoder`: vectors of words from every layer; its embedding tables, the input matrix and that of
its language-model head.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from inspect import getfile, signature
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.files.code_version import package_digest
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder, TokenStates
from ctxexp.models.options import TransformerOptions, layer_selection
from ctxexp.models.transformer.block_points import block_points
from ctxexp.models.transformer.checkpoint import Checkpoint, label_of
from ctxexp.models.transformer.forward import (
    ForwardPass,
    catch_tensors,
    model_call,
    model_facts,
    table_rows,
    window_size,
)
from ctxexp.models.transformer.gguf import OUTPUT, read_matrix
from ctxexp.models.transformer.identity import state_hash
from ctxexp.models.transformer.loading import LoadedModel
from ctxexp.models.transformer.pieces import PieceCache, PieceReader, Pieces, best_window, lower_cases, windows
from ctxexp.models.transformer.sentences import LibrarySentences, TransformerSentences
from ctxexp.models.transformer.unused import is_own_code, read_weight

if TYPE_CHECKING:
    from transformers import PretrainedConfig

Array = TypeVar("Array", np.ndarray, torch.Tensor)
UnitAlone = tuple[int, tuple[int, ...]]  # the place of a unit's first piece, and its pieces' numbers
WINDOW_TOKENS = 2048  # pieces of one long sentence's windows that go through the model at once


class TransformerEncoder(Encoder):
    """Every hidden layer of a transformers model, one vector per word (or piece) and layer.

    Layer 0 is what enters the first block (`hidden_states[0]`), layer L the last block's output: with
    `final_norm=True` after the model's final norm, as `hidden_states[-1]` is; with `False` before it.
    `options` say how text becomes vectors. `model` and `tokenizer` (the fast one, which neither cuts nor pads) are for
    what inspects them, not to be changed.
    """

    allows_prefetch = True  # pieces are read by `lengths`, and only taken by `encode`

    def __init__(self, loaded: LoadedModel, options: TransformerOptions) -> None:
        self.loaded, self.options, self.model = loaded, options, loaded.model
        self.checkpoint, self.pipeline, self.has_pooler = loaded.checkpoint, loaded.pipeline, loaded.has_pooler
        source = self.checkpoint.source
        with model_call(self.model, source):
            self.device, facts = self.model.device, model_facts(self.model)
        self.n_layers, self.dim, self.causal, self.norm = facts.n_layers, facts.dim, facts.causal, facts.norm
        self.dtype, self.title = options.dtype, loaded.title or label_of(source)
        self._out = torch.float32 if options.dtype == "float32" else torch.float16
        self.reader = PieceReader(
            loaded.tokenizer, pooling=options.pooling, source=source, rows=table_rows(self.model), prefix=options.prefix
        )
        self.start, self.tokenizer = self.reader.prefix.start, self.reader.backend
        self._waiting = PieceCache(self.reader)
        self.pooled: torch.Tensor | None = None  # what the model's own pooler made of the last sentences
        self.layers = layer_selection(options.layers, self.n_layers, source, options.point)
        self._facts, final_norm = facts, options.final_norm
        if options.point != "residual":
            points = block_points(self.model, options.point, source)
            facts, final_norm = facts._replace(sources=points, is_hooked=True), True
        if not facts.is_static and 0 in self.layer_numbers:
            raise ConfigError(
                f"{source} ({type(self.model).__name__}): what enters its first block depends on the pieces "
                "around each piece, so layer 0 is no word by itself; leave it out: "
                f"model.layers={[*range(1, self.n_layers)]}"
            )
        if not final_norm and self.norm is None:
            raise ModelError(
                f"final_norm=false: {type(self.model).__name__} ({source}) has no final norm after its last "
                "block, so there is nothing to leave out; leave final_norm=true"
            )
        self.forward = ForwardPass(self.model, facts, self.layers, final_norm=final_norm)
        own = window_size(self.model, loaded.tokenizer)  # pieces at once, special ones included
        self._is_narrowed = options.window is not None and (own is None or options.window < own)
        self.window = options.window if self._is_narrowed else own
        if self.window is not None and self.reader.n_special >= self.window:
            raise ConfigError(
                f"model.prefix={options.prefix!r}: {self.reader.n_special} pieces stand around each text, and {source} "
                f"reads {self.window} at once, so no text fits beside them; give a shorter one"
            )
        self._name, self.details = self._cache_key(), self._describe()

    @cached_property
    def _weights(self) -> str:
        """The hash of the weights."""
        return state_hash(self.model.state_dict()) if self.loaded.untrained else self.checkpoint.weights_hash

    def _cache_key(self) -> str:
        """All that decides the vectors."""
        options, checkpoint, loaded = self.options, self.checkpoint, self.loaded
        identity = checkpoint.identity
        if loaded.untrained:
            identity = f"untrained:{self._weights}:{checkpoint.content_hash}"
        parts = [
            f"{type(self.model).__name__} {identity}",
            loaded.dequantized and f"dequantized={loaded.dequantized}",
            options.kwargs and f"kwargs={dict(sorted(options.kwargs.items()))}",
            f"pooling={options.pooling}{self.reader.prefix}",
            options.pooling == "pieces" and "units=text",  # not the vocabulary's spelling, as they once were
            options.lower is not None and f"lower={options.lower}",
            f"final_norm={options.final_norm} long={options.long}",
            options.point != "residual" and f"point={options.point}",
            self.layers is not None and f"layers={','.join(map(str, self.layers))}",
            is_own_code(self.model) and f"code={package_digest(Path(getfile(type(self.model))))}",
            f"dtype={options.dtype}",
            self._is_narrowed and f"window={self.window}",
        ]
        return " ".join(str(part) for part in parts if part)

    def _describe(self) -> dict[str, str | int | float | bool]:
        """The encoder's metadata in a run's results."""
        checkpoint, options, loaded = self.checkpoint, self.options, self.loaded
        details = {
            "checkpoint": checkpoint.source,
            "revision": checkpoint.revision or "-",
            "revision_name": checkpoint.revision_name or None,
            "weights_hash": self._weights,
            "content_hash": checkpoint.content_hash,
            "weights_sha256": None if loaded.untrained else checkpoint.weights_sha256 or None,
            "dequantized": loaded.dequantized or None,
            "kwargs": str(dict(options.kwargs)) if options.kwargs else None,
            "not_stored": loaded.not_stored or None,
            "warnings": "\n".join(loaded.warnings) or None,
            "sentence_pooling": self.pipeline.pooling if self.pipeline.modules else None,
            "architecture": type(self.model).__name__,
            "layers": self.n_layers - 1,
            "width": self.dim,
            "pooling": options.pooling,
            "prefix": options.prefix,
            "lower": options.lower,
            "lower_cases": lower_cases(self.tokenizer) or None,
            "start": str(self.start),
            "point": None if options.point == "residual" else options.point,
            "final_norm": options.final_norm,
            "final_norm_module": self.norm or "-",
            "long": options.long,
            "window": self.window or 0,
            "causal": bool(self.causal),
            "attention": self.model.config._attn_implementation or "-",
            "device": str(self.device),
            "dtype": options.dtype,
            "untrained": loaded.untrained,
        }
        return {key: value for key, value in details.items() if value is not None}

    @property
    def name(self) -> str:  # type: ignore[override]  # read only: it looks at the model
        """The vectors' cache key. Raises EncodingError if the caller has changed a model in memory since."""
        if self.loaded.identity and self.loaded.identity.has_changed():
            raise EncodingError(
                f"the weights of {self.title} have changed since it was taken, or what it does with them, and its "
                "vectors with them; take it anew with ctxexp.from_transformers"
            )
        return self._name

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        """Pieces of each sentence, special ones included; `encode` will not read these sentences again."""
        return [len(pieces.ids) for pieces in self._waiting.peek(sentences)]

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        """How many pieces of the sentences' text are unknown to the tokenizer, and how many pieces there are."""
        return self.reader.count_unknown(self._waiting.peek(sentences))

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterator[np.ndarray]:
        """Of each sentence, where its units' first pieces stand in the window that they are read in, and how many
        pieces are pooled in each, (units, 2)."""
        for read in self.reader(sentences):
            at = read.at[np.cumsum(read.counts) - read.counts]
            if self._is_long(read) and len(at):
                starts, window_of = self._windows(read)
                at = at - starts[window_of[at - read.n_before]]
            yield np.stack([at, read.counts], axis=1)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterator[list[tuple[int, ...]]]:
        """Of each sentence, the numbers of the pieces that are pooled in each of its units."""
        for read in self.reader(sentences):
            yield [tuple(read.ids[at].tolist()) for at in read.by_unit()]

    def read_pieces(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        """Each sentence's pieces as the model reads them, special ones and the prefix among them."""
        return self.reader(sentences)

    def token_states(self, sentence: Sentence) -> TokenStates:
        """Raises ModelError where the window is too short for the sentence."""
        (pieces,) = self.reader([sentence])
        if self._is_long(pieces):
            raise ModelError(
                f"{sentence.text[:60]!r} has {len(pieces.ids)} pieces, the model takes {self.window}; shorten it"
            )
        read, before, normed = ForwardPass(self.model, self._facts), None, None
        norm = self.model.get_submodule(self.norm) if self.norm else None
        with torch.inference_mode(), catch_tensors([(norm, True)] if norm else []) as calls:
            out = read(torch.from_numpy(pieces.ids[None]).to(self.device, torch.long)).hidden_states
            layers = torch.stack([layer[0].float().cpu() for layer in out]).numpy()
            if norm and calls:
                before = calls[-1][2][0].float().cpu().numpy()
            if norm:
                normed = torch.stack([norm(layer)[0].float().cpu() for layer in out]).numpy()
        (words,) = self.token_spans([sentence])
        return TokenStates(pieces.ids, layers, before, normed, np.asarray(words))

    def sentence_encoder(self) -> TransformerSentences:
        """The same model, giving sentence vectors: one unit a pooling."""
        return self._sentences

    @cached_property
    def _sentences(self) -> TransformerSentences:
        return (LibrarySentences if self.pipeline.needs_library else TransformerSentences)(self)

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """One result per sentence, in order; sentences of equal length go through the model together, unpadded."""
        return starmap(EncodedSentence, self._vectors(batch, lambda pooled: pooled.cpu().numpy()))

    def encode_tensors(self, batch: Sequence[Sentence]) -> Iterator[tuple[tuple[str, ...], torch.Tensor]]:
        return self._vectors(batch, lambda pooled: pooled)

    def _vectors(
        self, batch: Sequence[Sentence], convert: Callable[[torch.Tensor], Array]
    ) -> Iterator[tuple[tuple[str, ...], Array]]:
        """The units of each sentence and their vectors (layers, units, dim), after `convert` of each batch, which may
        move it."""
        read = self._waiting.take(batch)
        groups: dict[int, list[int]] = {}
        for i, pieces in enumerate(read):
            groups.setdefault(len(pieces.ids), []).append(i)
        done: dict[int, Array] = {}
        with torch.inference_mode():
            for members in groups.values():
                if self._is_long(read[members[0]]):
                    for i in members:
                        done[i] = convert(self._long(batch[i], read[i]))
                    continue
                group = [read[i] for i in members]
                at = np.concatenate([pieces.at + len(pieces.ids) * i for i, pieces in enumerate(group)])
                counts, ids = np.concatenate([one.counts for one in group]), np.stack([one.ids for one in group])
                vectors = convert(self._pool(self.hidden_states(ids), at, counts) if len(at) else self._nothing())
                ends = np.cumsum([len(read[i].units) for i in members])
                for i, end in zip(members, ends.tolist(), strict=True):
                    done[i] = vectors[:, end - len(read[i].units) : end]
        for i, pieces in enumerate(read):
            yield pieces.units, done[i]

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """The input embedding, and the output embedding where the checkpoint holds another matrix for its head.

        The base model that encodes has no head, so an untied output matrix is read from the checkpoint's files; the
        note of `input` says how the two relate. Rows past the tokenizer's vocabulary (padding of the matrix) are left
        out; counts are of the pieces of `sentences`, special pieces around them not counted.
        """
        weight = self.model.get_input_embeddings().weight.detach().float().cpu().numpy()
        spelled = {i: token for token, i in self.tokenizer.get_vocab(with_added_tokens=True).items()}
        n = min(len(weight), max(spelled) + 1)
        tokens = tuple(spelled.get(i, f"[{i}]") for i in range(n))
        special = {i for i, token in self.tokenizer.get_added_tokens_decoder().items() if token.special and i < n}
        left_out = tuple(sorted({*special, *(i for i in range(n) if i not in spelled)}))  # no text reaches them
        counts = self._count_pieces(sentences, n)
        name, note, is_tied = _head(self.model.config)
        output = None
        if name and self.loaded.untrained:
            note = "untied, and an untrained model's head is never drawn: no output matrix"
        elif name:
            output = _output_matrix(self.checkpoint, name)
            note = note if output is not None else f"the checkpoint has no {name}: its output matrix is not available"
        tables = [EmbeddingTable("input", tokens, weight[:n], counts, left_out, note, is_tied)]
        if output is None:
            return tables
        if len(output) < n:
            raise ModelError(
                f"{self.checkpoint.source}: its output matrix {name} has {len(output)} rows for {n} pieces; "
                "expected a row each"
            )
        return [*tables, EmbeddingTable("output", tokens, output[:n], counts, left_out, f"read from {name}")]

    def _count_pieces(self, sentences: Sequence[Sentence], n: int) -> np.ndarray:
        """How often each of the first n pieces is in the sentences, (n,)."""
        counts = np.zeros(n, np.int64)
        for i in range(0, len(sentences), 1000):
            for pieces in self.reader(sentences[i : i + 1000]):
                counts += np.bincount(pieces.text_ids[pieces.text_ids < n], minlength=n)
        return counts

    def encode_alone(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """Each unit's pieces by themselves, at their positions in the sentence if the model takes positions; beyond its
        window they begin again. Special pieces are left out: what a unit takes from them hangs on its position."""
        read = self.reader(batch)
        units_of = [self._units_alone(one) for one in read]
        by_length: dict[int, dict[UnitAlone, None]] = {}
        for unit in chain.from_iterable(units_of):
            by_length.setdefault(len(unit[1]), {})[unit] = None
        alone: dict[UnitAlone, np.ndarray] = {}
        with torch.inference_mode():
            for k, units in by_length.items():
                places, ids = map(np.array, zip(*units, strict=True))
                states = self.hidden_states(ids, places)
                vectors = self._pool(states, np.arange(ids.size), np.full(len(ids), k)).cpu().numpy()
                alone.update(zip(units, vectors.swapaxes(0, 1), strict=True))
        for one, own in zip(read, units_of, strict=True):
            vectors = np.stack([alone[unit] for unit in own], axis=1) if own else self._nothing().cpu().numpy()
            yield EncodedSentence(one.units, vectors)

    def _units_alone(self, pieces: Pieces) -> list[UnitAlone]:
        units = []
        for at in pieces.by_unit():
            room = self.window - len(at) + 1 if self.window else len(pieces.ids)
            units.append((int(at[0]) % max(1, room), tuple(pieces.ids[at].tolist())))
        return units

    def hidden_states(self, ids: np.ndarray, places: np.ndarray | None = None) -> list[torch.Tensor]:
        """Each given layer's vectors (sentences * length, dim) of `ids` (sentences, length). `places`: where each
        sentence's first piece is (sentences,), in models that take positions; None: at the beginning."""
        more = {}
        if places is not None and "position_ids" in signature(self.model.forward).parameters:
            positions = torch.from_numpy(places[:, None] + np.arange(ids.shape[1])).to(self.device)
            if any(hasattr(module, "create_position_ids_from_input_ids") for module in self.model.modules()):
                positions += int(self.model.config.pad_token_id) + 1  # RoBERTa's begin behind its padding's
            more["position_ids"] = positions
        out = self.forward(torch.from_numpy(ids).to(self.device, torch.long), **more)
        self.pooled = out.get("pooler_output")
        layers = (*out.hidden_states[:-1], out.last_hidden_state)
        # under a map of devices each layer comes from its own
        return [layers[i].reshape(ids.size, self.dim).to(self.device) for i in self.layer_numbers]

    def _nothing(self) -> torch.Tensor:  # (layers, 0, dim)
        return torch.empty((len(self.layer_numbers), 0, self.dim), dtype=self._out, device=self.device)

    def _pool(self, layers: Sequence[torch.Tensor], at: np.ndarray, counts: np.ndarray) -> torch.Tensor:
        """Mean over each unit's pieces, (n_layers, n_units, dim).

        Units of one piece, nearly all, are copied; those of k pieces are averaged together, for each k: the order of
        every sum is fixed, so a sentence's vectors don't depend on its neighbours.
        """
        starts = np.cumsum(counts) - counts
        first = self._index(at[starts])
        several = []
        for k in np.unique(counts[counts > 1]).tolist():
            rows = np.flatnonzero(counts == k)
            several.append((k, self._index(rows), self._index(at[starts[rows][:, None] + np.arange(k)].ravel())))
        pooled = torch.empty((len(layers), len(counts), self.dim), dtype=self._out, device=self.device)
        for layer, out in zip(layers, pooled, strict=True):
            if layer.dtype == self._out:
                torch.index_select(layer, 0, first, out=out)
            else:
                out.copy_(layer.index_select(0, first))
            for k, units, pieces in several:
                means = layer.index_select(0, pieces).view(len(units), k, self.dim).mean(1, dtype=torch.float32)
                out.index_copy_(0, units, means.to(self._out))
        return pooled

    def _index(self, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(rows).to(self.device)

    def _is_long(self, pieces: Pieces) -> bool:
        """Whether the sentence has more pieces than the model reads at once."""
        return self.window is not None and len(pieces.ids) > self.window

    def _windows(self, pieces: Pieces) -> tuple[np.ndarray, np.ndarray]:
        """Where the windows of a longer text begin among its own pieces, and the window of each of these."""
        assert self.window is not None
        n, size = len(pieces.text_ids), self.window - pieces.n_before - pieces.n_after
        starts = windows(n, size, max(size // 2, 1))
        return starts, best_window(n, starts, size, causal=bool(self.causal))

    def _long(self, sentence: Sentence, pieces: Pieces) -> torch.Tensor:
        """The vectors of a sentence that is longer than the model's window: each piece from the window that shows it
        the most context."""
        assert self.window is not None
        if self.options.long == "refuse":
            raise EncodingError(
                f"the sentence {sentence.text[:60]!r}... has {len(pieces.ids):,} pieces, but {self.checkpoint.source} "
                f"takes {self.window}; long=window reads it in overlapping windows, or split or drop it"
            )
        if not len(pieces.at):
            return self._nothing()
        before, text = pieces.n_before, pieces.text_ids
        front, back = pieces.ids[:before], pieces.ids[before + len(text) :]
        size = self.window - len(front) - len(back)
        starts, window_of = self._windows(pieces)
        ids = np.stack([np.concatenate([front, text[start : start + size], back]) for start in starts])
        several = max(1, WINDOW_TOKENS // self.window)
        parts: list[list[torch.Tensor]] = []
        for i in range(0, len(ids), several):  # of overlapping windows only the rows that are wanted stay in memory
            numbers = np.flatnonzero((window_of >= i) & (window_of < i + several))
            rows = self._index((window_of[numbers] - i) * self.window + before + numbers - starts[window_of[numbers]])
            parts.append([layer.index_select(0, rows) for layer in self.hidden_states(ids[i : i + several])])
        layers = [torch.cat(layer) for layer in zip(*parts, strict=True)]  # in the order of pieces
        return self._pool(layers, pieces.at - before, pieces.counts)


def _output_matrix(checkpoint: Checkpoint, name: str) -> np.ndarray | None:
    """The head's matrix of that name in the checkpoint's files; None where they have none."""
    if checkpoint.is_gguf:
        return read_matrix(checkpoint.folder, OUTPUT)
    tensor = read_weight(checkpoint.weight_files, name)
    return None if tensor is None else tensor.float().numpy()


def _head(config: PretrainedConfig) -> tuple[str, str, bool]:
    """The name of the untied output matrix, empty if there is none; what is to be said of it; whether it is tied."""
    import transformers

    for architecture in config.architectures or ():
        head = getattr(transformers, architecture, None)
        if head is None or not any(kind in architecture for kind in ("LMHead", "ForCausalLM", "MaskedLM")):
            continue
        with torch.device("meta"):  # the shape of the network, without its weights
            network = head(copy.deepcopy(config))
        network.tie_weights()
        output = network.get_output_embeddings()
        if output is None:
            continue
        if output.weight is network.get_input_embeddings().weight:
            return "", f"tied: {architecture} uses it as its output matrix too", True
        name = next(name for name, p in network.named_parameters(remove_duplicate=False) if p is output.weight)
        return name, f"{architecture} has an output matrix of its own", False
    named = ", ".join(config.architectures or ()) or "none"
    return "", f"the checkpoint names no language-model head (architectures: {named}): no output matrix is known", False
