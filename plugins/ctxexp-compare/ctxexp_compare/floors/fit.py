"""Fitting a floor: quantiles by kind, layer and domain, and how well half of a text foretells the other.

Longer texts are averages of more vectors, so that their cosines lie higher and closer together. Each quantile is a
polynomial in the logarithms of the lengths, fitted to the quantiles of cells of pairs of like lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ctxexp_compare.floors.sample import WORDS, Pairs, Rows

TAILS = np.array(
    [0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02,
     0.01, 0.005, 0.002, 0.001, 0.0005]
)  # fmt: skip
"""The probabilities that a cosine is at least its quantile: quantiles ascend."""
TAIL = 0.1  # probabilities up to it are those of high cosines
CELLS = 6  # by the product of lengths; each is halved by their ratio
PER_CELL = 200  # pairs at least
TERMS = 4


def terms(lengths: np.ndarray) -> np.ndarray:
    """(m, TERMS) of pairs of lengths (m, 2), the same whichever stands first."""
    a, b = np.log(np.maximum(lengths, 1).astype(np.float64)).T
    return np.stack([np.ones_like(a), a + b, np.square(a + b), np.square(a - b)], axis=1)


def fit_quantiles(cosines: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Coefficients (quantiles, TERMS) for cosines (m,) of pairs of lengths (m, 2); without lengths, or where they
    hardly vary, all but the first are 0."""
    coefficients = np.zeros((len(TAILS), TERMS))
    cells = [np.arange(len(cosines))] if lengths is None else cells_of(lengths)
    design = (
        np.array([[1.0, 0, 0, 0]]) if lengths is None else np.array([terms(lengths[at]).mean(axis=0) for at in cells])
    )
    n_terms = 1 if len(cells) < 3 else 2 if len(cells) < 8 else TERMS
    weight = np.sqrt([len(at) for at in cells])
    values = np.array([np.quantile(cosines[at], 1 - TAILS) for at in cells])
    solved = np.linalg.lstsq(weight[:, None] * design[:, :n_terms], weight[:, None] * values, rcond=1e-6)[0]
    coefficients[:, :n_terms] = solved.T
    return coefficients


def cells_of(lengths: np.ndarray) -> list[np.ndarray]:
    """The pairs (positions) of each cell of like lengths; cells have PER_CELL pairs at least."""
    _, total, _, ratio = terms(lengths).T
    n = int(np.clip(len(lengths) // (2 * PER_CELL), 1, CELLS))
    edges = np.unique(np.quantile(total, np.linspace(0, 1, n + 1)[1:-1]))
    number = np.searchsorted(edges, total, side="right")
    cells: list[np.ndarray] = []
    for i in range(len(edges) + 1):
        (at,) = np.nonzero(number == i)
        far = ratio[at] > np.median(ratio[at]) if len(at) else np.zeros(0, bool)
        halves = [at[~far], at[far]]
        cells += halves if min(map(len, halves)) >= PER_CELL else [at] if len(at) else []
    return cells


def quantiles(coefficients: np.ndarray, lengths: tuple[float, float] | None) -> np.ndarray:
    """(quantiles,) ascending, for a pair of these lengths."""
    design = np.eye(1, TERMS) if lengths is None else terms(np.array([lengths]))
    return np.maximum.accumulate(coefficients @ design[0])


def tail_probability(cosine: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The probability that an unrelated pair has this cosine or more, given its quantiles `at`; beyond the outermost
    quantiles, theirs."""
    return np.interp(cosine, at, TAILS)


class FloorFit(NamedTuple):
    """`coefficients` of pairs of one domain and `across` of two (kinds, layers, quantiles, terms; None of a single
    domain), `offsets` (domains, kinds, layers, quantiles), `held_out` (kinds, layers), and the lengths of the shortest
    and the longest sentence."""

    coefficients: np.ndarray
    across: np.ndarray | None
    offsets: np.ndarray
    held_out: np.ndarray
    lengths: tuple[int, int]


def fit_rows(rows: Mapping[str, Rows], n_domains: int, *, most: int, seed: int = 0) -> FloorFit:
    """Fit every kind and layer of the rows, with at most so many pairs."""
    n_layers = len(next(iter(rows.values())).vectors)
    shape = (len(rows), n_layers)
    coefficients = np.zeros((*shape, len(TAILS), TERMS))
    across = np.zeros_like(coefficients) if n_domains > 1 else None
    offsets = np.zeros((n_domains, *shape, len(TAILS)))
    held_out = np.zeros(shape)
    for i, (kind, own) in enumerate(rows.items()):
        pairs = own.pairs(np.random.default_rng(seed), most)
        halves = [_of_half(own, pairs, half) for half in (0, 1)]
        apart = own.pairs(np.random.default_rng(seed), most, across=True) if across is not None else None
        sizes = None if kind == WORDS else own.lengths(pairs)
        for j in range(n_layers):
            cosines = own.cosines(j, pairs)
            known = np.isfinite(cosines)
            coefficients[i, j] = _fit(cosines, sizes, known)
            held_out[i, j] = _tail_error(cosines, sizes, [known & half for half in halves])
            if across is not None and apart is not None:
                across[i, j] = _fit(own.cosines(j, apart), None if kind == WORDS else own.lengths(apart))
            for k in range(n_domains):
                offsets[k, i, j] = _offset(coefficients[i, j], cosines, sizes, known & (pairs.domain == k))
    lengths = [own.length for kind, own in rows.items() if kind != WORDS] or [np.array([1])]
    bounds = max(1, min(int(one.min()) for one in lengths)), max(1, max(int(one.max()) for one in lengths))
    return FloorFit(coefficients, across, offsets, held_out, bounds)


def fit_pairs(cosines: np.ndarray, lengths: np.ndarray | None) -> FloorFit:
    """Fit the cosines (m,) of unrelated pairs that are given, of two sentences of these lengths (m, 2)."""
    half = np.random.default_rng(1).permutation(len(cosines)) % 2 == 0
    error = _tail_error(cosines, lengths, [half, ~half])
    bounds = (1, 1) if lengths is None else (int(lengths.min()), int(lengths.max()))
    shape = 1, 1, 1, len(TAILS)
    coefficients = fit_quantiles(cosines, lengths)[None, None]
    return FloorFit(coefficients, None, np.zeros(shape), np.array([[error]]), bounds)


def _tail_error(cosines: np.ndarray, lengths: np.ndarray | None, halves: list[np.ndarray]) -> float:
    """The error of probabilities of at most TAIL in one half of the pairs, fitted to the other: the mean of two."""
    errors = [
        calibration_error(_fit(cosines, lengths, fitted), cosines, lengths, tested, TAIL)
        for fitted, tested in (halves, halves[::-1])
    ]
    return float(np.mean(errors))


def calibration_error(
    coefficients: np.ndarray, cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray, most: float = 1.0
) -> float:
    """The largest difference between a probability p of at most `most` and the share of the pairs `which` that reach
    its quantile; NaN without pairs."""
    if not which.any():
        return float("nan")
    design = np.eye(1, TERMS) if lengths is None else terms(lengths[which])
    grid = most >= TAILS
    at = np.maximum.accumulate(design @ coefficients.T, axis=1)[:, grid]  # (pairs or 1, probabilities)
    return float(np.abs((cosines[which][:, None] >= at).mean(axis=0) - TAILS[grid]).max())


def _of_half(rows: Rows, pairs: Pairs, half: int) -> np.ndarray:
    """(m,) bool: pairs of two sentences of this half of the text."""
    parity = np.random.default_rng(1).permutation(int(rows.sentence.max()) + 1) % 2 == half
    return parity[rows.sentence[pairs.first]] & parity[rows.sentence[pairs.second]]


def _fit(cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray | None = None) -> np.ndarray:
    kept = np.isfinite(cosines) if which is None else which
    return fit_quantiles(cosines[kept], None if lengths is None else lengths[kept])


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
