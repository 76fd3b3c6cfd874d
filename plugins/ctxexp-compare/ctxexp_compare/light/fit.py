"""Fitting a floor: quantiles by kind, layer and domain, and how well half of a text foretells the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .pairs import Pairs, Rows

TAILS = np.array(
    [0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02,
     0.01, 0.005, 0.002, 0.001, 0.0005]
)  # fmt: skip
"""The probabilities that a cosine is at least its quantile: quantiles ascend."""
TAIL = 0.1  # probabilities up to it are those of high cosines


def quantiles_of(cosines: np.ndarray) -> np.ndarray:
    """The quantiles (quantiles,) of those cosines (m,) that are numbers."""
    result: np.ndarray = np.quantile(cosines[np.isfinite(cosines)], 1 - TAILS)
    return result


def tail_probability(cosine: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The probability that an unrelated pair has this cosine or more, given its quantiles `at`; beyond the outermost
    quantiles, theirs."""
    return np.interp(cosine, at, TAILS)


class FloorFit(NamedTuple):
    """Quantiles of pairs `within` one domain and `across` two (kinds, layers, quantiles; None of a single domain),
    those of each domain (domains, kinds, layers, quantiles), `held_out` errors (kinds, layers), and how many
    `sentences` the domain with the fewest has."""

    within: np.ndarray
    across: np.ndarray | None
    by_domain: np.ndarray
    held_out: np.ndarray
    sentences: int


def fit_rows(rows: Mapping[str, Rows], n_domains: int, *, most: int, seed: int = 0) -> FloorFit:
    """Fit every kind and layer of the rows, with at most so many pairs."""
    shape = (len(rows), len(next(iter(rows.values())).vectors))
    within = np.zeros((*shape, len(TAILS)))
    across = np.zeros_like(within) if n_domains > 1 else None
    by_domain = np.zeros((n_domains, *within.shape))
    held_out = np.zeros(shape)
    for i, own in enumerate(rows.values()):
        pairs = own.pairs(np.random.default_rng(seed), most)
        halves = [_of_half(own, pairs, half) for half in (0, 1)]
        apart = own.pairs(np.random.default_rng(seed), most, across=True) if across is not None else None
        for j in range(shape[1]):
            cosines = own.cosines(j, pairs)
            known = np.isfinite(cosines)
            within[i, j] = quantiles_of(cosines)
            held_out[i, j] = tail_error(*(cosines[known & half] for half in halves))
            if across is not None and apart is not None:
                across[i, j] = quantiles_of(own.cosines(j, apart))
            for k in range(n_domains):
                which = known & (pairs.domain == k)
                by_domain[k, i, j] = quantiles_of(cosines[which]) if which.any() else within[i, j]
    counts = [len(np.unique(own.sentence[own.domain == k])) for k in range(n_domains)]
    return FloorFit(within, across, by_domain, held_out, min(counts))


def tail_error(one: np.ndarray, other: np.ndarray) -> float:
    """How far a share of pairs is off, at most, that should reach a quantile of up to TAIL: of either half's cosines in
    the other, the mean."""
    if not len(one) or not len(other):
        return float("nan")
    high = TAILS <= TAIL
    errors = []
    for fitted, tested in ((one, other), (other, one)):
        shares = (tested[:, None] >= quantiles_of(fitted)[high]).mean(axis=0)
        errors.append(np.abs(shares - TAILS[high]).max())
    return float(np.mean(errors))


def _of_half(rows: Rows, pairs: Pairs, half: int) -> np.ndarray:
    """(m,) bool: pairs of two sentences of this half of the text."""
    parity = np.random.default_rng(1).permutation(int(rows.sentence.max()) + 1) % 2 == half
    return parity[rows.sentence[pairs.first]] & parity[rows.sentence[pairs.second]]
