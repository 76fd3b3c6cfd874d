"""The built-in transforms, each a calibration of the space."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from ctxexp.errors import ConfigError, TransformError
from ctxexp.maths.spectra import CHUNK, covariance, directions_of, mean, rounding_variance
from ctxexp.plugins import Register, hookimpl
from ctxexp.transform import Transform

KINDS = ("pca", "zca")
MAX_CONDITION = 1e6  # ratio of variances above which one pass leaves more than the last digits wrong


class Nothing(Transform):
    """The vectors as they are; costs nothing, since measuring then reads the store itself."""

    identity = True

    def fit(self, x: np.ndarray) -> Self:
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x


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
        return self.by_chunks(x, self._normalized)

    def _normalized(self, x: np.ndarray) -> np.ndarray:
        y = x - self._mean
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        result: np.ndarray = np.divide(y, norm, out=np.zeros_like(y), where=norm > 0)
        return result


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
        self.variances, directions = directions_of(cov, noise)  # (r,), (d, r)
        self.directions = directions[:, :k]  # (d, k)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, self._apply_chunk)

    def _apply_chunk(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = (x - self.mean) * self.factor
        y -= (y @ self.directions) @ self.directions.T
        return y


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
        variances, directions = directions_of(cov, noise)
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
        return self.by_chunks(x, lambda chunk: (chunk - self.mean) @ self.matrix)


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


def n_directions(given: int | None, d: int, columns_each: int) -> int:
    """The number of directions to remove from d columns: `given`, else one for every `columns_each` columns (rounded,
    at least 1 where d allows it)."""
    if given is None:
        return min(max(1, int(d / columns_each + 0.5)), d - 1)
    return given


def check_int(name: str, value: int | None, *, least: int) -> None:
    """Raise ConfigError unless `value` is null or an integer of at least `least`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise ConfigError(f"{name}={value!r}: expected null or a whole number of at least {least}")


def check_fewer_than_columns(name: str, k: int, d: int) -> None:
    """Raise TransformError if removing k directions from d columns leaves nothing."""
    if k >= d > 0 and k > 0:
        raise TransformError(f"{name}={k} of {d} columns would leave nothing; choose {name} below {d}")


@hookimpl
def register_transforms(register: Register) -> None:
    register("none", "ctxexp.transforms:Nothing")
    register("center", "ctxexp.transforms:Center")
    register("standardize", "ctxexp.transforms:Standardize")
    register("all_but_the_top", "ctxexp.transforms:AllButTheTop")
    register("unit_norm", "ctxexp.transforms:UnitNorm")
    register("whitening", "ctxexp.transforms:Whitening")
