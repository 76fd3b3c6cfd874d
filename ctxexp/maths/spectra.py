"""How evenly rows fill a space (mean cosine, IsoScore, participation ratio, effective rank, from sums over rows),
and the leading directions of groups of rows: LAPACK's of small second moments, else ARPACK's by passes over the rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

WIDENED = 1024  # rows that are widened to float64 at a time
CHUNK = 4096  # likewise where transforms are fitted and applied
ROUNDING = float(np.finfo(np.float32).eps) ** 2  # bound on the variance from rounding to float32, over the mean square
COARSER = 4  # rounding errors of the rows' own precision, in its epsilon, that are no spread: a few steps, each once
FLOAT32 = 16  # likewise in the epsilon of the arithmetic here and in the models: sums of many terms
ROWS = 256  # float32 partial sums run over at most so many rows
BATCHED = 16  # up to so many rows or columns all eigenvectors of all groups are quicker than the first, group by group
SMALL = 128  # up to so many rows or columns LAPACK beats an iteration
ITERATION = {"ncv": 10, "maxiter": 30, "tol": 1e-10}  # steps between restarts, restarts; residual by the eigenvalue


class Moments:
    """Sums over rows (n, d), in float64: number, mean, scatter about the mean, sum of the normalized rows.

    Chan, Golub and LeVeque's update keeps the scatter exact for rows far from the origin, whatever the pieces that
    they come in, and so does merging.

    Example:
        >>> sums = Moments().add(np.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> sums.n, sums.mean.tolist()
        (2, [1.0, 2.0])
    """

    def __init__(self) -> None:
        self.n, self.n_directed = 0, 0  # rows, and those of them with a direction
        self.mean, self.scatter = np.zeros(1), np.zeros((1, 1))  # (d,), (d, d)
        self.normalized_sum, self.ones = np.zeros(1), 0.0  # of normalized rows: sum (d,), squared lengths

    def add(self, x: np.ndarray) -> Self:
        """Take the rows x (n, d)."""
        for at in range(0, len(x), WIDENED):
            rows, part = np.asarray(x[at : at + WIDENED], np.float64), type(self)()
            with np.errstate(invalid="ignore", over="ignore"):  # infinite rows make everything NaN
                length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
                has = length[:, 0] != 0
                u = rows[has] / length[has]
                part.n, part.n_directed = len(rows), int(has.sum())
                part.normalized_sum, part.ones = u.sum(axis=0), float((u**2).sum())
                part.mean = rows.mean(axis=0)
                rows = rows - part.mean
                part.scatter = rows.T @ rows
                self.merge(part)
        return self

    def merge(self, other: Self) -> None:
        """Take another's rows too."""
        if not other.n:
            return
        self.normalized_sum, self.ones = self.normalized_sum + other.normalized_sum, self.ones + other.ones
        total, step = self.n + other.n, other.mean - self.mean
        self.scatter = self.scatter + other.scatter + np.outer(step, step) * (self.n * other.n / total)
        self.mean = self.mean + step * (other.n / total)
        self.n, self.n_directed = total, self.n_directed + other.n_directed

    def mean_cosine(self) -> float:
        """Mean cosine over all pairs of distinct rows, in [-1/(n-1), 1]: (|sum u|^2 - sum |u|^2) / (n (n - 1)).

        Rows of zeros have no direction and are left out; NaN with fewer than two others.
        """
        if self.n_directed < 2:
            return float("nan")
        n, s = self.n_directed, self.normalized_sum
        return (float(s @ s) - self.ones) / (n * (n - 1))

    def trace_one_covariance(self, *, centred: bool = True) -> np.ndarray:
        """The second moments about the mean (or, not centred, about the origin) divided by their trace, (d, d): the sum
        of the eigenvalues is 1. NaN if the rows are equal up to rounding (or zero)."""
        s = self.scatter if centred else self.scatter + self.n * np.outer(self.mean, self.mean)
        trace = float(np.trace(s))
        rounding = self.n * float(self.mean @ self.mean) * (16 * np.finfo(np.float64).eps) ** 2
        # NaN where not above: what rounding leaves of equal rows is no shape, and neither is an infinite one
        return s / trace if rounding < trace < np.inf else np.full_like(s, np.nan)

    def nonzero_columns(self) -> np.ndarray:
        """(d,) True for columns that aren't zero in every row: those of a transform that returns fewer columns."""
        return (np.diag(self.scatter) != 0) | (self.mean != 0)


def participation_ratio(s: np.ndarray) -> float:
    """(sum v)^2 / sum v^2 over the eigenvalues v of a covariance s (d, d), in [1, d]: tr(s)^2 / tr(s s).

    k directions of equal variance give k (Gao et al. 2017, after Bell and Dean 1970).

    Example:
        >>> participation_ratio(np.diag([1.0, 1.0, 0.0]))
        2.0
    """
    if not s.size or not np.isfinite(s).all():
        return float("nan")
    return float(np.trace(s)) ** 2 / float(np.vdot(s, s))


def isoscore(s: np.ndarray) -> float:
    """IsoScore of a covariance s (d, d), in [0, 1] (Rudman et al. 2022, Algorithm 1); NaN for d = 1.

    1: a multiple of the identity; 0: one direction holds all variance. The paper normalises the variances v along the
    principal components to v' = sqrt(d) v / |v| and takes the defect |v' - 1| / sqrt(2 (d - sqrt d)); put together
    that is (k - 1) / (d - 1) with k the participation ratio, which needs no components.

    Example:
        >>> isoscore(np.eye(3))
        1.0
    """
    d = len(s)
    return (participation_ratio(s) - 1) / (d - 1) if d > 1 else float("nan")


def effective_rank(s: np.ndarray) -> float:
    """Effective rank, in [1, d], of rows with covariance s (d, d), or with singular values s (d,).

    exp of the entropy of the singular values divided by their sum (Roy and Vetterli 2007, Definition 1); those that are
    rounding beside the largest don't count, and NaN without any.

    Example:
        >>> round(effective_rank(np.diag([1.0, 1.0, 0.0])), 3)
        2.0
    """
    if not s.size or not np.isfinite(s).all():
        return float("nan")
    sigma = np.sqrt(np.clip(np.linalg.eigvalsh(s), 0, None)) if s.ndim > 1 else s
    some = sigma[sigma**2 > len(sigma) * np.finfo(np.float64).eps * np.square(sigma).max(initial=0.0)]
    p = some / some.sum()
    return float(np.exp(-(p * np.log(p)).sum())) if len(some) else float("nan")


class FirstDirection(NamedTuple):
    """First principal direction v of each group of rows: its eigenvalue and the projections of the rows on it."""

    value: np.ndarray  # (w,) largest eigenvalue of the second moment: the sum of the squared projections
    projections: np.ndarray  # (w, n) v.x_i, or v.c_i of centred rows
    variance: np.ndarray  # (w,) sum of (v.c_i)^2 about the mean row


class Spread:
    """Second moments of each group about the origin and about its mean, and their leading directions.

    Rows are centred BEFORE any product: from products of raw rows, float32 would lose the spread of words whose
    vectors hardly differ. With c_i = x_i - m, the raw second moment is C'C + n m m', the raw Gram matrix CC' + b1' +
    1b' + |m|^2 11' with b = C m: both problems are solved from the smaller of the same C'C and CC'. Where that is
    large it isn't made: an iteration finds v, and the eigenvalue is |C v|^2, which has the square of v's error.
    """

    def __init__(self, x: np.ndarray, row_sum: np.ndarray, eps: float) -> None:
        """`x` is (w, n, d), `row_sum` (w, d) float64; `eps` the epsilon of what the rows were computed or stored in."""
        self.x = x
        self.w, self.n, self.d = x.shape
        self.m = (row_sum / self.n).astype(x.dtype)  # (w, d)
        self.mm = np.square(self.m, dtype=np.float64).sum(1)  # (w,) |m|^2
        self.is_large, self.is_gram = min(self.n, self.d) > SMALL, self.n <= self.d
        with np.errstate(over="ignore", invalid="ignore"):
            centred = self.squares.sum(1) if self.is_large else np.trace(self._moments[0], axis1=1, axis2=2)
            total = centred + self.n * self.mm
            self.ok = np.isfinite(total) & (total > 0)
            noise = max(FLOAT32 * np.finfo(x.dtype).eps, COARSER * eps) ** 2  # rows that differ by rounding are equal
            self.centred = np.where(self.ok & (centred > noise * total), centred, np.nan)
        self.total = np.where(self.ok, total, np.nan)

    @cached_property
    def squares(self) -> np.ndarray:
        """|c_i|^2 of each group's rows about their mean: (w, n) float64."""
        return np.concatenate([np.vecdot(c, c) for c in self._chunks()], axis=1).astype(np.float64)

    @cached_property
    def centred_direction(self) -> FirstDirection:
        """The first direction v of the centred rows: largest eigenvalue of C'C, and C v."""
        return self._solve(centred=True)

    @cached_property
    def raw_direction(self) -> FirstDirection:
        """The first direction v of the rows as they are: largest eigenvalue of X'X, and X v."""
        return self._solve(centred=False)

    def _solve(self, *, centred: bool) -> FirstDirection:
        if self.is_large:
            return self._along(np.array([self._iterate(i, centred) for i in range(self.w)]), centred)
        moment, b = self._moments
        raw: float | np.ndarray = 0.0
        if not centred:
            raw = b + b.mT + self.mm[:, None, None] if self.is_gram else self.n * b * b.mT
        value, top = leading(np.where(self.ok[:, None, None], moment + raw, 0.0))
        if self.is_gram:  # X v = sigma u, so that C v = sigma (u - mean(u))
            return FirstDirection(value, top * np.sqrt(value)[:, None], value * self.n * top.var(axis=1))
        variance = np.vecdot(top, np.matmul(moment, top[..., None])[..., 0])
        return self._along(top, centred)._replace(value=value, variance=variance)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """CC' and C m (w, n, 1) where that is the smaller, or C'C and m (w, d, 1), float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_gram:
                c = self.x - self.m[:, None]
                return np.matmul(c, c.mT).astype(np.float64), np.matmul(c, self.m[..., None]).astype(np.float64)
            total = np.zeros((self.w, self.d, self.d))
            for c in self._chunks():
                total += np.matmul(c.mT, c)
            return total, self.m[..., None].astype(np.float64)

    def _along(self, v: np.ndarray, centred: bool) -> FirstDirection:
        """The first direction's statistics, given that it is v (w, d)."""
        column = v[..., None].astype(self.x.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.concatenate([np.matmul(c, column)[..., 0] for c in self._chunks()], axis=1).astype(np.float64)
            projections = y if centred else y + np.vecdot(self.m.astype(np.float64), v)[:, None]
            return FirstDirection(np.vecdot(projections, projections), projections, np.vecdot(y, y))

    def _iterate(self, i: int, centred: bool) -> np.ndarray:
        """The first direction (d,) of a large group.

        A start across it gives the second one: it is drawn by the rows' own bits, so that no rows are across theirs.
        """
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        if not self.ok[i]:
            return np.zeros(self.d)
        x, m = self.x[i], self.m[i] if centred else np.zeros_like(self.m[i])

        def product(v: np.ndarray) -> np.ndarray:
            """C'C v without C: C v = X v - 1 (m.v), C'y = X'y - m (1.y)."""
            v = v.ravel().astype(x.dtype)
            y = x.dot(v) - m.dot(v)
            return y.dot(x) - m * y.sum()

        seed = zlib.crc32(x.ravel()[:: self.d + 1].tobytes())
        start = np.random.default_rng(seed).standard_normal(self.d)
        operator = LinearOperator((self.d, self.d), matvec=product, dtype=np.float64)
        try:
            vector: np.ndarray = eigsh(operator, k=1, v0=start, **ITERATION)[1][:, 0]
        except ArpackError:  # not done, as in a flat spectrum, or rows that are all equal
            c = (x - m).astype(np.float64)
            vector = leading(np.matmul(c.T, c)[None])[1][0]
        return vector

    def _chunks(self) -> Iterator[np.ndarray]:
        """Centred rows, ROWS at a time: (w, <= ROWS, d)."""
        for at in range(0, self.n, ROWS):
            yield self.x[:, at : at + ROWS] - self.m[:, None]


def leading(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalue (w,) and its eigenvector (w, m) of each symmetric positive semi-definite (m, m), by LAPACK."""
    from scipy.linalg.lapack import dsyevr, dsyevr_lwork

    m = moments.shape[-1]
    if m <= BATCHED:
        values, vectors = np.linalg.eigh(moments)
        return np.maximum(values[:, -1], 0), vectors[..., -1]
    size, n_integers, _ = dsyevr_lwork(m, lower=1)
    work = {"lwork": int(size), "liwork": int(n_integers)}  # scipy.linalg.eigh asks for it each time
    pairs = [dsyevr(moment, range="I", il=m, iu=m, lower=1, **work) for moment in moments]
    if any(failure for *_, failure in pairs):
        raise np.linalg.LinAlgError("dsyevr found no first direction")
    return np.array([max(value[0], 0.0) for value, *_ in pairs]), np.array([vector[:, 0] for _, vector, *_ in pairs])


def principal_directions(x: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variances and principal directions of float32 rows, in float64.

    Directions along which there is no more than rounding to float32 makes are left out. The entry of largest size in
    each direction is positive.

    Args:
        x: Rows (n, d).
        rows: Indices of those that count; None: all.

    Returns:
        The mean (d,), the variances (r,) in descending order (divided by n), and the directions (d, r).

    Example:
        >>> mean, variances, directions = principal_directions(np.array([[0, 1], [4, 1]], np.float32))
        >>> mean.tolist(), variances.tolist(), directions.tolist()
        ([2.0, 1.0], [4.0], [[1.0], [0.0]])
    """
    centre = mean(x, rows)
    cov = covariance(x, centre, rows)
    return centre, *directions_of(cov, rounding_variance(cov, centre))


def mean(x: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Column means (d,) float64 of x, or of the named rows, exact for columns that hold one value: sums are of
    differences to the first row."""
    n, first = len(x) if rows is None else len(rows), x[0 if rows is None else rows[0]].astype(np.float64)
    total = np.zeros(x.shape[1])
    for at in range(0, n, CHUNK):
        total += ((x[at : at + CHUNK] if rows is None else x[rows[at : at + CHUNK]]) - first).sum(axis=0)
    return first + total / n


def covariance(x: np.ndarray, mean: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Covariance (d, d) float64 of x, or of the named rows, about `mean`: sums over n rows divided by n (ddof 0)."""
    total = np.zeros((x.shape[1], x.shape[1]))
    n = len(x) if rows is None else len(rows)
    for at in range(0, n, CHUNK):
        chunk = x[at : at + CHUNK] if rows is None else x[rows[at : at + CHUNK]]
        centred = chunk - mean
        total += centred.T @ centred
    return total / n


def directions_of(cov: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (r,) in descending order and principal directions (d, r) of a covariance.

    Only directions that have variance: more than float64 resolves beside the largest, and more than `noise` (d,), each
    column's variance from its storage, makes along them. The entry of largest size in each direction is positive, so
    that the result doesn't depend on the order in which the rows were summed.
    """
    values, vectors = np.linalg.eigh(cov)
    values, vectors = values[::-1], vectors[:, ::-1]
    least = max(float(values[0]), 0.0) * len(cov) * float(np.finfo(np.float64).eps)
    keep = values > np.maximum(least, noise @ vectors**2)
    values, vectors = values[keep], vectors[:, keep]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)


def rounding_variance(cov: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Variance (d,) that float32 storage may have made in each column of rows of this mean and covariance."""
    return ROUNDING * (np.diag(cov) + mean**2)
