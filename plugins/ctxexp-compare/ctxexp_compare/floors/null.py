"""The distribution of cosines of unrelated pairs, as quantiles that vary smoothly with the two lengths.

Longer texts are averages of more vectors, so that their cosines lie higher and closer together. Each quantile is a
polynomial in the logarithms of the lengths, fitted to the quantiles of cells of pairs of like lengths.
"""

from __future__ import annotations

import numpy as np

TAILS = np.array(
    [0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02,
     0.01, 0.005, 0.002, 0.001, 0.0005]
)  # fmt: skip
"""The probabilities that a cosine is at least its quantile: quantiles ascend."""
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
    result: np.ndarray = np.maximum.accumulate(coefficients @ design[0])
    return result


def tail_probability(cosine: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The probability that an unrelated pair has this cosine or more, given its quantiles `at`; beyond the outermost
    quantiles, theirs."""
    result: np.ndarray = np.interp(cosine, at, TAILS)
    return result
