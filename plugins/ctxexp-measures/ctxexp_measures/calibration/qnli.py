"""QNLI: whether the sentence that answers a question is the one most similar to it, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ctxexp import Estimate, Pairs, Reading, ScoredPairs, SimilarityMetric
from ctxexp.errors import MetricError
from ctxexp_measures.calibration.auc import auc, resampled_auc


class QNLI(SimilarityMetric):
    """Area under the ROC curve x 100, in [0, 100], of similarity against entailment (Li et al. 2020, section 4.3).

    The chance, in percent, that a sentence which answers its question (gold 1) is more similar to it than one that
    doesn't (gold 0) is to its own; 50 is chance. NaN where all pairs have the same label.
    """

    title = "Question against answer"
    reading = Reading(unit="AUC × 100", main="auc")
    definition = "area under the ROC curve of {similarity} against gold 1"

    def columns(self, subset: str, pairs: Pairs) -> Mapping[str, np.ndarray]:
        odd = set(np.unique(pairs.gold).tolist()) - {0.0, 1.0}
        if odd:
            raise MetricError(
                f"gold {min(odd)} in sub-set {subset!r}: expected 0 or 1, whether the second sentence answers the "
                "first; qnli is for dataset=qnli, graded pairs are for metric=sts"
            )
        return {}

    def task_statistics(self, parts: Sequence[ScoredPairs]) -> dict[str, float | Estimate]:
        whole = ScoredPairs.join(parts)
        similarity, gold = whole.of("similarity", "gold")

        def statistics(counts: np.ndarray) -> dict[str, np.ndarray]:
            return {"auc": 100 * resampled_auc(similarity, gold == 1, counts[:, whole.defined])}

        area = self.with_intervals({"auc": 100 * auc(similarity, gold == 1)}, parts, statistics)
        return {**area, "entailed": int((gold == 1).sum())}
