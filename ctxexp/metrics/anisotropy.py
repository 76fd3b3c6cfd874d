"""Anisotropy: how alike unrelated occurrences are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from ctxexp.files.tables import write_csv
from ctxexp.files.writing import replacing
from ctxexp.maths.cosines import BINS, histogram
from ctxexp.maths.geometry import mean_cosine
from ctxexp.measuring.one_pass.additive import Addends, Additive, Batch, Found, OnePass, Sums
from ctxexp.metric import Group, Metric, Over

MOST = 2000  # occurrences whose pairs are listed one by one
FILE = "cosine_histogram.csv"


class Anisotropy(Metric, OnePass):
    """Mean cosine over all pairs of the baseline's random occurrences, in [-1, 1]; 0 for directions spread evenly.

    Drawn, or in closed form over all pairs of occurrences of different sentences, as the baseline says; the interval is
    over the corpus's documents or sentences. `positive_pairs` is the share of the sample's pairs with a cosine above 0
    (Liang et al. 2021 draw such pairs' histogram: hardly any is below), in [0, 1]; of more than 2,000 occurrences,
    2,000 evenly spaced ones are paired. The histogram of their cosines, a column a layer, is saved as
    cosine_histogram.csv.
    """

    over: ClassVar[Over] = "sample"
    title = "Anisotropy"
    unit: ClassVar[str] = "cosine"
    cosine_level: ClassVar[str] = "mean_cosine"
    definition = "mean cosine over all pairs of random occurrences"
    main: ClassVar[str] = "mean_cosine"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})

    def __init__(self) -> None:
        self._value, self._n = math.nan, 0
        self._histogram = np.zeros(BINS, np.int64)
        self._positive = math.nan

    def update(self, group: Group) -> None:
        if group.key != 0:
            return  # redraws
        x = group.x
        self._value, self._n = self.null(x), len(x)
        if len(x) > MOST:
            x = x[np.linspace(0, len(x) - 1, MOST).round().astype(int)]
        self._histogram, self._positive = histogram(x)

    def compute(self) -> dict[str, float]:
        """mean_cosine and positive_pairs of the sample, n occurrences."""
        return {"mean_cosine": self._value, "positive_pairs": self._positive, "n": float(self._n)}

    def null(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    def save(self, folder: Path) -> None:
        """Write the layer's histogram, for `finish` to lay beside the others'."""
        with replacing(folder / FILE) as part:
            np.savetxt(part, self._histogram, fmt="%d")

    def finish(self, folder: Path, *, n_layers: int, title: str) -> None:
        """One table of all layers: each bin's lower and upper edge, and how many pairs of each layer are in it."""
        import pandas as pd

        edges = (2 * np.arange(BINS + 1) - BINS) / BINS
        columns: dict[str, Sequence[float]] = {"from": edges[:-1].tolist(), "to": edges[1:].tolist()}
        for path in sorted(folder.glob(f"layer_*/{FILE}")):
            columns[path.parent.name] = np.loadtxt(path, dtype=np.int64).tolist()
            path.unlink()
            path.parent.rmdir()
        write_csv(pd.DataFrame(columns), folder / FILE)

    def additive(self) -> Additive:
        return _Level()


class _Level(Additive):
    """It is the chance level itself, which is summed with every measure's; of the random sample nothing is told."""

    def addends(self, batch: Batch) -> Addends:
        return Addends()

    def found(self, sums: Sums) -> Found:
        return Found({})
