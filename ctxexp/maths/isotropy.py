"""How evenly rows fill their space: mean cosine, IsoScore, participation ratio, effective rank, from sums over rows."""

from __future__ import annotations

from typing import Self

import numpy as np

ROWS = 1024  # rows that are widened to float64 at a time


class Moments:
    """Sums over rows (n, d), in float64: number, mean, scatter about the mean, sum of the normalized rows.

    Chan, Golub and LeVeque's update keeps the scatter exact for rows far from the origin, whatever the pieces that
    they come in, and so does merging.
    """

    def __init__(self) -> None:
        self.n, self.n_directed = 0, 0  # rows, and those of them with a direction
        self.mean, self.scatter = np.zeros(1), np.zeros((1, 1))  # (d,), (d, d)
        self.normalized_sum, self.ones = np.zeros(1), 0.0  # of normalized rows: sum (d,), squared lengths

    def add(self, x: np.ndarray) -> Self:
        """Take the rows x (n, d)."""
        for at in range(0, len(x), ROWS):
            rows, part = np.asarray(x[at : at + ROWS], np.float64), type(self)()
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
        result: np.ndarray = s / trace if rounding < trace < np.inf else np.full_like(s, np.nan)
        return result

    def nonzero_columns(self) -> np.ndarray:
        """(d,) True for columns that aren't zero in every row: those of a transform that returns fewer columns."""
        result: np.ndarray = (np.diag(self.scatter) != 0) | (self.mean != 0)
        return result


def participation_ratio(s: np.ndarray) -> float:
    """(sum v)^2 / sum v^2 over the eigenvalues v of a covariance s (d, d), in [1, d]: tr(s)^2 / tr(s s).

    k directions of equal variance give k (Gao et al. 2017, after Bell and Dean 1970).
    """
    if not s.size or not np.isfinite(s).all():
        return float("nan")
    return float(np.trace(s)) ** 2 / float(np.vdot(s, s))


def isoscore(s: np.ndarray) -> float:
    """IsoScore of a covariance s (d, d), in [0, 1] (Rudman et al. 2022, Algorithm 1); NaN for d = 1.

    1: a multiple of the identity; 0: one direction holds all variance. The paper normalises the variances v along the
    principal components to v' = sqrt(d) v / |v| and takes the defect |v' - 1| / sqrt(2 (d - sqrt d)); put together
    that is (k - 1) / (d - 1) with k the participation ratio, which needs no components.
    """
    d = len(s)
    return (participation_ratio(s) - 1) / (d - 1) if d > 1 else float("nan")


def effective_rank(s: np.ndarray) -> float:
    """Effective rank of rows with covariance s (d, d), in [1, d]: `entropy_rank` of the rows about their mean."""
    if not s.size or not np.isfinite(s).all():
        return float("nan")
    return entropy_rank(np.sqrt(np.clip(np.linalg.eigvalsh(s), 0, None)))


def entropy_rank(sigma: np.ndarray) -> float:
    """exp of the entropy of singular values divided by their sum, in [1, len(sigma)] (Roy and Vetterli 2007, Definition
    1); those that are rounding beside the largest don't count, and NaN without any."""
    some = sigma[sigma**2 > len(sigma) * np.finfo(np.float64).eps * np.square(sigma).max(initial=0.0)]
    p = some / some.sum()
    return float(np.exp(-(p * np.log(p)).sum())) if len(some) else float("nan")
