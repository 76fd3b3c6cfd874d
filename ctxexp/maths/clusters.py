"""Clusters of rows by k-means, scikit-learn's, the same on any number of processors; and of what is linked in pairs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


def kmeans(x: np.ndarray, k: int, *, seed: int, starts: int = 1, rounds: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Cluster of each row of x (n, d), 0 to at most k - 1, none empty: (n,); and their centres (c, d).

    Lloyd's algorithm from `starts` k-means++ beginnings, the one of least inertia, until no row changes its cluster or
    for so many `rounds`. Fewer than k clusters where there are fewer different rows.
    """
    from sklearn.cluster import KMeans

    if len(np.unique((x**2).sum(axis=1))) < k:  # else there are k different rows, and no need to look for equal ones
        k = min(k, len(np.unique(x, axis=0)))
    with _libraries().limit(limits=1):  # several threads add up in whatever order they end
        model = KMeans(k, n_init=starts, max_iter=rounds, tol=0, random_state=seed).fit(x)
    return model.labels_, model.cluster_centers_


def components(links: np.ndarray, n: int) -> np.ndarray:
    """The component of each of n things that links (k, 2) between them make, 0 to at most n - 1: (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    result: np.ndarray = connected_components(coo_array((np.ones(len(links)), links.T), (n, n)), directed=False)[1]
    return result


@cache
def _libraries() -> Any:
    """The thread pools of the libraries that scikit-learn has loaded: looking for them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
