"""Which layer is this? Vectors of another engine beside transformers' hidden states of the same checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import DataError
from ctxexp.models import TokenStates
from ctxexp_compare.attention_sinks.found import number_ranges

TOLERANCE = 0.1  # median relative error of a row: rounding to eight bits and below lies within
CLEARLY = 0.5  # of the next best layer's error, at most
EXACT = 1e-3  # an error below it needs no next best
AXES = ("layers", "tokens", "columns")
Norm = Literal["", "before the final norm", "after the final norm"]


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
            notes.append(
                f"row 0 here is token {self.shift}" if self.shift > 0 else f"row {-self.shift} here is token 0"
            )
        return notes


@dataclass(frozen=True)
class LayerIdentity:
    """A layer of the file: the layer of the checkpoint that it is (None: none), its norm, and how far off it is."""

    name: int
    layer: int | None
    norm: Norm
    is_unit_length: bool
    error: float  # median relative error of a row
    next_layer: int  # the next best other layer
    next_error: float

    @property
    def is_plain(self) -> bool:
        """Whether it is that hidden state as transformers gives it."""
        return self.layer is not None and not self.norm and not self.is_unit_length


@dataclass(frozen=True)
class Passport:
    """The identities of a file's layers, how its arrays lie, and the checkpoint's layers that are missing."""

    n_layers: int
    layers: tuple[LayerIdentity, ...]
    arrangement: Arrangement

    @property
    def missing(self) -> tuple[int, ...]:
        """The checkpoint's layers that the file lacks, whatever was normed in those that it has."""
        there = {one.layer for one in self.layers}
        return tuple(i for i in range(self.n_layers) if i not in there)


def make_passport(
    vectors: Sequence[np.ndarray], states: Sequence[TokenStates], names: Sequence[int] | None = None
) -> Passport:
    """The passport of vectors.

    Args:
        vectors: For each sentence an array with axes of layers, rows and columns in any order.
        states: The checkpoint's own, of the same sentences.
        names: The numbers that the file gives its layers; None: from 0.

    Returns:
        The passport.

    Raises:
        DataError: No arrangement of the axes fits the sentences' tokens and the model's width.
    """
    if len(vectors) != len(states) or not len(states):
        raise DataError(f"vectors of {len(vectors)} sentences, but the text has {len(states)}; expected one array each")
    dim = states[0].layers.shape[2]
    best: tuple[float, Arrangement, np.ndarray, np.ndarray] | None = None
    for arrangement in _arrangements(vectors, states):
        x = np.concatenate([arrange(v, arrangement) for v in vectors], axis=1)
        keep = np.concatenate([_overlap(s, arrangement) for s in states])
        errors = _errors(x[:, keep], _variants(states, arrangement))
        score = float(np.median(errors.min(axis=1)))
        if best is None or score < best[0] * 0.999:
            best = score, arrangement, x[:, keep], errors
    if best is None:
        tokens = [len(s.ids) for s in states]
        raise DataError(
            f"arrays of shape {vectors[0].shape}; expected axes of layers, tokens and columns in any order: "
            f"{tokens[0]} tokens (or {len(states[0].words)} words) in the first sentence, {dim} columns"
        )
    _, arrangement, x, errors = best
    keys = [key for key, _ in _variants(states, arrangement)]
    numbers = range(len(x)) if names is None or len(names) != len(x) else names
    found = [_identify(name, row, keys) for name, row in zip(numbers, errors, strict=True)]
    return Passport(states[0].layers.shape[0], tuple(found), arrangement)


Key = tuple[int, Norm, bool]  # layer, norm, whether rows are scaled to length 1


def _identify(name: int, errors: np.ndarray, keys: Sequence[Key]) -> LayerIdentity:
    best = int(errors.argmin())
    layer, norm, unit = keys[best]
    others = np.array([np.inf if key[0] == layer else error for key, error in zip(keys, errors, strict=True)])
    rival = int(others.argmin())
    error, next_error = float(errors[best]), float(others[rival])
    sure = error <= EXACT or (error <= TOLERANCE and error <= CLEARLY * next_error)
    return LayerIdentity(
        name,
        layer if sure else None,
        norm if sure else "",
        unit and sure,
        error,
        keys[rival][0] if sure else layer,
        next_error,
    )


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


def arrange(x: np.ndarray, arrangement: Arrangement) -> np.ndarray:
    """The array as (layers, rows, columns) float64."""
    x = np.asarray(x, np.float64).transpose(arrangement.axes)
    if arrangement.other_order:
        layers, rows, columns = x.shape
        x = np.ascontiguousarray(x).reshape(layers, columns, rows).transpose(0, 2, 1)
    return x


def _rows(states: TokenStates, rows: str) -> np.ndarray:
    """Token numbers of the rows; of words their first token's."""
    if rows == "words":
        return np.asarray(states.words[:, 0])
    if rows == "text":
        ends = states.words.sum(axis=1)
        return np.arange(states.words[:, 0].min(initial=len(states.ids)), ends.max(initial=0))
    return np.arange(len(states.ids))


def _overlap(states: TokenStates, arrangement: Arrangement) -> np.ndarray:
    """Which rows (n,) have a token of the sentence at their shifted place."""
    n = len(_rows(states, arrangement.rows))
    at = np.arange(n) + arrangement.shift
    return np.asarray((at >= 0) & (at < n))


def _select(x: np.ndarray, states: TokenStates, arrangement: Arrangement) -> np.ndarray:
    """(rows that overlap, dim) float64 of token vectors (tokens, dim)."""
    x = x.astype(np.float64)
    if arrangement.rows == "words":
        return np.stack([x[a : a + n].mean(axis=0) for a, n in states.words.tolist()])
    tokens = _rows(states, arrangement.rows)
    at = np.arange(len(tokens)) + arrangement.shift
    return np.asarray(x[tokens[at[(at >= 0) & (at < len(tokens))]]])


def _variants(states: Sequence[TokenStates], arrangement: Arrangement) -> list[tuple[Key, np.ndarray]]:
    """The candidates for a layer: a hidden state, that before or after the final norm, and each at length 1."""
    last = states[0].layers.shape[0] - 1
    sources: list[tuple[int, Norm, list[np.ndarray]]] = [
        (i, "", [s.layers[i] for s in states]) for i in range(last + 1)
    ]
    before = [s.before_norm for s in states if s.before_norm is not None]
    if len(before) == len(states):
        sources.append((last, "before the final norm", before))
    normed = [s.normed for s in states if s.normed is not None]
    if len(normed) == len(states):
        sources += [(i, "after the final norm", [x[i] for x in normed]) for i in range(last)]
    variants: list[tuple[Key, np.ndarray]] = []
    for layer, norm, of in sources:
        x = np.concatenate([_select(v, s, arrangement) for v, s in zip(of, states, strict=True)])
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        variants.append(((layer, norm, False), x))
        if np.abs(lengths - 1).max() > 0.01:
            variants.append(((layer, norm, True), x / np.where(lengths > 0, lengths, 1)))
    return variants


def _errors(x: np.ndarray, variants: Sequence[tuple[Key, np.ndarray]]) -> np.ndarray:
    """(layers, variants) the median over rows of |x - r| / |r|."""
    result = np.empty((len(x), len(variants)))
    for j, (_, reference) in enumerate(variants):
        scale = np.maximum(np.linalg.norm(reference, axis=1), np.finfo(np.float64).tiny)
        result[:, j] = np.median(np.linalg.norm(x - reference, axis=2) / scale, axis=1)
    return result


def describe(passport: Passport) -> str:
    """The passport's sentence: which layers here are which hidden states, what is missing, and how the arrays lie."""
    parts = [_run(run) for run in _runs(passport.layers)]
    if missing := passport.missing:
        several = len(missing) > 1
        parts.append(f"layer{'s' * several} {number_ranges(missing)} {'are' if several else 'is'} missing")
    return "; ".join([*parts, *passport.arrangement.notes])


def _runs(layers: Sequence[LayerIdentity]) -> list[list[LayerIdentity]]:
    """Neighbours that stand in one relation to the checkpoint's layers."""
    runs: list[list[LayerIdentity]] = []
    for one in layers:
        last = runs[-1][-1] if runs else None
        same = last is not None and one.layer is not None and last.layer is not None
        if same and last is not None and one.layer is not None and last.layer is not None:
            steps = one.name - last.name, one.layer - last.layer
            alike = (one.norm, one.is_unit_length) == (last.norm, last.is_unit_length)
            if steps == (1, 1) and alike:
                runs[-1].append(one)
                continue
        runs.append([one])
    return runs


def _run(run: Sequence[LayerIdentity]) -> str:
    first, last = run[0], run[-1]
    if first.layer is None:
        return (
            f"layer {first.name} here is no hidden state of this checkpoint (nearest: {first.next_layer}, rows differ "
            f"by {first.error:.2g} of their length)"
        )
    suffix = (f" {first.norm}" if first.norm else "") + (", scaled to length 1" if first.is_unit_length else "")
    error = max(one.error for one in run)
    suffix += f" (rows differ by {error:.2g} of their length)" if error > 1e-3 else ""
    if len(run) == 1:
        return f"layer {first.name} here is hidden_states[{first.layer}]{suffix}"
    here = f"layers {first.name} to {last.name} here are"
    return f"{here} hidden_states[{first.layer}] to hidden_states[{last.layer}]{suffix}"
