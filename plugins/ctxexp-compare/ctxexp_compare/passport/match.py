"""Which layer is this? Vectors of another engine beside transformers' hidden states of the same checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import DataError
from ctxexp.models import TokenStates
from ctxexp_compare.attention_sinks.sinks import number_ranges

TOLERANCE = 0.1  # median relative error of a row, up to which a layer is named
ROUNDING = 0.03  # likewise, up to which it is rounding: a checkpoint computed in bfloat16 lies within
STORED = 0.005  # error of a row that was rounded to bfloat16 where it was stored, at most
UNEVEN = 10.0  # times the median: a row's rounding in bfloat16, at most
SCALE = 0.005  # of the factor common to a layer's rows, which no rounding moves
CLEARLY = 0.5  # of the next best layer's error, at most
EXACT = 1e-3  # an error below it needs no next best
CHUNK = 500  # rows that are looked for among all others at once
SEARCHED = 20  # sentences by which the arrangement is found; every row counts after
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
    scale: float = 1.0  # of all rows, where it isn't 1
    within: float = 1.0  # share of rows that differ by rounding alone
    worst_sentence: int = 0  # that of the row that differs most, from 0
    worst_error: float = 0.0
    faults: str = ""  # of the rows that differ by more, in words

    @property
    def is_plain(self) -> bool:
        """Whether every row is that hidden state's as transformers gives it, but for rounding."""
        is_state = self.layer is not None and not self.norm and not self.is_unit_length
        return is_state and self.scale == 1 and self.within == 1


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

    @property
    def is_whole(self) -> bool:
        """Whether every hidden state is in its place, in every row as transformers gives it."""
        in_place = all(one.is_plain and one.layer == one.name for one in self.layers)
        return in_place and not self.missing and not self.arrangement.notes


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
    best: tuple[float, Arrangement] | None = None
    for arrangement in _arrangements(vectors, states):
        score = float(np.median(_fit(vectors[:SEARCHED], states[:SEARCHED], arrangement).medians.min(axis=1)))
        if best is None or score < best[0] * 0.999:
            best = score, arrangement
    if best is None:
        tokens = [len(s.ids) for s in states]
        raise DataError(
            f"arrays of shape {vectors[0].shape}; expected axes of layers, tokens and columns in any order: "
            f"{tokens[0]} tokens (or {len(states[0].words)} words) in the first sentence, {dim} columns"
        )
    arrangement = best[1]
    fit = _fit(vectors, states, arrangement)
    n = len(fit.medians)
    numbers = range(n) if names is None or len(names) != n else names
    found = [_identify(name, i, fit) for i, name in enumerate(numbers)]
    if any(one.within < 1 for one in found):
        found = [_with_faults(one, i, fit, vectors, states, arrangement) for i, one in enumerate(found)]
    return Passport(states[0].layers.shape[0], tuple(found), arrangement)


Key = tuple[int, Norm, bool]  # layer, norm, whether rows are scaled to length 1


class Fit(NamedTuple):
    """How far rows lie from those of each candidate, once a factor common to a layer's rows is taken off."""

    keys: list[Key]
    errors: np.ndarray  # (rows, layers, candidates) in lengths of the candidate's row
    scales: np.ndarray  # (layers, candidates)
    medians: np.ndarray  # (layers, candidates) over rows
    sentence: np.ndarray  # (rows,)


def _fit(vectors: Sequence[np.ndarray], states: Sequence[TokenStates], arrangement: Arrangement) -> Fit:
    products, squares, lengths, sentence = [], [], [], []
    keys: list[Key] = []
    for i, (of, own) in enumerate(zip(vectors, states, strict=True)):
        x = arrange(of, arrangement)[:, _overlap(own, arrangement)]
        variants = _variants(own, arrangement)
        keys = [key for key, _ in variants]
        r = np.stack([row for _, row in variants])
        products.append(np.matmul(x.transpose(1, 0, 2), r.transpose(1, 2, 0)))
        squares.append(np.square(x).sum(axis=2).T)
        lengths.append(np.square(r).sum(axis=2).T)
        sentence += [i] * x.shape[1]
    xr, xx, rr = (np.concatenate(of) for of in (products, squares, lengths))
    rr = np.maximum(rr, np.finfo(np.float64).tiny)[:, None]

    def errors_at(scale: np.ndarray | float) -> np.ndarray:
        square = xx[:, :, None] - 2 * scale * xr + np.square(scale) * rr
        return np.sqrt(np.maximum(square, 0) / rr) / scale

    scales, plain = np.median(xr / rr, axis=0), errors_at(1.0)
    scales = np.where((np.abs(scales - 1) > SCALE) & (scales > 0), scales, 1.0)
    scaled = errors_at(scales)
    is_scaled = np.median(scaled, axis=0) < CLEARLY * np.median(plain, axis=0)
    errors, scales = np.where(is_scaled, scaled, plain), np.where(is_scaled, scales, 1.0)
    return Fit(keys, errors, scales, np.median(errors, axis=0), np.array(sentence))


def _identify(name: int, at: int, fit: Fit) -> LayerIdentity:
    medians = fit.medians[at]
    best = int(medians.argmin())
    layer, norm, unit = fit.keys[best]
    others = np.array([np.inf if key[0] == layer else one for key, one in zip(fit.keys, medians, strict=True)])
    rival = int(others.argmin())
    error, next_error = float(medians[best]), float(others[rival])
    if error > EXACT and (error > TOLERANCE or error > CLEARLY * next_error):
        return LayerIdentity(name, None, "", False, error, layer, next_error)
    rows = fit.errors[:, at, best]
    worst = int(rows.argmax())
    return LayerIdentity(
        name, layer, norm, unit, error, fit.keys[rival][0], next_error, float(fit.scales[at, best]),
        float(_is_within(rows).mean()), int(fit.sentence[worst]), float(rows[worst]),
    )  # fmt: skip


def _is_within(errors: np.ndarray) -> np.ndarray:
    """(rows,) bool: which differ by rounding, of which the median row tells how coarse it is; none if that is off."""
    middle = float(np.median(errors))
    largest = max(STORED, min(UNEVEN * middle, TOLERANCE)) if middle <= ROUNDING else 0.0
    return errors <= largest


def _with_faults(
    one: LayerIdentity,
    at: int,
    fit: Fit,
    vectors: Sequence[np.ndarray],
    states: Sequence[TokenStates],
    arrangement: Arrangement,
) -> LayerIdentity:
    """The identity with what its rows are that differ by more than rounding."""
    if one.within == 1:
        return one
    best = fit.keys.index((one.layer, one.norm, one.is_unit_length))  # type: ignore[arg-type]
    (wrong,) = np.nonzero(~_is_within(fit.errors[:, at, best]))
    overlaps = [_overlap(s, arrangement) for s in states]
    x = np.concatenate([arrange(v, arrangement)[at][keep] for v, keep in zip(vectors, overlaps, strict=True)])
    r = np.concatenate([_variants(s, arrangement)[best][1] for s in states])
    is_zero = np.square(x[wrong]).sum(axis=1) < 1e-12 * np.square(r[wrong]).sum(axis=1)
    is_other = np.zeros(len(wrong), bool)
    if one.within > 0:  # else they have one cause
        is_other = _nearest(x[wrong] / one.scale, r) < CLEARLY * fit.errors[wrong, at, best]
    share = np.bincount(fit.sentence[wrong], minlength=len(states)) / np.bincount(fit.sentence, minlength=len(states))
    whole = share[fit.sentence[wrong]] > 0.5
    kinds = {"zero": is_zero, "another sentence's": is_other & whole, "another token's": is_other & ~whole}
    kinds["off by more than rounding"] = ~np.any(list(kinds.values()), axis=0)
    first = set(np.unique(fit.sentence, return_index=True)[1].tolist())
    told = [f"{kind.sum()} {'is' if kind.sum() == 1 else 'are'} {name}" for name, kind in kinds.items() if kind.any()]
    are_first = ", each the first of its sentence" if len(first) > 1 and set(wrong.tolist()) <= first else ""
    return replace(one, faults=f"of {len(x)} rows {', '.join(told)}{are_first}")


def _nearest(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n,) the smallest error of each of x (n, dim) from any of the rows, in lengths of that row."""
    length = np.maximum(np.square(rows).sum(axis=1), np.finfo(np.float64).tiny)
    found = []
    for own in np.array_split(x, 1 + len(x) // CHUNK):
        square = np.square(own).sum(axis=1)[:, None] - 2 * own @ rows.T + length
        found.append(np.sqrt(np.maximum(square / length, 0).min(axis=1)))
    return np.concatenate(found)


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


def _variants(states: TokenStates, arrangement: Arrangement) -> list[tuple[Key, np.ndarray]]:
    """The candidates for a layer: a hidden state, that before or after the final norm, and each at length 1."""
    last = states.layers.shape[0] - 1
    sources: list[tuple[int, Norm, np.ndarray]] = [(i, "", x) for i, x in enumerate(states.layers)]
    if states.before_norm is not None:
        sources.append((last, "before the final norm", states.before_norm))
    if states.normed is not None:
        sources += [(i, "after the final norm", states.normed[i]) for i in range(last)]
    variants: list[tuple[Key, np.ndarray]] = []
    for layer, norm, of in sources:
        x = _select(of, states, arrangement)
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        variants += [((layer, norm, False), x), ((layer, norm, True), x / np.where(lengths > 0, lengths, 1))]
    return variants


def describe(passport: Passport) -> str:
    """The passport's sentence: which layers here are which hidden states, what is missing, and how the arrays lie."""
    parts = [_run(run) for run in _runs(passport.layers)]
    if missing := passport.missing:
        several = len(missing) > 1
        parts.append(f"layer{'s' * several} {number_ranges(missing)} {'are' if several else 'is'} missing")
    return "; ".join([*parts, *passport.arrangement.notes])


def _runs(layers: Sequence[LayerIdentity]) -> list[list[LayerIdentity]]:
    """Neighbours that stand in one relation to the checkpoint's layers."""

    def relation(numbered: tuple[int, LayerIdentity]) -> tuple[object, ...]:
        i, one = numbered
        look = one.norm, one.is_unit_length, round(one.scale, 2), one.faults
        return (i,) if one.layer is None else (one.name - i, one.layer - i, *look)

    return [[one for _, one in run] for _, run in groupby(enumerate(layers), relation)]


def _run(run: Sequence[LayerIdentity]) -> str:
    first, last = run[0], run[-1]
    if first.layer is None:
        return (
            f"layer {first.name} here is no hidden state of this checkpoint (nearest: {first.next_layer}, rows differ "
            f"by {first.error:.2g} of their length)"
        )
    suffix = (f" {first.norm}" if first.norm else "") + (", scaled to length 1" if first.is_unit_length else "")
    suffix += f", scaled by {first.scale:.3g}" if first.scale != 1 else ""
    error = max(one.error for one in run)
    suffix += f" (rows differ by {error:.2g} of their length)" if error > 1e-3 else ""
    if first.faults:
        worst = max(run, key=lambda one: one.worst_error)
        off = f"sentence {worst.worst_sentence + 1} is off most, by {worst.worst_error:.2g} of a row's length"
        suffix += f", but {min(first.within, 0.99):.0%} of its rows alone: {first.faults}; {off}"
    if len(run) == 1:
        return f"layer {first.name} here is hidden_states[{first.layer}]{suffix}"
    here = f"layers {first.name} to {last.name} here are"
    return f"{here} hidden_states[{first.layer}] to hidden_states[{last.layer}]{suffix}"
