"""Partition-function isotropy I(W) of random occurrences."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Reading
from ctxexp_measures.isotropy.sample import SampleMetric, normalized_rows


class PartitionIsotropy(SampleMetric):
    """Partition-function isotropy I(W) of random occurrences, in (0, 1] (Mu & Viswanath 2018, Section 2.2).

    min Z(c) / max Z(c) over the eigenvectors c of W^T W, Z(c) = sum over the rows w of exp(c . w); 1: the same in all
    directions. An eigenvector's sign is arbitrary and Z is not even, so both signs are taken: the value doesn't depend
    on the solver. It depends on the vectors' scale: `unit_norm` brings them to norm 1 first. The value is the first
    sample's; `redraws` more, an eigendecomposition each, give its spread.
    """

    name: ClassVar[str] = "partition_isotropy"
    title = "Isotropy of the partition function, I(W)"
    reading = Reading(unit="ratio", subject="word vectors", lower="less isotropic", higher="more isotropic")
    statistics: ClassVar[tuple[str, ...]] = ("raw", "log")

    def __init__(self, *, unit_norm: bool = False, redraws: int = 0) -> None:
        super().__init__(redraws=redraws)
        self.unit_norm = unit_norm
        self.invariances = frozenset({"rotation", "permutation"} | ({"row_scale", "scale"} if unit_norm else set()))
        self.definition = f"I(W) of random occurrences{' at norm 1' if unit_norm else ''} (Mu & Viswanath 2018)"

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw, I(W); log, its logarithm, for what underflows."""
        log = log_partition_ratio(x, unit_norm=self.unit_norm)
        return {"raw": float(np.exp(log)), "log": log}


def log_partition_ratio(x: np.ndarray, *, unit_norm: bool = False) -> float:
    """log I(W) of the rows of `x` (n, d), <= 0; NaN without rows, with infinite ones, or with zero rows at norm 1."""
    if not len(x) or not np.isfinite(x).all():
        return float("nan")
    w = x.astype(np.float64)
    if unit_norm:
        unit = normalized_rows(w)
        if unit is None:
            return float("nan")
        w = unit
    _, directions = np.linalg.eigh(w.T @ w)  # the eigenvectors are the columns
    along = w @ directions  # (n, d)
    logs = np.concatenate([_log_sum_exp(along), _log_sum_exp(-along)])
    return float(logs.min() - logs.max())


def _log_sum_exp(a: np.ndarray) -> np.ndarray:
    """log of the columns' sums of exp, without overflow: (n, d) -> (d,)."""
    top = a.max(axis=0)
    result: np.ndarray = top + np.log(np.exp(a - top).sum(axis=0))
    return result
