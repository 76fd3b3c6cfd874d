"""How evenly a layer's vectors use their space: measures of later papers, each over all occurrences or a sample."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Self

import numpy as np

import ctxexp
from ctxexp.errors import MetricError
from ctxexp.metric import GroupBy
from ctxexp.plugins import Register

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
        gram = self.scatter if self.centred else self.scatter + self.n * np.outer(self.mean, self.mean)
        rank = float("nan")
        if float(np.trace(gram)) > self.noise():
            squares = np.linalg.eigvalsh(gram)  # squared singular values
            squares = squares[squares > len(squares) * np.finfo(np.float64).eps * squares[-1]]
            p = np.sqrt(squares) / np.sqrt(squares).sum()
            rank = float(np.exp(-(p * np.log(p)).sum()))
        return {"raw": rank, "n": float(self.n)}


class PartitionIsotropy(ctxexp.Metric):
    """Partition-function isotropy I(W) of random occurrences, in (0, 1] (Mu & Viswanath 2018, Section 2.2).

    min Z(c) / max Z(c) over the eigenvectors c of W^T W, Z(c) = sum over the rows w of exp(c . w); 1: the same in all
    directions. An eigenvector's sign is arbitrary and Z is not even, so both signs are taken: the value doesn't depend
    on the solver. It depends on the vectors' scale: `unit_norm` brings them to norm 1 first. The value is the first
    sample's; `redraws` more, an eigendecomposition each, give its spread.
    """

    over: ClassVar[GroupBy] = "sample"
    unit: ClassVar[str] = "ratio"

    def __init__(self, *, unit_norm: bool = False, redraws: int = 0) -> None:
        if redraws < 0:
            raise MetricError(f"partition_isotropy redraws={redraws}: expected 0 or more")
        self.unit_norm, self.redraws = unit_norm, redraws
        self.invariances = frozenset({"rotation", "permutation"} | ({"row_scale", "scale"} if unit_norm else set()))
        self.definition = f"I(W) of random occurrences{' at norm 1' if unit_norm else ''} (Mu & Viswanath 2018)"
        self._logs: dict[int, tuple[float, int]] = {}  # sample -> log I(W), rows

    def update(self, key: Hashable, x: np.ndarray) -> None:
        if int(str(key)) <= self.redraws:
            self._logs[int(str(key))] = log_partition_ratio(x, unit_norm=self.unit_norm), len(x)

    def merge(self, other: Self) -> None:
        self._logs.update(other._logs)

    def compute(self) -> dict[str, float]:
        """raw, I(W) of sample 0; log, its logarithm, for what underflows; sd over the redraws; n rows."""
        log, n = self._logs.get(0, (float("nan"), 0))
        others = np.exp([value for key, (value, _) in sorted(self._logs.items()) if key > 0])
        sd = float(others.std(ddof=1)) if len(others) > 1 else float("nan")
        return {"raw": float(np.exp(log)), "log": log, "sd": sd, "n": float(n)}


def log_partition_ratio(x: np.ndarray, *, unit_norm: bool = False) -> float:
    """log I(W) of the rows of `x` (n, d), <= 0; NaN without rows, with infinite ones, or with zero rows at norm 1."""
    if not len(x) or not np.isfinite(x).all():
        return float("nan")
    w = x.astype(np.float64)
    if unit_norm:
        lengths = np.linalg.norm(w, axis=1, keepdims=True)
        if not lengths.all():
            return float("nan")
        w /= lengths
    _, directions = np.linalg.eigh(w.T @ w)  # the eigenvectors are the columns
    along = w @ directions  # (n, d)
    logs = np.concatenate([_log_sum_exp(along), _log_sum_exp(-along)])
    return float(logs.min() - logs.max())


def _log_sum_exp(a: np.ndarray) -> np.ndarray:
    """log of the columns' sums of exp, without overflow: (n, d) -> (d,)."""
    top = a.max(axis=0)
    result: np.ndarray = top + np.log(np.exp(a - top).sum(axis=0))
    return result


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("isoscore", IsoScore)
    register("effective_rank", EffectiveRank)
    register("partition_isotropy", PartitionIsotropy)
