"""What the measures of the baseline's random occurrences share: the first sample's values, redraws for the spread."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

import ctxexp
from ctxexp.errors import MetricError
from ctxexp.metric import Group, Over


class SampleMetric(ctxexp.Metric):
    """Values of the baseline's first sample; `redraws` more samples, each at the same cost, give the spread of raw."""

    over: ClassVar[Over] = "sample"
    name: ClassVar[str]
    statistics: ClassVar[tuple[str, ...]] = ("raw",)  # what `values` gives, beside n

    def __init__(self, *, redraws: int = 0) -> None:
        if redraws < 0:
            raise MetricError(f"{self.name} redraws={redraws}: expected 0 or more")
        self.redraws = redraws
        self._values: dict[int, dict[str, float]] = {}  # sample -> its statistics

    @abstractmethod
    def values(self, x: np.ndarray) -> dict[str, float]:
        """The statistics of the rows of `x` (n, d) float64, all finite and at least two; n where not all rows count."""

    def update(self, group: Group) -> None:
        at, x = int(str(group.key)), group.x
        if at <= self.redraws:
            found = dict.fromkeys(self.statistics, float("nan"))
            if len(x) > 1 and np.isfinite(x).all():
                found |= self.values(x.astype(np.float64))
            self._values[at] = {"n": float(len(x)), **found}

    def compute(self) -> dict[str, float]:
        """The statistics of sample 0; sd of raw over the redraws (NaN without two); n rows."""
        found = self._values.get(0, {**dict.fromkeys(self.statistics, float("nan")), "n": 0.0})
        others = np.array([values["raw"] for key, values in sorted(self._values.items()) if key > 0])
        return {**found, "sd": float(others.std(ddof=1)) if len(others) > 1 else float("nan")}


def unit_rows(x: np.ndarray) -> np.ndarray | None:
    """The rows of `x` (n, d) at norm 1; None where a row is zero."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / lengths if lengths.all() else None
