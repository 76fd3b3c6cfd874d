"""`transform=whitening`: uncorrelated columns of variance 1."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from ctxexp.errors import ConfigError, TransformError
from ctxexp.transform import Transform
from ctxexp.transforms.center import CHUNK, mean
from ctxexp.transforms.directions import by_chunks, check_int, covariance, principal_directions, rounding_variance

KINDS = ("pca", "zca")
MAX_CONDITION = 1e6  # ratio of variances above which one pass leaves more than the last digits wrong


class Whitening(Transform):
    """`(x - mean) U S^(-1/2)` with `U S U^T` the covariance of the fitted rows: their covariance becomes the identity
    (without `k` and `shrinkage`).

    Su et al. 2021 (Whitening Sentence Representations), equations 2-5; the covariance divides by n, as printed (their
    code divides by n - 1: a common factor, which no cosine sees). `k` is the number of strongest directions KEPT (that
    of `all_but_the_top` is the number removed), all if null.

    - `kind="pca"` gives k columns, the components from the strongest direction to the weakest; `kind="zca"` rotates
      them back, `(x - mean) U S^(-1/2) U^T`: d columns, the whitened space nearest to the original. The cosines of the
      two are the same.
    - `shrinkage` s in [0, 1] moves the covariance towards the identity of the same mean variance,
      `(1 - s) C + s (tr C / d) I` (Ledoit and Wolf 2004, their target): weak directions are blown up less. The
      result's covariance is then `S / S'` with S' the shrunk variances, no longer the identity; at 1 only the mean is
      removed and all columns are scaled by one factor.
    - Directions without variance (a constant column, a column that copies another) cannot be brought to variance 1:
      without shrinkage they become 0 in `zca` and come last in `pca`, as columns of zeros.

    n distinct rows span at most n - 1 directions, and whitening n <= d of them would only put them at equal distances:
    without shrinkage, rows of which no more than d are distinct are refused (TransformError), as is k > d. ConfigError
    for arguments out of range.
    """

    def __init__(self, k: int | None = None, *, shrinkage: float = 0.0, kind: Literal["pca", "zca"] = "pca") -> None:
        check_int("k", k, least=1)
        if isinstance(shrinkage, bool) or not isinstance(shrinkage, (int, float)) or not 0 <= shrinkage <= 1:
            raise ConfigError(f"shrinkage={shrinkage!r}: expected a number from 0 (none) to 1 (the identity's shape)")
        if kind not in KINDS:
            raise ConfigError(f"kind={kind!r}: expected pca (components) or zca (turned back)")
        self.k, self.shrinkage, self.kind = k, float(shrinkage), kind

    def width(self, dim: int) -> int:
        """Columns of the result: k for `pca`, `dim` for `zca` and where k is null."""
        return dim if self.k is None or self.kind == "zca" else min(self.k, dim)

    def fit(self, x: np.ndarray) -> Self:
        d = x.shape[1]
        if self.k is not None and self.k > d:
            raise TransformError(f"k={self.k} of {d} columns; choose k up to {d}, or null for all")
        if not self.shrinkage and (n := count_distinct(x, d)) <= d:
            raise TransformError(
                f"{len(x)} rows, {n} of them distinct, don't determine the covariance of {d} columns; fit on more than "
                f"{d} distinct rows, set shrinkage above 0 (0.1, say), or take a transform without a covariance inverse"
            )
        self.mean = mean(x)
        cov = covariance(x, self.mean)
        noise = rounding_variance(cov, self.mean)
        if self.shrinkage:
            cov = (1 - self.shrinkage) * cov + self.shrinkage * np.trace(cov) / d * np.eye(d)
            noise = np.zeros(d)
        variances, directions = principal_directions(cov, noise)
        self.variances, directions = variances[: self.k], directions[:, : self.k]  # (r,), (d, r)
        matrix = directions / np.sqrt(self.variances)  # (d, r)
        if not self.shrinkage and len(self.variances) and self.variances[0] > MAX_CONDITION * self.variances[-1]:
            matrix = matrix @ _second_pass(x, self.mean, matrix)
        columns = self.width(d)
        if self.kind == "zca":
            matrix = matrix @ directions.T
        self.matrix = np.zeros((d, columns))  # (d, width)
        self.matrix[:, : matrix.shape[1]] = matrix
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return by_chunks(x, self.matrix.shape[1], lambda chunk: (chunk - self.mean) @ self.matrix)


def _second_pass(x: np.ndarray, mean: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The symmetric (r, r) that takes the covariance of the whitened rows from nearly the identity to the identity.

    Weak directions are known from the covariance only up to rounding of the strong ones; after whitening all have the
    same scale.
    """
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for at in range(0, len(x), CHUNK):
        y = (x[at : at + CHUNK] - mean) @ matrix
        total += y.T @ y
    values, vectors = np.linalg.eigh(total / len(x))
    result: np.ndarray = (vectors / np.sqrt(values)) @ vectors.T
    return result


def count_distinct(x: np.ndarray, limit: int) -> int:
    """The number of distinct rows of x; counting stops above `limit`."""
    rows: set[bytes] = set()
    for row in x:
        rows.add(row.tobytes())
        if len(rows) > limit:
            break
    return len(rows)
