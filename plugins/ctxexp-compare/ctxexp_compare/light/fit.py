"""Fitting a floor: quantiles by kind, layer and domain, and how well half of a text foretells the other.

Longer texts are averages of more vectors, so that their cosines lie higher and closer together. So beside the
quantiles of all pairs stand those by length, each a polynomial in the logarithms of both lengths, fitted to the
quantiles of cells of pairs of like lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .pairs import WORDS, Pairs, Rows

TAILS = np.array(
    [0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02,
     0.01, 0.005, 0.002, 0.001, 0.0005]
)  # fmt: skip
"""The probabilities that a cosine is at least its quantile: quantiles ascend."""
TAIL = 0.1  # probabilities up to it are those of high cosines
CELLS = 6  # by the product of lengths; each is halved by their ratio
PER_CELL = 200  # pairs at least
TERMS = 5  # of a quantile: that of all pairs, and four of lengths


def terms(lengths: np.ndarray) -> np.ndarray:
    """(m, 4) of pairs of lengths (m, 2), the same whichever stands first."""
    a, b = np.log(np.maximum(lengths, 1).astype(np.float64)).T
    return np.stack([np.ones_like(a), a + b, np.square(a + b), np.square(a - b)], axis=1)


def quantiles_of(cosines: np.ndarray) -> np.ndarray:
    """The quantiles (quantiles,) of cosines (m,)."""
    result: np.ndarray = np.quantile(cosines, 1 - TAILS)
    return result


def fit_quantiles(cosines: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Coefficients (quantiles, TERMS) for cosines (m,) of pairs of lengths (m, 2); without lengths, or where they
    hardly vary, they don't count."""
    coefficients = np.zeros((len(TAILS), TERMS))
    coefficients[:, 0] = coefficients[:, 1] = quantiles_of(cosines)
    cells = [] if lengths is None else cells_of(lengths)
    if lengths is not None and len(cells) > 2:
        design = np.array([terms(lengths[at]).mean(axis=0) for at in cells])[:, : 2 if len(cells) < 8 else None]
        weight = np.sqrt([len(at) for at in cells])[:, None]
        values = np.array([quantiles_of(cosines[at]) for at in cells])
        solved = np.linalg.lstsq(weight * design, weight * values, rcond=1e-6)[0]
        coefficients[:, 1 : 1 + len(solved)] = solved.T
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
    """(quantiles,) ascending, for a pair of these lengths; None: of all pairs."""
    own = coefficients[:, 0] if lengths is None else coefficients[:, 1:] @ terms(np.array([lengths]))[0]
    return np.maximum.accumulate(own)


def tail_probability(cosine: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The probability that an unrelated pair has this cosine or more, given its quantiles `at`; beyond the outermost
    quantiles, theirs."""
    return np.interp(cosine, at, TAILS)


class FloorFit(NamedTuple):
    """`coefficients` of pairs of one domain and `across` of two (kinds, layers, quantiles, TERMS; None of a single
    domain), `offsets` of each domain (domains, kinds, layers, quantiles, 2), of all pairs and at their lengths,
    `held_out` (kinds, layers), and the lengths of the shortest and the longest sentence."""

    coefficients: np.ndarray
    across: np.ndarray | None
    offsets: np.ndarray
    held_out: np.ndarray
    lengths: tuple[int, int]


def fit_rows(rows: Mapping[str, Rows], n_domains: int, *, most: int, seed: int = 0) -> FloorFit:
    """Fit every kind and layer of the rows, with at most so many pairs."""
    shape = (len(rows), len(next(iter(rows.values())).vectors))
    coefficients = np.zeros((*shape, len(TAILS), TERMS))
    across = np.zeros_like(coefficients) if n_domains > 1 else None
    offsets = np.zeros((n_domains, *shape, len(TAILS), 2))
    held_out = np.zeros(shape)
    for i, (kind, own) in enumerate(rows.items()):
        pairs = own.pairs(np.random.default_rng(seed), most)
        halves = [_of_half(own, pairs, half) for half in (0, 1)]
        apart = own.pairs(np.random.default_rng(seed), most, across=True) if across is not None else None
        sizes = None if kind == WORDS else own.lengths(pairs)
        for j in range(shape[1]):
            cosines = own.cosines(j, pairs)
            known = np.isfinite(cosines)
            coefficients[i, j] = _fit(cosines, sizes, known)
            held_out[i, j] = tail_error(*(cosines[known & half] for half in halves))
            if across is not None and apart is not None:
                values = own.cosines(j, apart)
                across[i, j] = _fit(values, None if kind == WORDS else own.lengths(apart), np.isfinite(values))
            for k in range(n_domains):
                which = known & (pairs.domain == k)
                if which.any():
                    offsets[k, i, j] = _offset(coefficients[i, j], cosines[which], sizes, which)
    lengths = [own.length for kind, own in rows.items() if kind != WORDS] or [np.array([1])]
    bounds = max(1, min(int(one.min()) for one in lengths)), max(1, max(int(one.max()) for one in lengths))
    return FloorFit(coefficients, across, offsets, held_out, bounds)


def tail_error(one: np.ndarray, other: np.ndarray) -> float:
    """How far a share of pairs is off, at most, that should reach a quantile of up to TAIL: of either half's cosines in
    the other, the mean."""
    high = TAILS <= TAIL
    errors = []
    for fitted, tested in ((one, other), (other, one)):
        at = quantiles_of(fitted)[high] if len(fitted) else np.full(high.sum(), np.nan)
        shares = (tested[:, None] >= at).mean(axis=0) if len(tested) else np.full(high.sum(), np.nan)
        errors.append(np.abs(shares - TAILS[high]).max())
    return float(np.mean(errors))


def _of_half(rows: Rows, pairs: Pairs, half: int) -> np.ndarray:
    """(m,) bool: pairs of two sentences of this half of the text."""
    parity = np.random.default_rng(1).permutation(int(rows.sentence.max()) + 1) % 2 == half
    return parity[rows.sentence[pairs.first]] & parity[rows.sentence[pairs.second]]


def _fit(cosines: np.ndarray, lengths: np.ndarray | None, which: np.ndarray) -> np.ndarray:
    return fit_quantiles(cosines[which], None if lengths is None else lengths[which])


def _offset(coefficients: np.ndarray, own: np.ndarray, lengths: np.ndarray | None, which: np.ndarray) -> np.ndarray:
    """How far the quantiles of a domain's pairs lie above those of all (quantiles, 2): as they are, and at their
    lengths."""
    above = quantiles_of(own) - coefficients[:, 0]
    if lengths is None:
        return np.stack([above, above], axis=1)
    sizes = lengths[which]
    cells = cells_of(sizes)
    parts = [quantiles_of(own[at]) - terms(sizes[at]).mean(axis=0) @ coefficients[:, 1:].T for at in cells]
    return np.stack([above, np.average(parts, axis=0, weights=[len(at) for at in cells])], axis=1)
