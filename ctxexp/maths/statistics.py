"""Statistics of scores (mean, median, spread, count), of equal or unequal weights; correlations of paired values, exact
and in bootstrap resamples, whose ranks are made anew without a loop; clusters of rows (scikit-learn's k-means, the same
on any number of processors), and of what is linked in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ctxexp.host import without_autologging

CHUNK = 2**18  # counts held at a time: about a core's second-level cache
LEAST = 3  # pairs behind a rank correlation: of two it is always 1 or -1, whatever they are


def aggregate(scores: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """`summary` of the defined scores (groups,), and `undefined`, the number of the others."""
    defined = np.isfinite(scores)
    statistics = summary(scores[defined], None if weights is None else weights[defined])
    return {**statistics, "undefined": float(np.count_nonzero(~defined))}


def summary(values: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """The statistics `raw`, median, sd (ddof 1) and n of finite values, bitwise independent of their order.

    `raw` is the mean, called so in results since it is the value before a baseline is subtracted. With `weights`: the
    weighted mean, the lower weighted median, and the standard deviation about the weighted mean.
    """
    order = np.argsort(values, kind="stable") if weights is not None else None
    ordered = np.sort(values) if order is None else values[order]
    n = ordered.size
    if not n:
        return {"raw": float("nan"), "median": float("nan"), "sd": float("nan"), "n": 0.0}
    if order is None or weights is None:
        raw, median, sd = ordered.mean(), np.median(ordered), ordered.std(ddof=1) if n > 1 else np.nan
    else:
        share = weights[order] / weights.sum()
        raw = share @ ordered
        positive = np.cumsum(np.maximum(share, 0.0))
        median = ordered[np.searchsorted(positive, positive[-1] / 2)]
        sd = np.sqrt(max(share @ (ordered - raw) ** 2, 0.0) * n / (n - 1)) if n > 1 else np.nan
    return {"raw": float(raw), "median": float(median), "sd": float(sd), "n": float(n)}


def finite_mean(values: np.ndarray, weights: np.ndarray | None = None, axis: int = 0) -> np.ndarray:
    """The mean over an axis of the finite values, NaN where there is none; `weights` broadcast to the values.

    Example:
        >>> finite_mean(np.array([1.0, np.nan, 3.0])).item()
        2.0
    """
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(finite, values, 0)
        if weights is None:
            return total.sum(axis) / finite.sum(axis)
        return (weights * total).sum(axis) / (weights * finite).sum(axis)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of x (n,) and y (n,), in [-1, 1]; NaN if either is constant or n < 2."""
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return float("nan")
    a, b = np.asarray(x, np.float64) - np.mean(x, dtype=np.float64), np.asarray(y, np.float64)
    b = b - b.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # so that the squares of tiny values don't vanish
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of x (n,) and y (n,), in [-1, 1]; tied values share their average rank.

    NaN if either is constant, or with fewer than LEAST pairs.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])), 3)
        0.5
    """
    return pearson(midranks(x), midranks(y)) if len(x) >= LEAST else float("nan")


def partial_correlation(xy: np.ndarray | float, xz: np.ndarray | float, yz: np.ndarray | float) -> np.ndarray:
    """The first-order partial correlation of x and y given z, of their three correlations; NaN where z explains all.

    Example:
        >>> partial_correlation(0.5, 0.5, 0.5).round(3).item()
        0.333
    """
    left = (1 - np.square(xz)) * (1 - np.square(yz))
    left = np.where(left > 1e-12, left, np.nan)
    return np.clip((np.asarray(xy) - np.multiply(xz, yz)) / np.sqrt(left), -1.0, 1.0)


def midranks(x: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Ranks from 1, tied values their average: (n,) float64.

    With `counts` (c, n), how often each value is drawn in c resamples: (c, n), the ranks in each resample of its
    members (the value of those that aren't drawn means nothing).

    Example:
        >>> midranks(np.array([10.0, 30.0, 10.0]))
        array([1.5, 3. , 1.5])
    """
    n = len(x)
    order = np.argsort(x, kind="stable")
    ordered = np.asarray(x)[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if n else np.zeros(0, int)
    weights = np.ones((1, n)) if counts is None else np.asarray(counts, np.float64)[:, order]
    if len(begins) == n:
        upto = np.cumsum(weights, axis=1)
        ranks = upto - (weights - 1) / 2
    else:
        tied = np.add.reduceat(weights, begins, axis=1)
        upto = np.cumsum(tied, axis=1)
        ranks = np.repeat(upto - (tied - 1) / 2, np.diff([*begins, n]), axis=1)
    result = np.empty_like(weights)
    result[:, order] = ranks
    return result[0] if counts is None else result


def resampled_spearman(columns: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Spearman's correlations of k columns, each (n,), in resamples given by counts (c, n): (c, k, k).

    NaN where a column is constant in a resample, or fewer than LEAST are drawn.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> resampled_spearman([x, -x], np.ones((1, 3))).round(3).tolist()
        [[[1.0, -1.0], [-1.0, 1.0]]]
    """
    total = counts.sum(axis=1, keepdims=True)
    ranks = [midranks(x, counts) - (total + 1) / 2 for x in columns]  # the mean rank is known: centred exactly
    k = len(ranks)
    result = np.empty((len(counts), k, k))
    spread = []
    for i, a in enumerate(ranks):
        a_by_count = a * counts
        for j in range(i + 1):
            result[:, i, j] = result[:, j, i] = np.einsum("cn,cn->c", a_by_count, ranks[j])
        spread.append(np.sqrt(result[:, i, i]))
    scale = np.stack(spread, axis=1)
    scale[(scale == 0) | (total < LEAST)] = np.nan
    return np.clip(result / scale[:, :, None] / scale[:, None, :], -1.0, 1.0)


def resamples(sizes: Sequence[int], replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each thing is drawn, with replacement within its stratum: (c, sum of sizes) float64, c rows at a time.

    Stratum s holds the next `sizes[s]` things, of which as many are drawn.

    Example:
        >>> [counts.sum(axis=1).tolist() for counts in resamples([3], 2, np.random.default_rng(0))]
        [[3.0, 3.0]]
    """
    n = sum(sizes)
    starts = np.cumsum([0, *sizes])[:-1]
    step = max(1, CHUNK // max(n, 1))
    for at in range(0, replicates if n else 0, step):
        c = min(step, replicates - at)
        draws = [rng.integers(0, size, (c, size)) + start for start, size in zip(starts, sizes, strict=True) if size]
        flat = np.concatenate(draws, axis=1) + (np.arange(c) * n)[:, None]
        yield np.bincount(flat.ravel(), minlength=c * n).reshape(c, n).astype(np.float64)


def kmeans(x: np.ndarray, k: int, *, seed: int, starts: int = 1, rounds: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Cluster of each row of x (n, d), 0 to at most k - 1, none empty: (n,); and their centres (c, d).

    Lloyd's algorithm from `starts` k-means++ beginnings, the one of least inertia, until no row changes its cluster or
    for so many `rounds`. Fewer than k clusters where there are fewer different rows.

    Example:
        >>> kmeans(np.array([[0.0], [0.1], [9.0], [9.1]]), 2, seed=0)
        (array([1, 1, 0, 0], dtype=int32), array([[9.05],
               [0.05]]))
    """
    from sklearn.cluster import KMeans

    if len(np.unique((x**2).sum(axis=1))) < k:  # else there are k different rows, and no need to look for equal ones
        k = min(k, len(np.unique(x, axis=0)))
    with _libraries().limit(limits=1), without_autologging():  # several threads add up in whatever order they end
        model = KMeans(k, n_init=starts, max_iter=rounds, tol=0, random_state=seed).fit(x)
    return model.labels_, model.cluster_centers_


def components(links: np.ndarray, n: int) -> np.ndarray:
    """The component of each of n things that links (k, 2) between them make, 0 to at most n - 1: (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(coo_array((np.ones(len(links)), links.T), (n, n)), directed=False)[1]


@cache
def _libraries() -> Any:
    """The thread pools of the libraries that scikit-learn has loaded: looking for them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
