"""Isotropy within clusters: how alike random words are once each cluster's own direction is taken away."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.geometry import mean_cosine
from ctxexp.streams import Stream
from ctxexp_isotropy.sample import SampleMetric

STARTS, ROUNDS = 8, 100  # of k-means: runs from different seeds, and steps of each
LARGEST = 10  # clusters that are tried
LEAST = 0.1  # mean silhouette below which there is but one cluster
ROUNDING = 1e-10  # of float64 sums, relative to the rows: less is no direction
SCORED = 2000  # rows that the silhouette is taken over, at most


class ClusterAdjustedSimilarity(SampleMetric):
    """Mean cosine within clusters after each cluster's mean is removed, in [-1, 1] (Cai et al. 2021).

    The paper's point: a space that is anisotropic as a whole can be isotropic within its clusters, and then this is
    about 0 (just below: n rows about their own mean have -1 / (n - 1) on average). `clusters`: their number; null
    takes that of 2 to 10 with the largest mean silhouette, and one where none reaches 0.1. k-means with k-means++
    seeds, the best of 8 runs, seeded by `seed`: the order of rows may change the clusters found. The mean is over all
    pairs of one cluster, so large clusters weigh more. `single` is the same with all rows as one cluster.
    """

    name: ClassVar[str] = "cluster_adjusted_similarity"
    title = "Similarity adjusted by clusters"
    unit: ClassVar[str] = "cosine"
    statistics: ClassVar[tuple[str, ...]] = ("raw", "single", "clusters", "silhouette")
    invariances = frozenset({"rotation", "scale", "shift"})

    def __init__(self, *, clusters: int | None = None, seed: int = 0, redraws: int = 0) -> None:
        super().__init__(redraws=redraws)
        if clusters is not None and clusters < 1:
            raise MetricError(f"{self.name} clusters={clusters}: expected 1 or more, or null for the best silhouette")
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
            labels = k_means(x, min(self.clusters, len(x)), seed=self.seed)
            return labels, mean_silhouette(x, labels)
        best, score = np.zeros(len(x), np.intp), float("nan")
        for k in range(2, min(LARGEST, len(x) - 1) + 1):
            labels = k_means(x, k, seed=self.seed)
            found = mean_silhouette(x, labels)
            if found >= LEAST and not found <= score:
                best, score = labels, found
        return best, score


def k_means(x: np.ndarray, k: int, *, seed: int = 0) -> np.ndarray:
    """Cluster of each row of `x` (n, d), 0 to at most k - 1, none empty: (n,). Lloyd's steps from k-means++ seeds."""
    rng = np.random.default_rng([seed, Stream.CLUSTERS, k])
    best, least = np.zeros(len(x), np.intp), np.inf
    for _ in range(STARTS if k > 1 else 0):
        centres = _seeds(x, k, rng)
        labels = np.full(len(x), -1)
        for _ in range(ROUNDS):
            squares = _squares(x, centres)
            nearest = squares.argmin(axis=1)
            if (nearest == labels).all():
                break
            labels = nearest
            used = np.unique(labels)
            centres = np.stack([x[labels == c].mean(axis=0) for c in used])
            labels = np.searchsorted(used, labels)
        inertia = float(_squares(x, centres).min(axis=1).sum())
        if inertia < least * (1 - 1e-9):
            best, least = labels, inertia
    return best


def mean_silhouette(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean silhouette of the rows of `x` (n, d), in [-1, 1] (Rousseeuw 1987), of the first 2,000; NaN of one cluster.

    A row alone in its cluster scores 0.
    """
    x, labels = x[:SCORED], np.unique(labels[:SCORED], return_inverse=True)[1]
    k = int(labels.max()) + 1
    if k < 2:
        return float("nan")
    member = np.eye(k)[labels]  # (n, k)
    sizes = member.sum(axis=0)
    totals = np.sqrt(_squares(x, x)) @ member  # (n, k): summed distances to each cluster
    own = sizes[labels]
    rows = np.arange(len(x))
    within = totals[rows, labels] / np.maximum(own - 1, 1)
    means = totals / sizes
    means[rows, labels] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(within, outside)
    score = np.divide(outside - within, larger, out=np.zeros(len(x)), where=(own > 1) & (larger > 0))
    return float(score.mean())


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


def _seeds(x: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ (Arthur & Vassilvitskii 2007): each next seed with probability in its squared distance to the last."""
    chosen = [int(rng.integers(len(x)))]
    nearest = _squares(x, x[chosen])[:, 0]
    while len(chosen) < k and nearest.sum() > 0:
        at = min(int(np.searchsorted(np.cumsum(nearest), rng.random() * nearest.sum(), side="right")), len(x) - 1)
        chosen.append(at)
        nearest = np.minimum(nearest, _squares(x, x[at : at + 1])[:, 0])
    return x[chosen]


def _squares(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances (n, k) of the rows of `x` (n, d) to `centres` (k, d)."""
    result: np.ndarray = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * x @ centres.T
    np.maximum(result, 0, out=result)
    return result
