"""The aggregation of scores over groups: mean, median, spread and count, of equal or unequal weights."""

from __future__ import annotations

import numpy as np


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
    """The mean over an axis of the finite values, NaN where there is none; `weights` broadcast to the values."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(finite, values, 0)
        if weights is None:
            result: np.ndarray = total.sum(axis) / finite.sum(axis)
        else:
            result = (weights * total).sum(axis) / (weights * finite).sum(axis)
    return result
