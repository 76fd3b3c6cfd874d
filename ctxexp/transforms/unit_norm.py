"""`transform=unit_norm`: every vector at norm 1, so that no measure sees lengths."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform
from ctxexp.transforms.center import mean
from ctxexp.transforms.directions import by_chunks


class UnitNorm(Transform):
    """Rows divided by their length; a row of zeros stays. `centred`: about the mean of the rows that it is fitted on.

    For measures that long rows rule: intra-sentence similarity, shares of variance, CKA, distances. One row of a
    massive activation (Sun et al. 2024) makes nearly all of a mean or a variance; at norm 1 it counts as any other.
    """

    def __init__(self, *, centred: bool = False) -> None:
        self.centred = self.needs_fit = centred

    def fit(self, x: np.ndarray) -> Self:
        self._mean = mean(x) if self.centred else np.zeros(x.shape[1])
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return by_chunks(x, x.shape[1], self._normalized)

    def _normalized(self, x: np.ndarray) -> np.ndarray:
        y = x - self._mean
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        result: np.ndarray = np.divide(y, norm, out=np.zeros_like(y), where=norm > 0)
        return result
