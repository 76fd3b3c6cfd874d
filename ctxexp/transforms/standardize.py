"""`transform=standardize`: every column at mean 0 and variance 1."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform
from ctxexp.transforms.center import CHUNK, mean


class Standardize(Transform):
    """Columns at mean 0 and variance 1 over all measured occurrences; a column without variance becomes 0.

    Takes away the few columns of extreme variance that otherwise decide every cosine (Timkey and van Schijndel 2021).
    """

    def fit(self, x: np.ndarray) -> Self:
        self.mean = mean(x)
        squares = np.zeros(x.shape[1])
        for at in range(0, len(x), CHUNK):
            squares += ((x[at : at + CHUNK] - self.mean) ** 2).sum(axis=0)
        spread = np.sqrt(squares / len(x))
        self.factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = ((x - self.mean) * self.factor).astype(np.float32)
        return result
