"""A transformer as an `Encoder`: vectors of words from every layer; its embedding tables, the input matrix and that of
its language-model head.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.files.code_version import package_digest
from ctxexp.model import EmbeddingTable, EncodedSentence, Encoder, TokenStates
from ctxexp.models.options import TransformerOptions, layer_selection
from ctxexp.models.transformer.block_points import BlockPoints
from ctxexp.models.transformer.checkpoint import Checkpoint, label_of, weight_files
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
from ctxexp.models.transformer.pieces import PieceCache, PieceReader, Pieces, best_window, windows
from ctxexp.models.transformer.pipeline import Pipeline
from ctxexp.models.transformer.sentences import LibrarySentences, TransformerSentences
from ctxexp.models.transformer.unused import is_own_code, read_weight

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

Array = TypeVar("Array", np.ndarray, torch.Tensor)
WINDOW_TOKENS = 2048  # pieces of one long sentence's windows that go through the model at once
log = logging.getLogger("ctxexp")


class TransformerEncoder(Encoder):
    """Every hidden layer of a transformers model, one vector per word (or piece) and layer.

    Layer 0 is what enters the first block (`hidden_states[0]`), layer L the last block's output: with
    `final_norm=True` after the model's final norm, as `hidden_states[-1]` is; with `False` before it (R02).
    `options` say how text becomes vectors; `pipeline` what sentence-transformers makes of the last layer (None: as the
    checkpoint's folder has it). `title` is the label in figures of a model that no config named. `model` and
    `tokenizer` (the fast one, which neither cuts nor pads) are for what inspects them, not to be changed.
    """

    allows_prefetch = True  # pieces are read by `lengths`, and only taken by `encode`

    def __init__(
        self,
        checkpoint: Checkpoint,
        options: TransformerOptions,
        loaded: LoadedModel,
        *,
        title: str = "",
        pipeline: Pipeline | None = None,
    ) -> None:
        self.pipeline = pipeline or Pipeline.of_folder(checkpoint)
        self.checkpoint, self.options, self.model, self.has_pooler = checkpoint, options, loaded.model, loaded.pooler
        with model_call(self.model, checkpoint.source):
            self._device, facts = self.model.device, model_facts(self.model)
        self.n_layers, self.dim, self.causal, norm = facts[:4]
        self.dtype, self.title = options.dtype, title or label_of(checkpoint.source)
        self._out = torch.float32 if options.dtype == "float32" else torch.float16
        self._identity = loaded.identity
        self._read = PieceReader(
            loaded.tokenizer, pooling=options.pooling, source=checkpoint.source,
            rows=table_rows(self.model), prefix=options.prefix,
        )  # fmt: skip
        self.start, self.tokenizer = self._read.prefix.start, self._read.backend
        self._waiting = PieceCache(self._read)
        self._pooled: torch.Tensor | None = None  # what the model's own pooler made of the last sentences
        self._points = None  # of the residual stream, which every model gives by itself
        if options.point != "residual":
            self._points = BlockPoints(self.model, options.point, checkpoint.source)
        self.layers = layer_selection(options.layers, self.n_layers, checkpoint.source, options.point)
        if not facts.is_static and 0 in self.layer_numbers:
            raise ConfigError(
                f"{checkpoint.source} ({type(self.model).__name__}): what enters its first block depends on the pieces "
                "around each piece, so layer 0 is no word by itself; leave it out: "
                f"model.layers={[*range(1, self.n_layers)]}"
            )
        final_norm = options.final_norm or self._points is not None
        if not final_norm and norm is None:
            raise ModelError(
                f"final_norm=false: {type(self.model).__name__} ({checkpoint.source}) has no final norm after its last "
                "block, so there is nothing to leave out; leave final_norm=true"
            )
        self._forward = ForwardPass(self.model, facts, self.layers, final_norm=final_norm)
        own = window_size(self.model, loaded.tokenizer)  # pieces at once, special ones included
        narrowed = options.window is not None and (own is None or options.window < own)
        self.window = options.window if narrowed else own
        self._check_sizes()
        weights = state_hash(self.model.state_dict()) if loaded.untrained else checkpoint.weights_hash
        identity = f"untrained:{weights}:{checkpoint.content_hash}" if loaded.untrained else checkpoint.identity
        self._name = (
            f"{type(self.model).__name__} {identity}"
            + (f" dequantized={loaded.dequantized}" if loaded.dequantized else "")
            + (f" kwargs={dict(sorted(options.kwargs.items()))}" if options.kwargs else "")
            + f" pooling={options.pooling}{self._read.prefix}"
            + (" units=text" if options.pooling == "pieces" else "")  # not the vocabulary's spelling, as they once were
            + ("" if options.lower is None else f" lower={options.lower}")
            + f" final_norm={options.final_norm} long={options.long}{self._points or ''}"
            + (f" layers={','.join(map(str, self.layers))}" if self.layers is not None else "")
            + (f" code={package_digest(Path(getfile(type(self.model))))}" if is_own_code(self.model) else "")
            + f" dtype={options.dtype}{f' window={options.window}' if narrowed else ''}"
        )
        self.details = self._describe(loaded, weights, norm)

    def _describe(self, loaded: LoadedModel, weights: str, norm: str | None) -> dict[str, str | int | float | bool]:
        """The encoder's metadata in a run's results; `weights` is their hash, `norm` the final norm's module."""
        checkpoint, options = self.checkpoint, self.options
        own = loaded.identity and (loaded.identity.own_code or ", ".join(self.pipeline.unknown_keys))
        return {
            "checkpoint": checkpoint.source,
            "revision": checkpoint.revision or "-",
            **({"revision_name": checkpoint.revision_name} if checkpoint.revision_name else {}),
            "weights_hash": weights,
            "content_hash": checkpoint.content_hash,
            **({"weights_sha256": read} if (read := checkpoint.weights_sha256) and not loaded.untrained else {}),
            **({"dequantized": loaded.dequantized} if loaded.dequantized else {}),
            **({"kwargs": str(dict(options.kwargs))} if options.kwargs else {}),
            **({"not_stored": own} if own else {}),
            **({"warnings": "\n".join(loaded.warnings)} if loaded.warnings else {}),
            **({"sentence_pooling": self.pipeline.pooling} if self.pipeline.modules else {}),
            "architecture": type(self.model).__name__,
            "layers": self.n_layers - 1,
            "width": self.dim,
            "pooling": options.pooling,
            "prefix": options.prefix,
            **({} if options.lower is None else {"lower": options.lower}),
            "start": str(self.start),
            **({"point": options.point} if self._points else {}),
            "final_norm": options.final_norm,
            "final_norm_module": norm or "-",
            "long": options.long,
            "window": self.window or 0,
            "causal": bool(self.causal),
            "attention": self.model.config._attn_implementation or "-",
            "device": str(self._device),
            "dtype": options.dtype,
            "untrained": loaded.untrained,
        }

    @property
    def name(self) -> str:  # type: ignore[override]  # read only: it looks at the model
        """The vectors' cache key. Raises EncodingError if the caller has changed a model in memory since."""
        if self._identity and self._identity.has_changed():
            raise EncodingError(
                f"the weights of {self.title} have changed since it was taken, or what it does with them, and its "
                "vectors with them; take it anew with ctxexp.from_transformers"
            )
        return self._name

    def _check_sizes(self) -> None:
        """Raise `ConfigError` where no text fits into the window."""
        n, source = self._read.n_special, self.checkpoint.source
        if self.window is not None and n >= self.window:
            raise ConfigError(
                f"model.prefix={self.options.prefix!r}: {n} pieces stand around each text, and {source} reads "
                f"{self.window} at once, so no text fits beside them; give a shorter one"
            )

    def lengths(self, sentences: Sequence[Sentence]) -> list[int]:
        """Pieces of each sentence, special ones included; `encode` will not read these sentences again."""
        return [len(pieces.ids) for pieces in self._waiting.peek(sentences)]

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        """How many pieces of the sentences' text are unknown to the tokenizer, and how many pieces there are."""
        return self._read.count_unknown(self._waiting.peek(sentences))

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterator[np.ndarray]:
        """Of each sentence, where its units' first pieces stand in the window that they are read in, and how many
        pieces are pooled in each, (units, 2)."""
        for read in self._read(sentences):
            at = read.at[np.cumsum(read.counts) - read.counts]
            if self.window is not None and len(read.ids) > self.window and len(at):
                starts, window_of = self._windows(read)
                at = at - starts[window_of[at - read.n_before]]
            yield np.stack([at, read.counts], axis=1)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterator[list[tuple[int, ...]]]:
        """Of each sentence, the numbers of the pieces that are pooled in each of its units."""
        for read in self._read(sentences):
            ends = np.cumsum(read.counts)[:-1]
            yield [tuple(ids.tolist()) for ids in np.split(read.ids[read.at], ends)] if len(read.counts) else []

    def read_pieces(self, sentences: Sequence[Sentence]) -> list[Pieces]:
        """Each sentence's pieces as the model reads them, special ones and the prefix among them."""
        return self._read(sentences)

    def token_states(self, sentence: Sentence) -> TokenStates:
        """Raises ModelError where the window is too short for the sentence."""
        (pieces,) = self._read([sentence])
        if self.window is not None and len(pieces.ids) > self.window:
            raise ModelError(
                f"{sentence.text[:60]!r} has {len(pieces.ids)} pieces, the model takes {self.window}; shorten it"
            )
        norm = None if (name := self.details["final_norm_module"]) == "-" else self.model.get_submodule(str(name))
        with torch.inference_mode(), catch_tensors([] if norm is None else [(norm, True)]) as calls:
            out = self._forward(torch.from_numpy(pieces.ids[None]).to(self._device, torch.long)).hidden_states
            entering = calls[-1][2] if calls else None
            before = entering[0].float().cpu().numpy() if entering is not None else None
            layers = torch.stack([layer[0].float().cpu() for layer in out]).numpy()
            normed = None if norm is None else torch.stack([norm(layer)[0].float().cpu() for layer in out]).numpy()
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
        yield from (EncodedSentence(*one) for one in self._vectors(batch, lambda pooled: pooled.cpu().numpy()))

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
            for length, members in groups.items():
                if self.window is not None and length > self.window:
                    for i in members:
                        done[i] = convert(self._long(batch[i], read[i]))
                else:
                    vectors = convert(self._embed([read[i] for i in members], length))
                    ends = np.cumsum([len(read[i].units) for i in members])
                    for i, end in zip(members, ends.tolist(), strict=True):
                        done[i] = vectors[:, end - len(read[i].units) : end]
        for i, pieces in enumerate(read):
            yield pieces.units, done[i]

    def tables(self, sentences: Sequence[Sentence]) -> list[EmbeddingTable]:
        """The input embedding, and the output embedding where it is another matrix; piece counts of `sentences`."""
        untrained = bool(self.details["untrained"])
        return transformer_tables(self.model, self._read, self.checkpoint, sentences, untrained=untrained)

    def _embed(self, group: Sequence[Pieces], length: int) -> torch.Tensor:  # (n_layers, units of the group, dim)
        if not any(len(pieces.at) for pieces in group):
            return self._nothing()
        at = np.concatenate([pieces.at + length * i for i, pieces in enumerate(group)])
        counts = np.concatenate([pieces.counts for pieces in group])
        return self._pool(self.hidden_states(np.stack([pieces.ids for pieces in group])), at, counts)

    def encode_alone(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        """Each unit's pieces by themselves, at their positions in the sentence if the model takes positions; beyond its
        window they begin again. Special pieces are left out: what a unit takes from them hangs on its position."""
        read, keys = self._read(batch), list[tuple[int, tuple[int, ...]]]()
        for one in read:
            for at in np.split(one.at, np.cumsum(one.counts)[:-1]) if len(one.at) else ():
                room = self.window - len(at) + 1 if self.window else len(one.ids)
                keys.append((int(at[0]) % max(1, room), tuple(one.ids[at].tolist())))
        alone: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}
        with torch.inference_mode():
            for k in {len(ids) for _, ids in keys}:
                alike = [key for key in dict.fromkeys(keys) if len(key[1]) == k]
                places, ids = map(np.array, zip(*alike, strict=True))
                states = self.hidden_states(ids, places)
                vectors = self._pool(states, np.arange(ids.size), np.full(len(ids), k)).cpu().numpy()
                alone.update(zip(alike, vectors.swapaxes(0, 1), strict=True))
        rows = iter(keys)
        for one in read:
            of_units = [alone[next(rows)] for _ in one.units]
            nothing = self._nothing().cpu().numpy()
            yield EncodedSentence(one.units, np.stack(of_units, axis=1) if of_units else nothing)

    @contextmanager
    def _first_at(self, places: np.ndarray, length: int) -> Iterator[None]:
        """The block reads sentences of this length whose first pieces are at these places (n,)."""
        positions = torch.from_numpy(places[:, None] + np.arange(length)).to(self._device)
        if any(hasattr(module, "create_position_ids_from_input_ids") for module in self.model.modules()):
            positions += int(self.model.config.pad_token_id) + 1  # RoBERTa's begin behind its padding's
        takes = "position_ids" in inspect.signature(self.model.forward).parameters
        hook = self.model.register_forward_pre_hook(
            lambda _, args, options: (args, {**options, "position_ids": positions} if takes else options),
            with_kwargs=True,
        )
        try:
            yield
        finally:
            hook.remove()

    def _nothing(self) -> torch.Tensor:  # (layers, 0, dim)
        return torch.empty((len(self.layer_numbers), 0, self.dim), dtype=self._out, device=self._device)

    def hidden_states(self, ids: np.ndarray, places: np.ndarray | None = None) -> list[torch.Tensor]:
        """Each given layer's vectors (sentences * length, dim) of `ids` (sentences, length). `places`: where each
        sentence's first piece is (sentences,), in models that take positions; None: at the beginning."""
        if places is not None:
            with self._first_at(places, ids.shape[1]):
                return self._states(ids)
        return self._states(ids)

    def _states(self, ids: np.ndarray) -> list[torch.Tensor]:
        tensor = torch.from_numpy(ids).to(self._device, torch.long)
        out = self._points.read(self._forward, tensor) if self._points else self._forward(tensor)
        self._pooled = out.get("pooler_output")
        layers = (*out.hidden_states[:-1], out.last_hidden_state)
        # under a map of devices each layer comes from its own
        return [layers[i].reshape(ids.size, self.dim).to(self._device) for i in self.layer_numbers]

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
        pooled = torch.empty((len(layers), len(counts), self.dim), dtype=self._out, device=self._device)
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
        return torch.from_numpy(rows).to(self._device)

    def _windows(self, pieces: Pieces) -> tuple[np.ndarray, np.ndarray]:
        """Where the windows of a longer text begin among its own pieces, and the window of each of these."""
        assert self.window is not None
        around = pieces.n_before + pieces.n_after
        n, size = len(pieces.ids) - around, self.window - around
        starts = windows(n, size, max(size // 2, 1))
        return starts, best_window(n, starts, size, causal=bool(self.causal))

    def _long(self, sentence: Sentence, pieces: Pieces) -> torch.Tensor:
        """The vectors of a sentence that is longer than the model's window: each piece from the window that shows it
        the most context."""
        assert self.window is not None
        n, before, after = len(pieces.ids), pieces.n_before, pieces.n_after
        if self.options.long == "refuse":
            raise EncodingError(
                f"the sentence {sentence.text[:60]!r}... has {n:,} pieces, but {self.checkpoint.source} takes "
                f"{self.window}; long=window reads it in overlapping windows, or split or drop it"
            )
        if not len(pieces.at):
            return self._nothing()
        size = self.window - before - after
        starts, window_of = self._windows(pieces)
        n -= before + after
        text = pieces.ids[before : before + n]
        ids = np.stack(
            [np.concatenate([pieces.ids[:before], text[s : s + size], pieces.ids[before + n :]]) for s in starts]
        )
        several = max(1, WINDOW_TOKENS // self.window)
        parts: list[list[torch.Tensor]] = []
        for i in range(0, len(ids), several):  # of overlapping windows only the rows that are wanted stay in memory
            numbers = np.flatnonzero((window_of >= i) & (window_of < i + several))
            rows = self._index((window_of[numbers] - i) * self.window + before + numbers - starts[window_of[numbers]])
            parts.append([layer.index_select(0, rows) for layer in self.hidden_states(ids[i : i + several])])
        layers = [torch.cat(layer) for layer in zip(*parts, strict=True)]  # in the order of pieces, as `chosen` ascends
        return self._pool(layers, pieces.at - before, pieces.counts)


def transformer_tables(
    model: PreTrainedModel,
    reader: PieceReader,
    checkpoint: Checkpoint,
    sentences: Sequence[Sentence],
    *,
    untrained: bool,
) -> list[EmbeddingTable]:
    """`input`, and `output` where the checkpoint holds a matrix of its own for its head.

    The base model that encodes has no head, so an untied output matrix is read from the checkpoint's files; the note of
    `input` says how the two relate. Rows past the tokenizer's vocabulary (padding of the matrix) are left out; counts
    are of the pieces of `sentences`, special pieces around them not counted.
    """
    weight = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    backend = reader.backend
    spelled = {i: token for token, i in backend.get_vocab(with_added_tokens=True).items()}
    n = min(len(weight), max(spelled) + 1)
    tokens = tuple(spelled.get(i, f"[{i}]") for i in range(n))
    special = tuple(sorted(i for i, t in backend.get_added_tokens_decoder().items() if t.special and i < n))
    unspelled = tuple(i for i in range(n) if i not in spelled)  # rows that no text reaches
    left_out = tuple(sorted({*special, *unspelled}))
    counts = _counts(reader, sentences, n)
    name, note, tied = _head(model.config)
    output = None
    if name and untrained:
        note = "untied, and an untrained model's head is never drawn: no output matrix"
    elif name:
        output = _output(checkpoint, name)
        note = note if output is not None else f"the checkpoint has no {name}: its output matrix is not available"
    tables = [EmbeddingTable("input", tokens, weight[:n], counts, left_out, note, tied)]
    if output is not None:
        if len(output) < n:
            raise ModelError(
                f"{checkpoint.source}: its output matrix {name} has {len(output)} rows for {n} pieces; "
                "expected a row each"
            )
        tables.append(EmbeddingTable("output", tokens, output[:n], counts, left_out, f"read from {name}"))
    return tables


def _output(checkpoint: Checkpoint, name: str) -> np.ndarray | None:
    if checkpoint.is_gguf:
        return read_matrix(checkpoint.folder, OUTPUT)
    tensor = read_weight(weight_files(checkpoint.folder), name)
    return None if tensor is None else tensor.float().numpy()


def _counts(reader: PieceReader, sentences: Sequence[Sentence], n: int) -> np.ndarray:
    counts = np.zeros(n, np.int64)
    for i in range(0, len(sentences), 1000):
        for pieces in reader(sentences[i : i + 1000]):
            own = pieces.ids[pieces.n_before : len(pieces.ids) - pieces.n_after]
            counts += np.bincount(own[own < n], minlength=n)
    return counts


def _head(config: PretrainedConfig) -> tuple[str, str, bool]:
    """The name of the untied output matrix, empty if there is none; what is to be said of it; whether it is tied."""
    import transformers

    for architecture in config.architectures or ():
        head = getattr(transformers, architecture, None)
        if head is None or not (
            "LMHead" in architecture or "ForCausalLM" in architecture or "MaskedLM" in architecture
        ):
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
