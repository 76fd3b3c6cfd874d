"""Score of a benchmark: its value, and its coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class BenchmarkScore:
    """Value of one benchmark or of one of its parts.

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


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) cosines of the rows of a and b, in [-1, 1]; 0 where either is a zero vector, which points nowhere."""
    scale = np.sqrt(np.square(a).sum(-1) * np.square(b).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(np.where(scale > 0, (a * b).sum(-1) / scale, 0.0), -1.0, 1.0))
