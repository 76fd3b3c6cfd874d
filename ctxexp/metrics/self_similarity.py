"""Self-similarity: how alike a word's vectors are across its contexts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.maths import influence
from ctxexp.maths.geometry import mean_cosine
from ctxexp.maths.summary import summary
from ctxexp.measuring.one_pass.additive import Addends, Additive, Batch, Found, OnePass, Sums
from ctxexp.metric import GroupMean, Over


class SelfSimilarity(GroupMean, OnePass):
    """Mean over words of the mean cosine between a word's occurrences, in [-1, 1] (Ethayarajh 2019, Definition 1).

    1: the contexts change nothing. The chance level is the mean cosine of unrelated occurrences. Exact over all
    pairs; the released code samples at most 1,000 pairs a word. `sample`: so many random words only.
    """

    over: ClassVar[Over] = "word"
    title = "Self-similarity of words"
    unit: ClassVar[str] = "cosine"
    definition = "mean cosine over all pairs of a word's occurrences (Definition 1)"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})
    cosine_level: ClassVar[str] = "baseline"
    extremes: ClassVar[tuple[str, str] | None] = ("most_self_similar", "least_self_similar")

    def __init__(self, *, sample: int | None = None) -> None:
        super().__init__(sample=sample)

    def score(self, x: np.ndarray) -> np.ndarray:
        return mean_cosine(x)

    def influence(self, x: np.ndarray) -> np.ndarray:
        return influence.of_mean_cosine(x)

    def additive(self) -> Additive:
        return _WordCosines()


class _WordCosines(Additive):
    """From the sum of each word's unit rows, s: (|s|^2 - n) / (n^2 - n)."""

    def addends(self, batch: Batch) -> Addends:
        return Addends(by_word={"unit": batch.unit})

    def found(self, sums: Sums) -> Found:
        scores = np.clip(self._scores(sums), -1.0, 1.0)  # clip keeps NaN
        defined = np.isfinite(scores)
        return Found({**summary(scores[defined]), "undefined": float(np.count_nonzero(~defined))}, scores)

    def moved(self, part: Sums, whole: Sums) -> np.ndarray:
        """The sum of `of_mean_cosine` over the part's rows of each word; NaN below 3 rows, as there."""
        n, along = whole.n.astype(np.float64), np.vecdot(part.by_word["unit"], whole.by_word["unit"])
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = (along - part.n) / (n - 1) - part.n * self._scores(whole)
            result: np.ndarray = np.where(n > 2, moved * (2 / (n - 2)) * np.sqrt((n - 1) / n), np.nan)
        return result

    def _scores(self, sums: Sums) -> np.ndarray:
        n, unit = sums.n.astype(np.float64), sums.by_word["unit"]
        with np.errstate(invalid="ignore", divide="ignore"):
            result: np.ndarray = np.where(n > 1, (np.vecdot(unit, unit) - n) / (n * n - n), np.nan)
        return result
