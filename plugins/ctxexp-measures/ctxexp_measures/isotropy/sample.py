"""Base class of metrics of the baseline's random samples of occurrences."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

import ctxexp
from ctxexp import Group
from ctxexp.errors import MetricError


class SampleMetric(ctxexp.Metric):
    """Statistics of the first of the baseline's random samples of occurrences (those behind anisotropy); `sd` is the
    standard deviation of raw over `redraws` further samples, each of which costs as much as the first."""

    over = "sample"
    name: ClassVar[str]
    statistics: ClassVar[tuple[str, ...]] = ("raw",)  # names of the statistics in `values`, beside n

    def __init__(self, *, redraws: int = 0) -> None:
        if redraws < 0:
            raise MetricError(f"{self.name} redraws={redraws}: expected 0 or more")
        self.redraws = redraws
        self._values: dict[int, dict[str, float]] = {}  # sample -> its statistics

    @abstractmethod
    def values(self, x: np.ndarray) -> dict[str, float]:
        """The statistics of a sample.

        Args:
            x: its rows (n, d) float64, at least two, all finite.

        Returns:
            Values by name, those of `statistics` (one that is left out becomes NaN); `n` too where not all rows count.
        """

    def update(self, group: Group) -> None:
        number, x = int(str(group.key)), group.x
        if number <= self.redraws:  # other metrics may have asked for more samples
            statistics = dict.fromkeys(self.statistics, float("nan"))
            if len(x) > 1 and np.isfinite(x).all():
                statistics |= self.values(x.astype(np.float64))
            self._values[number] = {"n": float(len(x)), **statistics}

    def compute(self) -> dict[str, float]:
        """The statistics of sample 0; sd of raw over the redraws (NaN without two); n rows."""
        statistics = self._values.get(0, {**dict.fromkeys(self.statistics, float("nan")), "n": 0.0})
        others = np.array([values["raw"] for key, values in sorted(self._values.items()) if key > 0])
        return {**statistics, "sd": float(others.std(ddof=1)) if len(others) > 1 else float("nan")}


def normalized_rows(x: np.ndarray) -> np.ndarray | None:
    """The rows of `x` (n, d) at norm 1; None where a row is zero."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / lengths if lengths.all() else None
