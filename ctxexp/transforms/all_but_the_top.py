"""`transform=all_but_the_top`: the mean and the strongest directions removed."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform
from ctxexp.transforms.center import mean
from ctxexp.transforms.directions import (
    by_chunks,
    check_fewer_than_columns,
    check_int,
    covariance,
    n_directions,
    principal_directions,
    rounding_variance,
)


class AllButTheTop(Transform):
    """The mean is subtracted, then each row's components along the top k principal directions of the layer.

    Mu and Viswanath 2018, Algorithm 1: `x - mean - sum_{i<=k} (u_i . (x - mean)) u_i`. `k` is the number of directions
    REMOVED (that of `whitening` is the number kept): `d / 100` rounded, their rule of thumb (8 of 768 columns), and at
    least 1, unless it is given; `k=0` is `center`. The result has d columns. BERT-flow's table calls this NATSV
    (nulling away the top singular vectors), and SN + NATSV (SN: standard normalization) with `standardize=True`: every
    column is first brought to variance 1. Directions without variance in the fitted rows are not removed.

    Raises ConfigError for a k below 0, TransformError for a k that removes all d directions.
    """

    def __init__(self, k: int | None = None, *, standardize: bool = False) -> None:
        check_int("k", k, least=0)
        self.k, self.standardize = k, standardize

    def fit(self, x: np.ndarray) -> Self:
        d = x.shape[1]
        k = n_directions(self.k, d, 100)
        check_fewer_than_columns("k", k, d)
        self.mean, self.factor = mean(x), np.ones(d)
        cov = covariance(x, self.mean)
        noise = rounding_variance(cov, self.mean)
        if self.standardize:
            spread = np.sqrt(np.diag(cov))
            self.factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
            cov, noise = self.factor[:, None] * cov * self.factor, noise * self.factor**2
        self.variances, directions = principal_directions(cov, noise)  # (r,), (d, r)
        self.directions = directions[:, :k]  # (d, k)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return by_chunks(x, x.shape[1], self._apply_chunk)

    def _apply_chunk(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = (x - self.mean) * self.factor
        y -= (y @ self.directions) @ self.directions.T
        return y
