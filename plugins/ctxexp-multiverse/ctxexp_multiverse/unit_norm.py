"""`transform=unit_norm`: every vector at norm 1, so that no measure sees lengths."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform


class UnitNorm(Transform):
    """Every row at norm 1; a row of zeros stays. centred: about the mean of the rows that it is fitted on first."""

    def __init__(self, *, centred: bool = False) -> None:
        self.centred = self.fitted = centred
        self._mean = np.zeros(1)

    def fit(self, x: np.ndarray) -> Self:
        if self.centred:
            self._mean = x.mean(axis=0, dtype=np.float64)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        y = x - self._mean
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        result: np.ndarray = np.divide(y, norm, out=np.zeros_like(y), where=norm > 0).astype(np.float32)
        return result
