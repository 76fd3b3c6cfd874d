"""Metrics of the baseline's random samples of occurrences: rogue dimensions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

import ctxexp
from ctxexp import Group, Reading

Redraws = Annotated[int, Ge(0)]


class SampleMetric(ctxexp.Metric):
    """Statistics of the first of the baseline's random samples of occurrences (those behind anisotropy); `sd` is the
    standard deviation of raw over `redraws` further samples, each of which costs as much as the first."""

    over = "sample"
    name: ClassVar[str]
    statistics: ClassVar[tuple[str, ...]] = ("raw",)  # names of the statistics in `values`, beside n

    def __init__(self, *, redraws: Redraws = 0) -> None:
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


TOP = (1, 3, 5)  # dimensions that are looked at, and removed, together


class RogueDimensions(SampleMetric):
    """Share of random occurrences' mean cosine that single dimensions make (Timkey & van Schijndel 2021).

    Dimension i adds u_i v_i to the cosine of x and y (u, v: x, y at norm 1); its mean over all pairs of the sample,
    in closed form, over the mean cosine is its share. `top_k` is the share of the k largest, k = 1, 3, 5, and
    `without_k` the mean cosine once those k coordinates are left out. A share is of what there is: where the mean
    cosine is about 0, it is noise over noise (`mean_cosine` stands beside it; NaN where it isn't positive). Depends on
    the axes, which is the point: no rotation leaves it as it is.
    """

    name: ClassVar[str] = "rogue_dimensions"
    title = "Rogue dimensions"
    reading = Reading(
        unit="share of the mean cosine",
        subject="cosines",
        lower="less ruled by one dimension",
        higher="more ruled by one dimension",
    )
    statistics: ClassVar[tuple[str, ...]] = (
        "raw", "mean_cosine", *(f"top_{k}" for k in TOP), *(f"without_{k}" for k in TOP), "dimension",
    )  # fmt: skip
    definition = "share of random occurrences' mean cosine from its largest dimension (Timkey & van Schijndel 2021)"
    invariances = frozenset({"scale", "row_scale", "permutation"})

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw = top_1, top_3, top_5; without_1, _3, _5, in [-1, 1]; mean_cosine; dimension, the largest one's index."""
        each = contributions(x)
        if each is None:
            return {}
        order, whole = np.argsort(-each, kind="stable"), float(each.sum())
        statistics = {"mean_cosine": whole, "dimension": float(order[0])}
        for k in TOP:
            if k < x.shape[1]:
                statistics[f"top_{k}"] = float(each[order[:k]].sum()) / whole if whole > 0 else float("nan")
                rest = contributions(np.delete(x, order[:k], axis=1))
                statistics[f"without_{k}"] = float("nan") if rest is None else float(rest.sum())
        return {"raw": statistics.get("top_1", float("nan")), **statistics}


def contributions(x: np.ndarray) -> np.ndarray | None:
    """Terms (d,) of the dimensions in the mean cosine of all pairs of rows of `x` (n, d); None with a zero row."""
    u = normalized_rows(x)
    if u is None:
        return None
    n = len(u)
    return (u.sum(axis=0) ** 2 - (u**2).sum(axis=0)) / (n * (n - 1))
