"""Intra-sentence similarity: how alike the words of a sentence are to their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ctxexp.maths import influence
from ctxexp.maths.geometry import mean_cosine, mean_cosine_to_mean
from ctxexp.maths.prepared import PreparedRows, takes_prepared
from ctxexp.metric import RUN, GroupMean, Over


class IntraSentenceSimilarity(GroupMean):
    """Mean over sentences of the mean cosine of their words to the sentence's mean vector (Ethayarajh 2019,
    Definition 2).

    The chance level is, as in the paper, the mean cosine of unrelated occurrences, although the measure itself grows
    as the sentence gets shorter: for unit vectors it is sqrt((1 + (n - 1) c) / n), c the mean cosine within the
    sentence. Size-matched random groups, as a second one of the `baselines`, remove this. `sample`: so many random
    sentences only (the paper: 500). `unit_norm`: scale words to norm 1 before taking the mean, so that a few long
    vectors don't rule it.
    """

    over: ClassVar[Over] = "sentence"
    title = "Intra-sentence similarity"
    unit: ClassVar[str] = "cosine"
    maximum: ClassVar[float | None] = 1.0
    subject: ClassVar[str] = "the words of a sentence"
    lower: ClassVar[str] = "less alike"
    higher: ClassVar[str] = "more alike"
    cosine_statistic: ClassVar[str] = "baseline"

    def __init__(
        self, *, sample: int | None = None, unit_norm: bool = False, baselines: Sequence[str] = (RUN,)
    ) -> None:
        super().__init__(sample=sample, baselines=baselines)
        self.unit_norm = unit_norm
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"row_scale"} if unit_norm else set()))
        self.variant = "unit_norm" if unit_norm else ""
        words = "its words scaled to norm 1" if unit_norm else "its words"
        self.definition = f"mean cosine of a sentence's words to the mean of {words} (Definition 2)"

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return mean_cosine_to_mean(x, unit_norm=self.unit_norm)

    def baseline_value(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return influence.of_mean_cosine_to_mean(x, unit_norm=self.unit_norm)

    def baseline_influence(self, x: np.ndarray) -> np.ndarray:
        return influence.of_mean_cosine(x)
