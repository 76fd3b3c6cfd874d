"""Isotropy within clusters: mean cosine of random words once each cluster's mean is removed."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from ctxexp import Reading
from ctxexp.maths import kmeans, mean_cosine
from ctxexp_measures.isotropy.sample import Redraws, SampleMetric

STARTS, ROUNDS = 8, 100  # of k-means: runs from different seeds, and steps of each
LARGEST = 10  # clusters that are tried
LEAST = 0.1  # mean silhouette below which there is but one cluster
ROUNDING = 1e-10  # of float64 sums, relative to the rows: less is no direction
SCORED = 2000  # rows that the silhouette is taken over, at most


class ClusterAdjustedSimilarity(SampleMetric):
    """Mean cosine within clusters after each cluster's mean is removed, in [-1, 1] (Cai et al. 2021).

    The paper's point: a space that is anisotropic as a whole can be isotropic within its clusters, and then this is
    about 0 (just below: n rows about their own mean have -1 / (n - 1) on average). Clusters are k-means' with k-means++
    seeds, the best of 8 runs: the order of rows may change those found. The mean is over all pairs of one cluster, so
    large clusters weigh more. `single` is the same with all rows as one cluster.

    clusters: their number; null: that of 2 to 10 with the largest mean silhouette, and one where none reaches 0.1
    seed: of k-means
    """

    name: ClassVar[str] = "cluster_adjusted_similarity"
    title = "Similarity adjusted by clusters"
    reading = Reading(unit="cosine")
    statistics: ClassVar[tuple[str, ...]] = ("raw", "single", "clusters", "silhouette")
    invariances = frozenset({"rotation", "scale", "shift"})

    def __init__(self, *, clusters: Annotated[int, Ge(1)] | None = None, seed: int = 0, redraws: Redraws = 0) -> None:
        super().__init__(redraws=redraws)
        self.clusters, self.seed = clusters, seed
        how = "clusters by silhouette" if clusters is None else f"{clusters} clusters"
        self.definition = f"mean cosine within clusters about their means, {how} (Cai et al. 2021)"

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw; single; clusters, how many; silhouette, their mean one (NaN of one cluster). NaN for equal rows."""
        size = float(np.linalg.norm(x))
        x = x - x.mean(axis=0)
        if np.linalg.norm(x) <= ROUNDING * size:
            return {"clusters": 1.0}
        labels, score = self._labels(x)
        return {
            "raw": _within(x, labels),
            "single": _within(x, np.zeros(len(x), np.intp)),
            "clusters": float(labels.max() + 1),
            "silhouette": score,
        }

    def _labels(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        if self.clusters is not None:
            labels = self._clusters(x, self.clusters)
            return labels, mean_silhouette(x, labels)
        best, score = np.zeros(len(x), np.intp), float("nan")
        distances = _distances(x)
        for k in range(2, min(LARGEST, len(x) - 1) + 1):
            labels = self._clusters(x, k)
            silhouette = _silhouette(distances, labels)
            if silhouette >= LEAST and not silhouette <= score:
                best, score = labels, silhouette
        return best, score

    def _clusters(self, x: np.ndarray, k: int) -> np.ndarray:
        return kmeans(x, k, seed=self.seed, starts=STARTS, rounds=ROUNDS)[0]


def mean_silhouette(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean silhouette of the rows of `x` (n, d), in [-1, 1] (Rousseeuw 1987), of the first 2,000; NaN of one cluster.

    A row alone in its cluster scores 0.
    """
    return _silhouette(_distances(x), labels)


def _distances(x: np.ndarray) -> np.ndarray:
    """(s, s) between the first 2,000 rows."""
    from sklearn.metrics import euclidean_distances

    return euclidean_distances(x[:SCORED])


def _silhouette(distances: np.ndarray, labels: np.ndarray) -> float:
    """`mean_silhouette` of rows at these distances (s, s), which clusterings of the same rows share."""
    from sklearn.metrics import silhouette_score

    labels = labels[: len(distances)]
    k = len(np.unique(labels))
    if k < 2:
        return float("nan")
    return float(silhouette_score(distances, labels, metric="precomputed")) if k < len(labels) else 0.0


def _within(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean cosine over the pairs of rows of one cluster, each cluster about its mean; NaN where no cluster has any."""
    total, pairs = 0.0, 0
    for c in range(int(labels.max()) + 1):
        rows = x[labels == c]
        rows = rows - rows.mean(axis=0)
        rows = rows[np.linalg.norm(rows, axis=1) > ROUNDING * np.linalg.norm(x)]  # the others are their mean
        if len(rows) > 1:
            n = len(rows) * (len(rows) - 1)
            total, pairs = total + n * float(mean_cosine(rows)), pairs + n
    return total / pairs if pairs else float("nan")
