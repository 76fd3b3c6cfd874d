"""Anisotropy: how alike unrelated occurrences are."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar, Self

import numpy as np

from ctxexp.geometry import mean_cosine
from ctxexp.metric import GroupBy, Metric


class Anisotropy(Metric):
    """Mean cosine over all pairs of the baseline's random occurrences, in [-1, 1]; 0 for directions spread evenly.

    The value is the first sample's; its 95% interval is Student's, from the spread of the redraws.
    """

    over: ClassVar[GroupBy] = "sample"
    unit: ClassVar[str] = "cosine"
    definition = "mean cosine over all pairs of random occurrences"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})

    def __init__(self) -> None:
        self._values: dict[int, tuple[float, int]] = {}  # redraw -> mean cosine, occurrences

    def update(self, key: Hashable, x: np.ndarray) -> None:
        self._values[int(str(key))] = float(mean_cosine(x)), len(x)

    def merge(self, other: Self) -> None:
        self._values.update(other._values)

    def compute(self) -> dict[str, float]:
        """mean_cosine of sample 0, its 95% interval (NaN without two redraws), n occurrences."""
        value, n = self._values.get(0, (math.nan, 0))
        redraws = np.array([v for key, (v, _) in sorted(self._values.items()) if key > 0])
        half = math.nan
        if len(redraws) > 1:
            # Student's 97.5% quantile to two terms of its expansion in 1/df: 1.960 + 2.372 / df + 2.823 / df^2
            df = len(redraws) - 1
            half = (1.959964 + 2.372272 / df + 2.822501 / df**2) * float(redraws.std(ddof=1))
        return {
            "mean_cosine": value,
            "mean_cosine_ci_low": value - half,
            "mean_cosine_ci_high": value + half,
            "n": float(n),
        }
