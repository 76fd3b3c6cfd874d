"""Which layer is this? Vectors of every token, by another engine, beside transformers' hidden states of the same
checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence, from_arrays
from ctxexp.errors import DataError
from ctxexp.models import TokenStates
from ctxexp_compare.attention_sinks.sinks import number_ranges
from ctxexp_compare.checks.token_files import read_vectors
from ctxexp_compare.light.vectors import GRADES, from_vectors, unit
from ctxexp_compare.light.verdict import Verdict, judge

TOLERANCE = 0.1  # median distance of a row's direction, up to which a layer is named
CLEARLY = 0.5  # of the next best layer's distance, at most
EXACT = 1e-3  # a distance below it needs no next best
SEARCHED = 20  # sentences by which the arrangement is found; every row counts after
AXES = ("layers", "tokens", "columns")
BEFORE, AFTER = "before the final norm", "after the final norm"
Key = tuple[int, str]  # layer and norm


class Arrangement(NamedTuple):
    """How a file's arrays lie: which axis is which, whether the two inner axes were read in the other memory order,
    whether rows are `tokens`, the `text` without special tokens, or `words`, and how many tokens late they begin."""

    axes: tuple[int, int, int] = (0, 1, 2)
    other_order: bool = False
    rows: Literal["tokens", "text", "words"] = "tokens"
    shift: int = 0

    @property
    def notes(self) -> list[str]:
        """The unusual findings, a sentence each."""
        notes = []
        if self.axes != (0, 1, 2):
            notes.append(f"its axes are {', '.join(AXES[self.axes.index(i)] for i in range(3))}")
        if self.other_order:
            notes.append("tokens and columns were read in the other memory order")
        if self.rows != "tokens":
            notes.append({"text": "special tokens are left out", "words": "rows are words"}[self.rows])
        if self.shift:
            notes.append(f"row {max(-self.shift, 0)} here is token {max(self.shift, 0)}")
        return notes


@dataclass(frozen=True)
class LayerIdentity:
    """A layer of the file: the layer of the checkpoint that it is (None: none; `nearest` is the nearest), its norm, and
    how its rows compare with that layer's."""

    name: int
    nearest: int
    norm: str
    distance: float  # median over rows, of directions
    verdict: Verdict | None

    @property
    def layer(self) -> int | None:
        return None if self.verdict is None else self.nearest

    @property
    def is_plain(self) -> bool:
        """Whether every row is that hidden state's as transformers gives it, but for rounding to half a type."""
        if self.verdict is None or self.norm:
            return False
        return self.verdict.passes("bfloat16") and self.verdict.worst <= 2 * GRADES["bfloat16"]

    @property
    def suffix(self) -> str:
        """What is unusual in it, in words."""
        verdict = self.verdict
        norm = f" {self.norm}" if self.norm else ""
        if verdict is None or verdict.verdict == "same":
            return norm
        if verdict.verdict == "rounded":
            return f"{norm}, rounded as {verdict.rounding} would"
        return f"{norm}, but {verdict.sentences[0].removeprefix('different: ')}"


@dataclass(frozen=True)
class TokenCheck:
    """The identities of a file's layers, how its arrays lie, and the checkpoint's layers that are missing."""

    n_layers: int
    layers: tuple[LayerIdentity, ...]
    arrangement: Arrangement

    @property
    def missing(self) -> list[int]:
        """The checkpoint's layers that the file lacks, whatever was normed in those that it has; of one alone none."""
        there = {one.layer for one in self.layers}
        return [i for i in range(self.n_layers) if i not in there and len(self.layers) > 1]

    @property
    def cause(self) -> str:
        """The first cause that fits; empty if none does."""
        layers = self.layers
        own = [one.verdict.cause for one in layers if one.verdict is not None and one.verdict.cause]
        causes = {
            "one token off": bool(self.arrangement.shift),
            "before the norm": any(one.norm == BEFORE for one in layers),
            "another layer": any(one.layer not in (None, one.name) for one in layers) or bool(self.missing),
            "axes": bool(self.arrangement.notes),
        }
        return next((cause for cause, fits in causes.items() if fits), own[0] if own else "")

    def __str__(self) -> str:
        """Which layers here are which hidden states, what is missing, and how the arrays lie."""

        def relation(numbered: tuple[int, LayerIdentity]) -> tuple[object, ...]:
            i, one = numbered
            return (i,) if one.layer is None else (one.name - i, one.layer - i, one.norm, one.suffix.split(" (")[0])

        parts = [_run([one for _, one in run]) for _, run in groupby(enumerate(self.layers), relation)]
        if missing := self.missing:
            several = len(missing) > 1
            parts.append(f"layer{'s' * several} {number_ranges(missing)} {'are' if several else 'is'} missing")
        return "; ".join([*parts, *self.arrangement.notes])


def _run(run: Sequence[LayerIdentity]) -> str:
    first, last = run[0], run[-1]
    if first.layer is None:
        return f"layer {first.name} here is no hidden state of this checkpoint (nearest: {first.nearest})"
    if len(run) == 1:
        return f"layer {first.name} here is hidden_states[{first.layer}]{first.suffix}"
    here = f"layers {first.name} to {last.name} here are"
    return f"{here} hidden_states[{first.layer}] to hidden_states[{last.layer}]{first.suffix}"


def identify(
    vectors: Sequence[np.ndarray], states: Sequence[TokenStates], names: Sequence[int] | None = None
) -> TokenCheck:
    """The identity of each layer of vectors.

    Args:
        vectors: For each sentence an array with axes of layers, rows and columns in any order.
        states: The checkpoint's own, of the same sentences.
        names: The numbers that the file gives its layers; None: from 0, of one alone the last.

    Returns:
        What each layer is.

    Raises:
        DataError: No arrangement of the axes fits the sentences' tokens and the model's width.
    """
    if len(vectors) != len(states) or not len(states):
        raise DataError(f"vectors of {len(vectors)} sentences, but the text has {len(states)}; expected one array each")
    n_layers, _, dim = states[0].layers.shape
    best: tuple[float, Arrangement] | None = None
    for arrangement in _arrangements(vectors, states):
        distances = _distances(vectors[:SEARCHED], states[:SEARCHED], arrangement)[1]
        score = float(np.median(distances.min(axis=1)))
        if best is None or score < best[0] * 0.999:
            best = score, arrangement
    if best is None:
        raise DataError(
            f"arrays of shape {vectors[0].shape}; expected axes of layers, tokens and columns in any order: "
            f"{len(states[0].ids)} tokens (or {len(states[0].words)} words) in the first sentence, {dim} columns"
        )
    arrangement = best[1]
    keys, distances = _distances(vectors, states, arrangement)
    if names is None or len(names) != len(distances):
        names = [n_layers - 1] if len(distances) == 1 else range(len(distances))
    layers = []
    for at, (name, row) in enumerate(zip(names, distances, strict=True)):
        chosen = int(row.argmin())
        layer, norm = keys[chosen]
        others = min((one for key, one in zip(keys, row, strict=True) if key[0] != layer), default=np.inf)
        verdict = None
        if row[chosen] <= EXACT or row[chosen] <= min(TOLERANCE, CLEARLY * others):
            x = np.concatenate([_arrange(v, s, arrangement)[at] for v, s in zip(vectors, states, strict=True)])
            y = np.concatenate([dict(_variants(s, arrangement))[layer, norm] for s in states])
            verdict = judge(y, x, from_vectors(y, x))
        layers.append(LayerIdentity(name, layer, norm, float(row[chosen]), verdict))
    return TokenCheck(n_layers, tuple(layers), arrangement)


def _distances(
    vectors: Sequence[np.ndarray], states: Sequence[TokenStates], arrangement: Arrangement
) -> tuple[list[Key], np.ndarray]:
    """The candidates, and how far the file's layers lie from each (layers, candidates), median over rows."""
    cosines, keys = [], list[Key]()
    for of, own in zip(vectors, states, strict=True):
        variants = _variants(own, arrangement)
        keys = [key for key, _ in variants]
        x, y = unit(_arrange(of, own, arrangement)), unit(np.stack([rows for _, rows in variants]))
        cosines.append(np.matmul(x.transpose(1, 0, 2), y.transpose(1, 2, 0)))
    return keys, np.median(np.sqrt(np.maximum(2 - 2 * np.concatenate(cosines), 0)), axis=0)


def _arrangements(vectors: Sequence[np.ndarray], states: Sequence[TokenStates]) -> Iterator[Arrangement]:
    """Every arrangement whose axes fit all sentences, plain ones first."""
    dim = states[0].layers.shape[2]
    if any(v.ndim != 3 for v in vectors):
        return
    for axes in permutations(range(3)):
        shapes = [tuple(v.shape[i] for i in axes) for v in vectors]
        if len({shape[0] for shape in shapes}) > 1 or any(shape[2] != dim for shape in shapes):
            continue
        for rows in ("tokens", "text", "words"):
            if any(shape[1] != len(_rows(s, rows)) for shape, s in zip(shapes, states, strict=True)):
                continue
            for shift in (0, 1, -1) if rows == "tokens" else (0,):
                for other_order in (False, True):
                    yield Arrangement(axes, other_order, rows, shift)  # type: ignore[arg-type]


def _arrange(x: np.ndarray, states: TokenStates, arrangement: Arrangement) -> np.ndarray:
    """The array as (layers, rows, columns) float64, of the rows whose shifted place has a token."""
    x = np.asarray(x, np.float64).transpose(arrangement.axes)
    if arrangement.other_order:
        layers, rows, columns = x.shape
        x = np.ascontiguousarray(x).reshape(layers, columns, rows).transpose(0, 2, 1)
    n = len(_rows(states, arrangement.rows))
    return x[:, max(-arrangement.shift, 0) : n - max(arrangement.shift, 0)]


def _rows(states: TokenStates, rows: str) -> np.ndarray:
    """Token numbers of the rows; of words their first token's."""
    if rows == "words":
        return np.asarray(states.words[:, 0])
    if rows == "text":
        ends = states.words.sum(axis=1)
        return np.arange(states.words[:, 0].min(initial=len(states.ids)), ends.max(initial=0))
    return np.arange(len(states.ids))


def _variants(states: TokenStates, arrangement: Arrangement) -> list[tuple[Key, np.ndarray]]:
    """The candidates for a layer (rows, dim): a hidden state, and that before or after the final norm."""
    last = states.layers.shape[0] - 1
    sources: list[tuple[Key, np.ndarray]] = [((i, ""), x) for i, x in enumerate(states.layers)]
    if states.before_norm is not None:
        sources.append(((last, BEFORE), states.before_norm))
    if states.normed is not None:
        sources += [((i, AFTER), states.normed[i]) for i in range(last)]
    if arrangement.rows == "words":
        return [(key, np.stack([x[a : a + n].mean(axis=0) for a, n in states.words.tolist()])) for key, x in sources]
    tokens, shift = _rows(states, arrangement.rows), arrangement.shift
    return [(key, x[tokens[max(shift, 0) : len(tokens) + min(shift, 0)]]) for key, x in sources]


def check_tokens(encoder: Encoder, file: Path, sentences: Sequence[Sentence]) -> Verdict:
    """Compare the vectors of every token in a file with a transformer's hidden states of the same sentences. Raises
    DataError for a file of other sentences."""
    found, _, _ = _read(encoder, file, sentences)
    verdicts = [one.verdict for one in found.layers if one.verdict is not None]
    rows = tuple(
        {"layer": one.name, "is": one.layer, "norm": one.norm, "distance": one.distance} for one in found.layers
    )
    cause = found.cause
    if cause or len(verdicts) < len(found.layers) or any(one.verdict == "different" for one in verdicts):
        error = max((one.error for one in verdicts), default=np.inf)
        return Verdict("different", cause, str(found), error=np.inf if cause else error, n=len(sentences), layers=rows)
    return replace(max(verdicts, key=lambda one: one.error), n=len(sentences), layers=rows)


def token_vectors(encoder: Encoder, file: Path | str, sentences: Sequence[Sentence]) -> Encoder:
    """The vectors of another engine as a model that `ctxexp.measure` takes: the layers that are the checkpoint's hidden
    states as they are, tokens of a word averaged.

    Args:
        encoder: The checkpoint's.
        file: Vectors of every token, as for `check`.
        sentences: Their sentences, with words.

    Returns:
        The model, of these sentences alone.

    Raises:
        DataError: No layer of the file is a hidden state, or the file isn't of these sentences.
    """
    found, vectors, states = _read(encoder, Path(file), sentences)
    plain = {one.nearest: i for i, one in enumerate(found.layers) if one.is_plain}
    if not plain or found.arrangement.shift:
        raise DataError(f"{file}: {found}")
    arrays: dict[Sentence, np.ndarray] = {}
    for sentence, of, own in zip(sentences, vectors, states, strict=True):
        x = _arrange(of, own, found.arrangement)[[plain[i] for i in sorted(plain)]]
        if found.arrangement.rows != "words":
            first = int(own.words[0, 0]) if found.arrangement.rows == "text" else 0
            x = np.stack([x[:, a - first : a - first + n].mean(axis=1) for a, n in own.words.tolist()], axis=1)
        arrays.setdefault(sentence, x.astype(np.float32))
    model = from_arrays(arrays.values(), arrays, name=Path(file).stem)
    model.n_layers = found.n_layers
    model.layers = tuple(sorted(plain)) if len(plain) < found.n_layers else None
    model.details = {"architecture": "vectors of another engine", "layers_of_file": str(found)}
    return model


def _read(
    encoder: Encoder, file: Path, sentences: Sequence[Sentence]
) -> tuple[TokenCheck, list[np.ndarray], list[TokenStates]]:
    states = [encoder.token_states(sentence) for sentence in sentences]
    vectors, names, _ = read_vectors(file, states)
    if len(vectors) != len(states):
        raise DataError(f"{file} has vectors of {len(vectors)} sentences, the text {len(states)} sentences (text=)")
    return identify(vectors, states, names), vectors, states
