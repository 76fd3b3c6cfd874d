"""Anisotropy: how alike unrelated occurrences are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ctxexp.files.writing import write_csv
from ctxexp.maths.cosines import BINS, histogram
from ctxexp.maths.geometry import mean_cosine
from ctxexp.measuring.groups import Group
from ctxexp.metric import Metric, Output, Over

MAX_OCCURRENCES = 2000  # at most, whose pairs are listed one by one
FILE = "cosine_histogram.csv"


class Anisotropy(Metric):
    """Mean cosine over all pairs of the baseline's random occurrences, in [-1, 1]; 0 for directions spread evenly.

    The baseline decides whether it is computed from a random sample or, in closed form, over all pairs of occurrences
    of different sentences; the interval is over the corpus's documents or sentences. `positive_pairs` is the share of
    the sample's pairs with a cosine above 0, in [0, 1] (in the histograms that Liang et al. 2021 plot, hardly any is
    below); of more than 2,000 occurrences, 2,000 evenly spaced ones are paired. The histogram of their cosines, with
    one column per layer, is saved as cosine_histogram.csv.
    """

    over: ClassVar[Over] = "sample"
    title = "Anisotropy"
    unit: ClassVar[str] = "cosine"
    subject: ClassVar[str] = "unrelated words"
    lower: ClassVar[str] = "less alike"
    higher: ClassVar[str] = "more alike"
    cosine_statistic: ClassVar[str] = "mean_cosine"
    definition = "mean cosine over all pairs of random occurrences"
    main: ClassVar[str] = "mean_cosine"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})

    def __init__(self) -> None:
        self._value, self._n = math.nan, 0
        self._histogram = np.zeros(BINS, np.int64)
        self._positive = math.nan

    def update(self, group: Group) -> None:
        if group.key != 0:
            return  # 0 is the sample itself, the others are redraws
        x = group.x
        self._value, self._n = self.baseline_value(x), len(x)
        if len(x) > MAX_OCCURRENCES:
            x = x[np.linspace(0, len(x) - 1, MAX_OCCURRENCES).round().astype(int)]
        self._histogram, self._positive = histogram(x)

    def compute(self) -> dict[str, float]:
        """mean_cosine and positive_pairs of the sample, n occurrences."""
        return {"mean_cosine": self._value, "positive_pairs": self._positive, "n": float(self._n)}

    def baseline_value(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    def outputs(self) -> dict[str, Histogram]:
        return {"cosine_histogram": Histogram(self._histogram)}


@dataclass(frozen=True)
class Histogram(Output):
    """How many pairs of a layer have a cosine in each bin."""

    counts: np.ndarray  # (BINS,) int64

    def write_together(self, by_place: Mapping[str, Histogram], folder: Path, *, n_layers: int, title: str) -> None:
        """Write one table of all layers: each bin's lower and upper edge, and the number of pairs of each layer."""
        import pandas as pd

        edges = (2 * np.arange(BINS + 1) - BINS) / BINS
        columns = {place: by_place[place].counts.tolist() for place in sorted(by_place)}
        table = pd.DataFrame({"from": edges[:-1], "to": edges[1:], **columns})
        write_csv(table, folder / FILE)
