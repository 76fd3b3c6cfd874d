"""What a benchmark yields: a value, and of what share of its items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_PAIRS = 3
"""A rank correlation of fewer pairs says nothing (of two it is always 1 or -1): undefined."""


@dataclass(frozen=True)
class Score:
    """One benchmark's value, or that of one of its parts.

    `covered` of `total` items (pairs, questions or words) have vectors for all their words; the value is over `n`
    items: the covered ones, or with stand-ins for missing words all of them.
    """

    benchmark: str
    part: str  # empty: the whole benchmark
    value: float
    n: int
    covered: int
    total: int

    @property
    def share(self) -> float:
        """Share of the items that is covered, in [0, 1]."""
        return self.covered / self.total if self.total else float("nan")


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation, in [-1, 1], ties by mean rank; NaN with fewer than 3 pairs or a constant side."""
    if len(x) < LEAST_PAIRS:
        return float("nan")
    a, b = _ranks(x), _ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(np.square(a).sum() * np.square(b).sum())
    return float(np.clip((a @ b) / scale, -1.0, 1.0)) if scale > 0 else float("nan")


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) cosines of the rows of a and b, in [-1, 1]; 0 where either is a zero vector, which points nowhere."""
    scale = np.sqrt(np.square(a).sum(-1) * np.square(b).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(np.where(scale > 0, (a * b).sum(-1) / scale, 0.0), -1.0, 1.0))


def _ranks(x: np.ndarray) -> np.ndarray:
    """(n,) float64 ranks from 1, ties their mean."""
    _, code, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[code], np.float64)
