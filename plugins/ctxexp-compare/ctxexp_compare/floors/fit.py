"""Fitting a floor: quantiles by kind, layer and domain, and how well half of a text foretells the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ctxexp_compare.floors.null import TAILS, TERMS, cells_of, fit_quantiles, quantiles, tail_probability, terms
from ctxexp_compare.floors.sample import WORDS, Pairs, Rows


class FloorFit(NamedTuple):
    """`coefficients` (kinds, layers, quantiles, terms), `offsets` (domains, kinds, layers, quantiles), `held_out`
    (kinds, layers), and the lengths of the shortest and the longest sentence."""

    coefficients: np.ndarray
    offsets: np.ndarray
    held_out: np.ndarray
    lengths: tuple[int, int]


def fit_rows(rows: Mapping[str, Rows], n_domains: int, *, most: int, seed: int = 0) -> FloorFit:
    """Fit every kind and layer of the rows, with at most so many pairs."""
    n_layers = len(next(iter(rows.values())).vectors)
    shape = (len(rows), n_layers)
    coefficients = np.zeros((*shape, len(TAILS), TERMS))
    offsets = np.zeros((n_domains, *shape, len(TAILS)))
    held_out = np.zeros(shape)
    for i, (kind, own) in enumerate(rows.items()):
        pairs = own.pairs(np.random.default_rng(seed), most)
        halves = [_of_half(own, pairs, half) for half in (0, 1)]
        sizes = None if kind == WORDS else own.lengths(pairs)
        for j in range(n_layers):
            cosines = own.cosines(j, pairs)
            known = np.isfinite(cosines)
            coefficients[i, j] = _fit(cosines, sizes, known)
            errors = [
                calibration_error(_fit(cosines, sizes, known & fitted), cosines, sizes, known & tested)
                for fitted, tested in (halves, halves[::-1])
            ]
            held_out[i, j] = np.mean(errors)
            for k in range(n_domains):
                offsets[k, i, j] = _offset(coefficients[i, j], cosines, sizes, known & (pairs.domain == k))
    lengths = [own.length for kind, own in rows.items() if kind != WORDS] or [np.array([1])]
    bounds = max(1, min(int(one.min()) for one in lengths)), max(1, max(int(one.max()) for one in lengths))
    return FloorFit(coefficients, offsets, held_out, bounds)


def probabilities(coefficients: np.ndarray, cosines: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
    """The probability (m,) of each pair's cosine (m,), of pairs of these lengths (m, 2)."""
    if lengths is None:
        return tail_probability(cosines, quantiles(coefficients, None))
    distinct, which = np.unique(np.sort(lengths, axis=1), axis=0, return_inverse=True)
    result = np.empty(len(cosines))
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(distinct)))
    every = np.maximum.accumulate(terms(distinct) @ coefficients.T, axis=1)
    for at, (begin, end) in enumerate(zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True)):
        own = order[begin:end]
        result[own] = tail_probability(cosines[own], every[at])
    return result


def calibration_error(
    coefficients: np.ndarray, cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray, most: float = 1.0
) -> float:
    """The largest difference between a probability p of at most `most` and the share of the pairs `which` that have p
    or less; NaN without pairs."""
    if not which.any():
        return float("nan")
    own = probabilities(coefficients, cosines[which], None if lengths is None else lengths[which])
    grid = TAILS[most >= TAILS]
    shares = np.searchsorted(np.sort(own), grid, side="right") / len(own)
    return float(np.abs(shares - grid).max())


def _of_half(rows: Rows, pairs: Pairs, half: int) -> np.ndarray:
    """(m,) bool: pairs of two sentences of this half of the text."""
    parity = np.random.default_rng(1).permutation(int(rows.sentence.max()) + 1) % 2 == half
    result: np.ndarray = parity[rows.sentence[pairs.first]] & parity[rows.sentence[pairs.second]]
    return result


def _fit(cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray) -> np.ndarray:
    return fit_quantiles(cosines[which], None if lengths is None else lengths[which])


def _offset(coefficients: np.ndarray, cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray) -> np.ndarray:
    """How far the quantiles of these pairs (quantiles,) lie above those of all, at their lengths."""
    if not which.any():
        return np.zeros(len(TAILS))
    if lengths is None:
        result: np.ndarray = np.quantile(cosines[which], 1 - TAILS) - quantiles(coefficients, None)
        return result
    own, sizes = cosines[which], lengths[which]
    cells = cells_of(sizes)
    parts = [np.quantile(own[at], 1 - TAILS) - terms(sizes[at]).mean(axis=0) @ coefficients.T for at in cells]
    result = np.average(parts, axis=0, weights=[len(at) for at in cells])
    return result
