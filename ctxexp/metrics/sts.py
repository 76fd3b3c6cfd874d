"""Semantic textual similarity: how well a pair's similarity ranks pairs as people do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ctxexp.maths.correlation import pearson, percentiles, resampled_spearman, spearman
from ctxexp.metrics.similarity import (
    SIMILARITIES,
    ScoredPairs,
    Similarity,
    SimilarityMetric,
    TaskStatistics,
    join_pairs,
    pair_counts,
)


class STS(SimilarityMetric):
    """Spearman's correlation x 100 of a pair's similarity with its gold score, in [-100, 100], three ways at once.

    `all`: over all pairs of a task's sub-sets together (Sentence-BERT, SimCSE, MTEB); `mean`: the unweighted mean of
    the sub-sets' correlations; `wmean`: that weighted by their numbers of scored pairs (SentEval, BERT-flow). They
    differ by several points on STS 2012-2016 and are equal where a task has one sub-set. `pearson_all`, `pearson_mean`,
    `pearson_wmean`: Pearson's correlation x 100. NaN where the similarities, or the gold scores, of a sub-set are all
    equal. `similarity`: cosine, dot (product) or euclidean (minus the distance).
    """

    title = "Semantic textual similarity"
    unit: ClassVar[str] = "Spearman × 100"
    subject: ClassVar[str] = "similarities of sentences"
    lower: ClassVar[str] = "less like people's judgements"
    higher: ClassVar[str] = "more like people's judgements"
    main: ClassVar[str] = "all"

    def __init__(self, *, similarity: Similarity = "cosine") -> None:
        super().__init__(similarity=similarity)
        self.definition = f"Spearman of {SIMILARITIES[similarity]} with gold, over all pairs of a task"
        self._intervals: dict[str, tuple[float, float]] = {}

    def task_statistics(self, parts: Sequence[ScoredPairs]) -> TaskStatistics:
        whole = join_pairs(parts)
        counts = pair_counts(parts)
        weights = np.array([part.defined.sum() for part in parts], np.float64)
        values: dict[str, float] = {}
        for prefix, correlation in (("", spearman), ("pearson_", pearson)):
            each = np.array([100 * correlation(*part.of("similarity", "gold")) for part in parts])
            values[f"{prefix}all"] = 100 * correlation(*whole.of("similarity", "gold"))
            values[f"{prefix}mean"] = float(each.mean())
            values[f"{prefix}wmean"] = float(each @ weights / weights.sum())  # of no pair at all each is NaN
        ends = np.cumsum([len(part) for part in parts])

        def statistics(drawn: np.ndarray) -> dict[str, np.ndarray]:
            own = [d[:, part.defined] for d, part in zip(np.split(drawn, ends[:-1], axis=1), parts, strict=True)]
            each = np.stack([_spearman(part, d) for part, d in zip(parts, own, strict=True)], axis=1)
            return {
                "all": each[:, 0] if len(parts) == 1 else _spearman(whole, np.concatenate(own, axis=1)),
                "mean": each.mean(axis=1),
                "wmean": each @ weights / weights.sum(),
                **{f"of {part.subset}": column for part, column in zip(parts, each.T, strict=True)},
            }

        resampled = self.bootstrap(parts, statistics)
        for part in parts:
            self._intervals[part.subset] = percentiles(resampled.pop(f"of {part.subset}"))
        return TaskStatistics(values, resampled, counts)

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        """The table, one row per sub-set: its pairs, Spearman x 100 with its interval (after `compute`), Pearson x
        100."""
        rows: list[dict[str, object]] = []
        for part in self._parts.values():
            low, high = self._intervals.get(part.subset, (float("nan"), float("nan")))
            rows.append(
                {
                    "subset": part.subset,
                    **pair_counts([part]),
                    "spearman": 100 * spearman(*part.of("similarity", "gold")),
                    "spearman_ci_low": low,
                    "spearman_ci_high": high,
                    "pearson": 100 * pearson(*part.of("similarity", "gold")),
                }
            )
        return {"table": rows}


def _spearman(part: ScoredPairs, counts: np.ndarray) -> np.ndarray:
    """Spearman x 100 in each resample (c,)."""
    result: np.ndarray = 100 * resampled_spearman(part.of("similarity", "gold"), counts)[:, 0, 1]
    return result
