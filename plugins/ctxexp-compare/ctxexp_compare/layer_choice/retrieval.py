"""Queries and documents by layer: how high the documents that answer a query rank."""

from __future__ import annotations

import numpy as np

from ctxexp import Estimate, Group, Metric, Reading
from ctxexp.maths import resamples

NEAREST = 10  # documents that count


class Retrieval(Metric):
    """Mean over queries of nDCG@10 x 100 of the documents by cosine, in [0, 100], with an interval over queries.

    A pair with gold 1 is a query with a document that answers it, every other a document twice. The gain of a document
    at rank r is 1 / log2(r + 1), and 0 beyond the tenth (Järvelin and Kekäläinen 2002); of equally near ones each has
    the mean rank.
    """

    over = "pair"
    title = "Retrieval"
    definition = "nDCG@10 of the documents by cosine"
    reading = Reading(unit="nDCG@10 × 100", main="all")

    def __init__(self) -> None:
        self._scores = np.empty(0)

    def update(self, group: Group) -> None:
        pairs = group.gold_pairs()
        assert pairs.ends is not None  # of a corpus
        self._scores = ndcg(np.asarray(group.x), np.array(pairs.ends), np.array(pairs.gold) > 0)

    def compute(self) -> dict[str, float | Estimate]:
        scores, (rng, replicates) = self._scores, self.resampling
        means = [counts @ scores / len(scores) for counts in resamples([len(scores)], replicates, rng)]
        return {"all": Estimate.of(float(scores.mean()), np.concatenate([np.empty(0), *means]))}


def ndcg(x: np.ndarray, ends: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """nDCG@10 x 100 of each query (n_queries,), of pairs' vectors (n, 2, d), their sentences' numbers (n, 2), and which
    pairs are a query with its answer (n,)."""
    numbers, first = np.unique(ends[:, 1], return_index=True)
    documents = _normalized(x[first, 1])
    queries, of_query = np.unique(ends[answers, 0], return_inverse=True)
    asked = _normalized(x[answers, 0][np.unique(of_query, return_index=True)[1]])
    document = np.searchsorted(numbers, ends[answers, 1])
    gains, ideal = np.zeros(len(queries)), np.zeros(len(queries))
    best = np.cumsum(1 / np.log2(np.arange(2, NEAREST + 2)))
    for i, query in enumerate(asked):
        cosines = documents @ query
        own = cosines[np.unique(document[of_query == i])]
        rank = 1 + (cosines > own[:, None]).sum(axis=1) + ((cosines == own[:, None]).sum(axis=1) - 1) / 2
        gains[i] = (1 / np.log2(rank[rank <= NEAREST] + 1)).sum()
        ideal[i] = best[min(len(own), NEAREST) - 1]
    return 100 * gains / ideal


def _normalized(x: np.ndarray) -> np.ndarray:
    rows = x.astype(np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
