"""Measures that the papers' claims need and no other plugin has: metrics, and a comparison of two layers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ctxexp_compare import ComparisonScore, Sample, TwoSpaces

from ctxexp import Group, Metric, Reading


class MassiveActivations(Metric):
    """Massive activations of sentences (Sun et al. 2024): entries a thousand times the median of their sentence.

    `log_ratio`: log10 of a sentence's largest absolute entry over the median one, the mean over sentences. `count`: how
    many are massive, over sentences that have any; `variation`: the coefficient of variation, over sentences' first
    words, of the dimension that is largest there; both NaN where no sentence has any.
    """

    over = "sentence"
    title = "Massive activations"
    reading = Reading(unit="log10 of the median", main="log_ratio")
    definition = "largest absolute entry over the median of its sentence (Sun et al. 2024)"
    invariances = frozenset({"scale"})
    times: ClassVar[float] = 1000.0

    def __init__(self) -> None:
        self._ratios: list[float] = []
        self._counts: list[int] = []
        self._first: list[np.ndarray] = []

    def update(self, group: Group) -> None:
        sizes = np.abs(group.x)
        relative = sizes / max(float(np.median(sizes)), np.finfo(np.float64).tiny)
        self._ratios.append(float(np.log10(relative.max())))
        self._counts.append(int((relative >= self.times).sum()))
        self._first.append(group.x[0].copy())

    def compute(self) -> dict[str, float]:
        counts = [count for count in self._counts if count]
        if not counts:
            return {"log_ratio": float(np.mean(self._ratios)), "count": np.nan, "variation": np.nan}
        first = np.array(self._first)
        column = first[:, np.abs(first).mean(axis=0).argmax()]
        variation = float(column.std() / abs(column.mean()))
        return {"log_ratio": float(np.mean(self._ratios)), "count": float(np.mean(counts)), "variation": variation}


class LinearFit(TwoSpaces):
    """Share of B's variance that a linear map of A gives in the rows of the fit (Razzhigaev et al. 2024).

    1 less the squared error of the best map, B about its mean at Frobenius norm 1. With fewer rows than dimensions it
    is 1 for any two spaces, and about d / n for noise: `linearity` is the same of rows held out.
    """

    name: ClassVar[str] = "linear_fit"
    title: ClassVar[str] = "Linearity in the rows of the fit"
    unit = "share of variance"
    symmetric: ClassVar[bool] = False

    def prepare_side(self, x: np.ndarray, sample: Sample) -> np.ndarray:
        return np.asarray(x - x.mean(axis=0), np.float64)

    def score(self, a: np.ndarray, b: np.ndarray) -> ComparisonScore:
        basis = np.linalg.svd(a, full_matrices=False)
        rank = int((basis[1] > basis[1].max(initial=0.0) * 1e-10).sum())
        along = basis[0][:, :rank].T @ b
        total = float((b**2).sum())
        return ComparisonScore(float((along**2).sum()) / total if total else float("nan"))

    def permute(self, side: np.ndarray, order: np.ndarray) -> np.ndarray:
        return np.asarray(side[order])
