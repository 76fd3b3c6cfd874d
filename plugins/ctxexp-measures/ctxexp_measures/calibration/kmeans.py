"""Seeded k-means on a bounded sample: the same centres whatever the order of the rows and however they are turned."""

from __future__ import annotations

import numpy as np

from ctxexp import maths

CHUNK = 4096  # rows that are widened to float64 at a time
SAMPLE = 10_000  # rows that centres are sought on
ROUNDS = 50  # of Lloyd's algorithm, at most


def kmeans(x: np.ndarray, origin: np.ndarray, k: int, seed: int, *, sample: int = SAMPLE) -> np.ndarray:
    """At most k centres (c, d) float64, as differences to `origin`, of the rows of x (n, d).

    Of more than `sample` rows as many are drawn. Rows come in the order of their distance to the origin, so that the
    centres depend on the seed and on the rows as a set, up to rounding; a rotation turns them along. Fewer centres than
    k come back where there are fewer different rows.
    """
    rng = np.random.default_rng(seed)
    radius = np.concatenate([((x[at : at + CHUNK] - origin) ** 2).sum(axis=1) for at in range(0, len(x), CHUNK)])
    order = np.argsort(radius, kind="stable")
    if len(order) > sample:
        order = order[np.sort(rng.choice(len(order), sample, replace=False))]
    return maths.kmeans(x[order] - origin, k, seed=seed, rounds=ROUNDS)[1]


def nearest(y: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the nearest centre, (n,), of rows y (n, d) float64."""
    score = (centres**2).sum(axis=1) - 2 * (y @ centres.T)  # (n, c): squared distance less |y|^2
    label: np.ndarray = score.argmin(axis=1)
    return label
