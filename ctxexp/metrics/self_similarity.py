"""Self-similarity: how alike a word's vectors are across its contexts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.maths import influence
from ctxexp.maths.geometry import mean_cosine
from ctxexp.maths.prepared import PreparedRows, takes_prepared
from ctxexp.metric import GroupMean, Over


class SelfSimilarity(GroupMean):
    """Mean over words of the mean cosine between a word's occurrences, in [-1, 1] (Ethayarajh 2019, Definition 1).

    1: the contexts change nothing. The chance level is the mean cosine of unrelated occurrences. Exact over all
    pairs; the released code samples at most 1,000 pairs per word. `sample`: so many random words only.
    """

    over: ClassVar[Over] = "word"
    title = "Self-similarity of words"
    unit: ClassVar[str] = "cosine"
    maximum: ClassVar[float | None] = 1.0
    subject: ClassVar[str] = "words"
    lower: ClassVar[str] = "more context-specific"
    higher: ClassVar[str] = "less context-specific"
    definition = "mean cosine over all pairs of a word's occurrences (Definition 1)"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})
    cosine_statistic: ClassVar[str] = "baseline"
    extremes: ClassVar[tuple[str, str] | None] = ("most_self_similar", "least_self_similar")

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return mean_cosine(x)

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return influence.of_mean_cosine(x)
