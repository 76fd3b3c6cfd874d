"""Concept categorisation: BLESS and AP, do clusters of vectors find the classes that people see?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ctxexp.maths import kmeans
from ctxexp_measures.words.score import BenchmarkScore
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace

Clustering = Literal["kmeans", "agglomerative", "best"]
STARTS = 10  # seeded beginnings of k-means; the one with the least inertia is taken


@dataclass(frozen=True)
class Categorisation:
    """Words, each of one class."""

    name: str
    members: tuple[str, ...]
    classes: tuple[str, ...]  # one a word

    def words(self) -> set[str]:
        return set(self.members)


def score_categorisation(
    space: WordSpace,
    benchmark: Categorisation,
    *,
    oov: OutOfVocabulary = "skip",
    clustering: Clustering = "kmeans",
    seed: int = 0,
) -> list[BenchmarkScore]:
    """Purity, in (0, 1]: the share of words that are of their cluster's commonest class. More is better.

    As many clusters as the clustered words have classes, of unit-norm vectors. `kmeans`: of 10 seeded beginnings
    (k-means++) the one with the least inertia. `agglomerative`: average linkage by cosine. `best`: the highest purity
    of those two and of Ward's, complete and Euclidean average linkage, as the word-embeddings-benchmarks package
    chooses; picked by looking at the classes, so it flatters. With `oov="mean"` missing words share the mean vector.
    """
    rows = space.rows(benchmark.members)
    is_covered = rows >= 0
    counts = is_covered if oov == "skip" else np.ones(len(rows), bool)
    value = float("nan")
    if counts.any():
        classes = np.unique(np.array(benchmark.classes)[counts], return_inverse=True)[1]
        x = space.normalized(rows[counts])
        value = max(purity(labels, classes) for labels in _clusterings(x, int(classes.max()) + 1, clustering, seed))
    return [BenchmarkScore(benchmark.name, "", value, int(counts.sum()), int(is_covered.sum()), len(rows))]


def purity(clusters: np.ndarray, classes: np.ndarray) -> float:
    """Share of items that are of their cluster's commonest class, for cluster and class numbers (n,) from 0."""
    table = np.zeros((int(clusters.max()) + 1, int(classes.max()) + 1), np.int64)
    np.add.at(table, (clusters, classes), 1)
    return float(table.max(axis=1).sum() / len(classes))


def _clusterings(x: np.ndarray, k: int, clustering: Clustering, seed: int) -> list[np.ndarray]:
    if clustering == "kmeans":
        return [_kmeans(x, k, seed)]
    linkages = [("average", "cosine")]
    if clustering == "best":
        linkages += [("ward", "euclidean"), ("complete", "cosine"), ("average", "euclidean")]
    labels = [_agglomerative(x, k, method, metric) for method, metric in linkages]
    return labels if clustering == "agglomerative" else [_kmeans(x, k, seed), *labels]


def _kmeans(x: np.ndarray, k: int, seed: int) -> np.ndarray:
    return kmeans(x, k, seed=seed, starts=STARTS)[0]


def _agglomerative(x: np.ndarray, k: int, method: str, metric: str) -> np.ndarray:
    """(n,) cluster numbers of hierarchical clustering, cut at k clusters."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import pdist

    if len(x) <= k:
        return np.arange(len(x))
    tree = linkage(np.maximum(np.nan_to_num(pdist(x, metric), nan=1.0), 0.0), method)  # a zero vector is at 1 from all
    return np.asarray(cut_tree(tree, n_clusters=k)[:, 0], np.int64)
