"""Cosines of all pairs of rows, one by one: how many are above 0, and their histogram."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ctxexp.maths.geometry import norms

BINS = 50  # of the histogram, from -1 to 1
BLOCK = 1024  # rows at a time
NOISE = 1e-6  # cosines up to this are not above 0: float32's rounding


def pair_cosines(x: np.ndarray) -> Iterator[np.ndarray]:
    """Float32 cosines in [-1, 1], up to rounding, of each pair of distinct rows of x (n, d) once, block by block.

    Pairs with a zero row have none and are left out.
    """
    length = norms(x)
    u = (x[length > 0] / length[length > 0, None]).astype(np.float32)
    for i in range(0, len(u), BLOCK):  # a block with itself, then with what follows
        block = u[i : i + BLOCK]
        yield (block @ block.T)[np.triu_indices(len(block), 1)]
        yield (block @ u[i + BLOCK :].T).ravel()


def positive_pairs(x: np.ndarray) -> float:
    """Share of pairs of distinct rows of x (n, d) with a cosine above 0, in [0, 1].

    Cosines within 1e-6 of 0 are rounding, not above it. NaN without a pair, or with a zero row.
    """
    return _share(sum(int(np.count_nonzero(c > NOISE)) for c in pair_cosines(x)), x)


def histogram(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Pairs by cosine (BINS,) int64, bins of equal width from -1 to 1, 1 in the last; and `positive_pairs`."""
    counts, positive = np.zeros(BINS, np.int64), 0
    for cosine in pair_cosines(x):
        positive += int(np.count_nonzero(cosine > NOISE))
        at = ((cosine + 1) * (BINS / 2)).astype(np.int64)
        counts += np.bincount(np.clip(at, 0, BINS - 1), minlength=BINS)
    return counts, _share(positive, x)


def _share(positive: int, x: np.ndarray) -> float:
    n = len(x)
    return positive / (n * (n - 1) / 2) if n > 1 and bool((norms(x) > 0).all()) else math.nan


ROOM = 1e-4
"""The least 1 - level at which a value is given: below it rounding of single precision (1e-7) is no longer small."""


def chance_corrected(adjusted: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The chance-corrected cosine (raw - A) / (1 - A), float64: 0 at chance, 1 where all vectors are one.

    Adjusted cosines, raw - A, can't exceed 1 - A: in a narrow space all of them are small, whatever they mean. As with
    Cohen's kappa (1960) the excess over chance is divided by the largest that there is room for. It is negative below
    chance, without a bound. It holds A twice, so that it must not be correlated with A.

    Args:
        adjusted: raw - A, any shape.
        level: A, the mean cosine of unrelated occurrences, of a shape that broadcasts with it.

    Returns:
        The corrected values; NaN where 1 - A is not above ROOM, or either is NaN.
    """
    room = 1.0 - np.asarray(level, np.float64)
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.asarray(adjusted, np.float64) / np.where(room > ROOM, room, np.nan)
    return result
