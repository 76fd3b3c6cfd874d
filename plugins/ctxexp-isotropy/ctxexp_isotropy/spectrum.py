"""Measures of the covariance spectrum of all occurrences: IsoScore, effective rank, participation ratio."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Self

import numpy as np

import ctxexp
from ctxexp.metric import GroupBy

ROWS = 1024  # rows that are widened to float64 at a time


class Spectrum(ctxexp.Metric):
    """A function of the covariance of all occurrences: mean and scatter matrix (d, d), whatever their number.

    Chan, Golub & LeVeque's update keeps both exact for vectors far from the origin and makes merging exact too.
    """

    over: ClassVar[GroupBy] = "occurrence"

    def __init__(self) -> None:
        self.n, self.mean, self.scatter = 0, np.zeros(1), np.zeros((1, 1))

    def update(self, key: Hashable, x: np.ndarray) -> None:
        self.update_block([key], x[None])

    def update_block(self, keys: Sequence[Hashable], x: np.ndarray) -> None:
        rows = x.reshape(-1, x.shape[-1])
        for at in range(0, len(rows), ROWS):
            part = rows[at : at + ROWS].astype(np.float64)
            with np.errstate(invalid="ignore"):  # infinite rows make it NaN
                mean = part.mean(axis=0)
                part -= mean
                self._add(len(part), mean, part.T @ part)

    def merge(self, other: Self) -> None:
        if other.n:
            self._add(other.n, other.mean, other.scatter)

    def _add(self, n: int, mean: np.ndarray, scatter: np.ndarray) -> None:
        total, step = self.n + n, mean - self.mean
        self.scatter = self.scatter + scatter + np.outer(step, step) * (self.n * n / total)
        self.mean = self.mean + step * (n / total)
        self.n = total

    def gram(self) -> np.ndarray:
        """The second moments about the origin, (d, d): scatter with the mean's share put back."""
        result: np.ndarray = self.scatter + self.n * np.outer(self.mean, self.mean)
        return result

    def noise(self) -> float:
        """The trace that rounding alone may leave in the scatter matrix of equal rows."""
        size = self.n * float(self.mean @ self.mean)
        return size * (16 * np.finfo(np.float64).eps) ** 2


class IsoScore(Spectrum):
    """IsoScore of all occurrences, in [0, 1] (Rudman et al. 2022, Algorithm 1).

    1: the covariance is a multiple of the identity; 0: one direction holds all variance. The paper normalises the
    variances v along the principal components to v' = sqrt(d) v / |v| and takes the defect |v' - 1| / sqrt(2 (d -
    sqrt d)); put together this is (k - 1) / (d - 1) with k = (sum v)^2 / sum v^2 = tr(S)^2 / tr(S S), which needs no
    components. `dimensions` is k, the participation ratio: so many dimensions are used evenly. Invariant to shift,
    rotation and scale. With n occurrences an even space reaches k = about d n / (d + n) only: take n well over d.
    """

    title = "IsoScore"
    unit: ClassVar[str] = "isoscore"
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})
    definition = "IsoScore of all occurrences (Rudman et al. 2022)"

    def compute(self) -> dict[str, float]:
        """raw, in [0, 1]; dimensions, in [1, d]; n occurrences. NaN for equal vectors, and for d = 1."""
        k, d = float("nan"), self.scatter.shape[0]
        trace = float(np.trace(self.scatter))
        if trace > self.noise():
            s = self.scatter / trace
            k = 1.0 / float(np.vdot(s, s))
        return {"raw": (k - 1) / (d - 1) if d > 1 else float("nan"), "dimensions": k, "n": float(self.n)}


class EffectiveRank(Spectrum):
    """Effective rank of the matrix of all occurrences, in [1, min(n, d)] (Roy & Vetterli 2007, Definition 1).

    exp of the entropy of the singular values divided by their sum. `centred`: of the matrix about its mean row, so
    that a common direction doesn't count; false takes the vectors as they are. Invariant to rotation and scale.
    """

    unit: ClassVar[str] = "dimensions"

    def __init__(self, *, centred: bool = True) -> None:
        super().__init__()
        self.centred = centred
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"shift"} if centred else set()))
        self.definition = (
            f"effective rank of all occurrences{', mean removed' if centred else ''} (Roy & Vetterli 2007)"
        )

    def compute(self) -> dict[str, float]:
        """raw, n occurrences; NaN if all vectors are zero (equal, when centred)."""
        gram = self.scatter if self.centred else self.gram()
        rank = float("nan")
        if float(np.trace(gram)) > self.noise():
            squares = np.linalg.eigvalsh(gram)  # squared singular values
            squares = squares[squares > len(squares) * np.finfo(np.float64).eps * squares[-1]]
            p = np.sqrt(squares) / np.sqrt(squares).sum()
            rank = float(np.exp(-(p * np.log(p)).sum()))
        return {"raw": rank, "n": float(self.n)}


class ParticipationRatio(Spectrum):
    """Participation ratio of all occurrences, in [1, d] dimensions (Gao et al. 2017, after Bell & Dean 1970).

    (sum l)^2 / sum l^2 over the eigenvalues l of the covariance matrix, which is tr(S)^2 / tr(S S) and needs no
    eigenvalue: k dimensions of equal variance give k. `centred=false` takes the matrix about the origin instead, so
    that a common direction counts. n occurrences of an even d-dimensional space come to about d n / (d + n) only.
    """

    unit: ClassVar[str] = "dimensions"

    def __init__(self, *, centred: bool = True) -> None:
        super().__init__()
        self.centred = centred
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"shift"} if centred else set()))
        about = "covariance spectrum" if centred else "spectrum about the origin"
        self.definition = f"participation ratio of the {about} of all occurrences (Gao et al. 2017)"

    def compute(self) -> dict[str, float]:
        """raw, in [1, d]; share, raw / d; n occurrences. NaN if all vectors are equal (zero, when not centred)."""
        gram = self.scatter if self.centred else self.gram()
        ratio, trace = float("nan"), float(np.trace(gram))
        if trace > self.noise():
            s = gram / trace
            ratio = 1.0 / float(np.vdot(s, s))
        return {"raw": ratio, "share": ratio / len(gram), "n": float(self.n)}
