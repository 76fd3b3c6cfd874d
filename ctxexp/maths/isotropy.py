"""How evenly rows fill their space: mean cosine, IsoScore, participation ratio, effective rank, from sums over rows."""

from __future__ import annotations

from typing import Self

import numpy as np

ROWS = 1024  # rows that are widened to float64 at a time


class Moments:
    """Sums over rows (n, d), in float64: number, mean, scatter about the mean, sum of the unit rows.

    Chan, Golub and LeVeque's update keeps the scatter exact for rows far from the origin, whatever the pieces that
    they come in.
    """

    def __init__(self) -> None:
        self.n, self.n_unit = 0, 0  # rows, and those of them with a direction
        self.mean, self.scatter = np.zeros(1), np.zeros((1, 1))  # (d,), (d, d)
        self.unit, self.ones = np.zeros(1), 0.0  # sum of the unit rows (d,), and of their squared lengths

    def add(self, x: np.ndarray) -> Self:
        """Take the rows x (n, d)."""
        for at in range(0, len(x), ROWS):
            part = np.asarray(x[at : at + ROWS], np.float64)
            with np.errstate(invalid="ignore", over="ignore"):  # infinite rows make everything NaN
                length = np.sqrt((part**2).sum(axis=1, keepdims=True))
                has = length[:, 0] != 0
                unit = part[has] / length[has]
                self.unit = self.unit + unit.sum(axis=0)
                self.ones += float((unit**2).sum())
                mean = part.mean(axis=0)
                part = part - mean
                total, step = self.n + len(part), mean - self.mean
                self.scatter = self.scatter + part.T @ part + np.outer(step, step) * (self.n * len(part) / total)
                self.mean = self.mean + step * (len(part) / total)
            self.n, self.n_unit = total, self.n_unit + int(has.sum())
        return self

    def mean_cosine(self) -> float:
        """Mean cosine over all pairs of distinct rows, in [-1/(n-1), 1]: (|sum u|^2 - sum |u|^2) / (n (n - 1)).

        Rows of zeros have no direction and are left out; NaN with fewer than two others.
        """
        if self.n_unit < 2:
            return float("nan")
        return (float(self.unit @ self.unit) - self.ones) / (self.n_unit * (self.n_unit - 1))

    def covariance(self) -> np.ndarray:
        """The scatter divided by its trace (w, w), of the w columns that aren't zero in every row: those are what a
        transform leaves that returns fewer columns. NaN if the rows are equal up to rounding."""
        used = (np.diag(self.scatter) != 0) | (self.mean != 0)
        s = self.scatter[np.ix_(used, used)]
        trace = float(np.trace(s))
        rounding = self.n * float(self.mean @ self.mean) * (16 * np.finfo(np.float64).eps) ** 2
        # NaN where not above: what rounding leaves of equal rows is no shape, and neither is an infinite one
        result: np.ndarray = s / trace if rounding < trace < np.inf else np.full_like(s, np.nan)
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
    """exp of the entropy of the singular values, of rows with covariance s (d, d), divided by their sum, in [1, d]
    (Roy and Vetterli 2007, Definition 1, of the rows about their mean)."""
    if not s.size or not np.isfinite(s).all():
        return float("nan")
    squares = np.linalg.eigvalsh(s)  # squared singular values, ascending
    squares = squares[squares > len(squares) * np.finfo(np.float64).eps * squares[-1]]
    p = np.sqrt(squares) / np.sqrt(squares).sum()
    return float(np.exp(-(p * np.log(p)).sum()))
