"""Correlations of paired values, and the same in bootstrap resamples: exact, ranks anew in each, without a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

CHUNK = 2**18  # counts held at a time: about a core's second-level cache
LEAST = 3  # pairs behind a rank correlation: of two it is always 1 or -1, whatever they are


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
    """
    return pearson(midranks(x), midranks(y)) if len(x) >= LEAST else float("nan")


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`spearman` of each row of x (m, n) with that of y (m, n), or with y (n,): (m,)."""
    n = x.shape[1]
    a, b = (_row_ranks(values) - (n + 1) / 2 for values in (x, y))
    scale = np.sqrt((a * a).sum(1) * (b * b).sum(-1))
    scale = np.where((scale > 0) & (n >= LEAST), scale, np.nan)
    return np.asarray(np.clip((a * b).sum(1) / scale, -1.0, 1.0))


def _row_ranks(x: np.ndarray) -> np.ndarray:
    """`midranks` of each row of x (..., n); NaN in a row that has any."""
    order = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, order, axis=-1)
    if (ordered[..., 1:] > ordered[..., :-1]).all():  # neither ties nor NaN
        ranks = np.empty(x.shape)
        np.put_along_axis(ranks, order, np.arange(1.0, x.shape[-1] + 1), axis=-1)
        return ranks
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, axis=-1))


def partial(xy: np.ndarray | float, xz: np.ndarray | float, yz: np.ndarray | float) -> np.ndarray:
    """The first-order partial correlation of x and y given z, of their three correlations; NaN where z explains all."""
    left = (1 - np.square(xz)) * (1 - np.square(yz))
    left = np.where(left > 1e-12, left, np.nan)
    return np.clip((np.asarray(xy) - np.multiply(xz, yz)) / np.sqrt(left), -1.0, 1.0)


def midranks(x: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Ranks from 1, tied values their average: (n,) float64.

    With `counts` (c, n), how often each value is drawn in c resamples: (c, n), the ranks in each resample of its
    members (the value of those that aren't drawn means nothing).
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
    clipped: np.ndarray = np.clip(result / scale[:, :, None] / scale[:, None, :], -1.0, 1.0)
    return clipped


def resamples(sizes: Sequence[int], replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each thing is drawn, with replacement within its stratum: (c, sum of sizes) float64, c rows at a time.

    Stratum s holds the next `sizes[s]` things, of which as many are drawn.
    """
    n = sum(sizes)
    starts = np.cumsum([0, *sizes])[:-1]
    step = max(1, CHUNK // max(n, 1))
    for at in range(0, replicates if n else 0, step):
        c = min(step, replicates - at)
        draws = [rng.integers(0, size, (c, size)) + start for start, size in zip(starts, sizes, strict=True) if size]
        flat = np.concatenate(draws, axis=1) + (np.arange(c) * n)[:, None]
        yield np.bincount(flat.ravel(), minlength=c * n).reshape(c, n).astype(np.float64)


def percentiles(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of replicates (r,); NaN where fewer than two are defined."""
    defined = values[np.isfinite(values)]
    if len(defined) < 2:
        return float("nan"), float("nan")
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)
