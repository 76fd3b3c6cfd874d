"""Edit distance: how much of a sentence similarity is the likeness of two strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from ctxexp import Estimate, Pairs, Reading, ScoredPairs, SimilarityMetric
from ctxexp.datasets import tokenizer
from ctxexp.maths import partial_correlation, resampled_spearman, spearman

Units = Literal["words", "characters"]
COLUMNS_OF = {"similarity_distance": (0, 2), "gold_distance": (1, 2), "similarity_gold": (0, 1)}


class EditDistance(SimilarityMetric):
    """Spearman's correlations x 100 among similarity, gold score and Levenshtein distance, over all pairs of a task.

    `similarity_distance`, `gold_distance`, `similarity_gold` (Li et al. 2020, section 4.4), the same three among pairs
    at a distance of at most `threshold` (`near_...`, with `near_n`), and `partial`: similarity with gold, the ranks of
    the distance held fixed, which asks whether a calibration adds meaning or only takes out shared words.

    The distance counts insertions, deletions and substitutions of `units`: `words` of the lower-cased text (the
    tokenizer `english`, marks are words), or `characters` of the text as it is. The paper doesn't say which: it
    prints -24.61 for gold on STS-B, to which words come close on the dev pairs (-24.49) and characters don't (-20.21).

    units: what an edit changes: words (of the lower-cased text) or characters (of the text as it is)
    threshold: the largest distance, in these units, of the panel of near pairs
    similarity: cosine, dot, euclidean (negative distance)
    """

    title = "Similarity against edit distance"
    reading = Reading(unit="Spearman × 100", main="similarity_distance")
    definition = "Spearman of {similarity} with Levenshtein distance"

    def __init__(
        self,
        *,
        units: Units = "words",
        threshold: Annotated[int, Ge(0)] = 4,
        similarity: Literal["cosine", "dot", "euclidean"] = "cosine",
    ) -> None:
        super().__init__(similarity=similarity)
        self.units, self.threshold = units, threshold
        self.definition += f" in {units}"

    def columns(self, subset: str, pairs: Pairs) -> Mapping[str, np.ndarray]:
        return {"distance": np.array([_distance(a, b, self.units) for a, b in pairs.texts], np.float64)}

    def task_statistics(self, parts: Sequence[ScoredPairs]) -> dict[str, float | Estimate]:
        whole = ScoredPairs.join(parts)
        similarity, gold, distance = columns = whole.of("similarity", "gold", "distance")
        within = distance <= self.threshold
        close = [x[within] for x in columns]
        values = {name: 100 * spearman(columns[i], columns[j]) for name, (i, j) in COLUMNS_OF.items()}
        values["partial"] = 100 * partial_spearman(similarity, gold, distance)
        values |= {f"near_{name}": 100 * spearman(close[i], close[j]) for name, (i, j) in COLUMNS_OF.items()}

        def statistics(drawn: np.ndarray) -> dict[str, np.ndarray]:
            counts = drawn[:, whole.defined]
            rho, rho_near = resampled_spearman(columns, counts), resampled_spearman(close, counts[:, within])
            replicates = {name: 100 * rho[:, i, j] for name, (i, j) in COLUMNS_OF.items()}
            replicates |= {f"near_{name}": 100 * rho_near[:, i, j] for name, (i, j) in COLUMNS_OF.items()}
            return replicates | {"partial": 100 * partial_correlation(rho[:, 0, 1], rho[:, 0, 2], rho[:, 1, 2])}

        return {**self.with_intervals(values, parts, statistics), "near_n": int(within.sum())}

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        """The table, a row a task and range of distances (to the threshold, then doubling): mean gold and similarity,
        Spearman."""
        rows: list[dict[str, object]] = []
        for task, parts in self.tasks().items():
            similarity, gold, distance = ScoredPairs.join(parts).of("similarity", "gold", "distance")
            low, high = 0, self.threshold
            while low <= distance.max(initial=-1):
                inside = (low <= distance) & (distance <= high)
                if n := int(inside.sum()):
                    rows.append(
                        {
                            "task": task,
                            "distance_from": low,
                            "distance_to": high,
                            "n": n,
                            "gold_mean": float(gold[inside].mean()),
                            "similarity_mean": float(similarity[inside].mean()),
                            "similarity_sd": float(similarity[inside].std(ddof=1)) if n > 1 else float("nan"),
                            "similarity_gold": 100 * spearman(similarity[inside], gold[inside]),
                        }
                    )
                low, high = high + 1, 2 * max(high, 1)
        return {"table": rows}


@lru_cache(maxsize=2**16)  # layers and mixes ask for the same pairs
def _distance(a: str, b: str, units: Units) -> int:
    from rapidfuzz.distance import Levenshtein

    if units == "words":
        words = tokenizer("english", lower=True)
        return int(Levenshtein.distance(words(a).words, words(b).words))
    return int(Levenshtein.distance(a, b))


def partial_spearman(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> float:
    """Spearman's correlation of x and y with the ranks of `given` held fixed, in [-1, 1].

    Equal to Pearson's correlation of what is left of both rank vectors after linear regression on the ranks of `given`.
    NaN if one of the three is constant, or x or y has the ranks of `given` (or their reverse): nothing is left.
    """
    return float(partial_correlation(spearman(x, y), spearman(x, given), spearman(y, given)))
