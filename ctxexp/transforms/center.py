"""`transform=center`: the mean vector removed."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform

CHUNK = 4096  # rows that are widened to float64 at a time


class Center(Transform):
    """The layer's mean over all measured occurrences is subtracted: what remains has mean 0 in every column.

    Removes the common direction that makes unrelated words similar (Mu and Viswanath 2018, step 1 of 2).
    """

    def fit(self, x: np.ndarray) -> Self:
        self.mean = mean(x)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = (x - self.mean).astype(np.float32)
        return result


def mean(x: np.ndarray) -> np.ndarray:
    """Column means (d,) float64, exact for columns that hold one value: sums are of differences to the first row."""
    first = x[0].astype(np.float64)
    total = np.zeros(x.shape[1])
    for at in range(0, len(x), CHUNK):
        total += (x[at : at + CHUNK] - first).sum(axis=0)
    result: np.ndarray = first + total / len(x)
    return result
