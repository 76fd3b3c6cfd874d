"""The influence of each row on a group's score, from which its sampling error is estimated, for any clusters of rows.

A row's influence is the derivative of the score by the row's weight, scaled so that for n independent rows the sum of
the squares estimates the score's variance (the infinitesimal jackknife; Efron 1982). Influences sum to 0 over a group;
those of a cluster's rows (of a sentence, a document) add up to the cluster's. Groups (..., n, d) in, (..., n) float64
out, NaN where the score is undefined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ctxexp.maths.geometry import Definition, PreparedRows, mean_cosine_to_mean, prepare

MAX_LEFT_OUT = 8  # rows at most that `jackknife` leaves out, of a group whose score has no formula here
TERMS = 4  # of the series for how the first direction turns


def of_mean_cosine(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Influences on the mean cosine over pairs: 2 (c_i - mean c) / (n - 2), c_i the row's mean cosine with the others.

    That is what leaving row i out changes it by; sqrt((n - 1) / n) makes it the jackknife's share. Of 2 rows, one pair,
    nothing can be left out: NaN.
    """
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 3:
        return np.full(rows.x.shape[:-1], np.nan)
    with_others = (_products(rows.x, rows.sums.normalized) / rows.norms - 1) / (n - 1)
    result: np.ndarray = _centred(with_others) * (2 / (n - 2) * np.sqrt((n - 1) / n))
    return result


def of_mean_cosine_to_mean(x: np.ndarray | PreparedRows, *, unit_norm: bool = False) -> np.ndarray:
    """Influences on the mean cosine to the mean vector, f = R.U / (n |R|) with R the sum of the rows x_i and U that of
    the u_i: (x_i.U / |R| + u_i.R / |R|) / n - f x_i.R / |R|^2, about its mean; with `unit_norm` u_i for x_i."""
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-1], np.nan)
    sums, length = rows.sums, rows.norms
    r = sums.normalized if unit_norm else sums.total
    size = np.sqrt(np.vecdot(r, r))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        on_r = _products(rows.x, r) / size  # x_i.R / |R|
        of_normalized = on_r / length
        of_row = _products(rows.x, sums.normalized) / (length if unit_norm else 1.0) / size
        on_mean = of_normalized if unit_norm else on_r
        f = mean_cosine_to_mean(rows, unit_norm=unit_norm)[..., None]
        influence = (of_row + of_normalized) / n - f * on_mean / size
    result: np.ndarray = _centred(influence) * np.sqrt(n / (n - 1))
    return result


def of_explained_variance(x: np.ndarray | PreparedRows, *, definition: Definition = "uncentred") -> np.ndarray:
    """Influences on the share of variance along one direction: ((v.x_i)^2 - share |x_i|^2) / sum |x_j|^2, v held fixed.

    v is the first direction of the uncentred or centred rows: it maximises the share, so that its own change has no
    effect to first order. With the definition "released" (that of the paper's released code, see
    `ctxexp.maths.geometry.explained_variance`) v maximises another quantity than the share, so that its change counts
    too (`_turning`).
    """
    rows = prepare(x)
    *shape, n, d = rows.x.shape
    if n < 2 or d == 0:
        return np.full((*shape, n), np.nan)
    spread = rows.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "uncentred":
            value, projections, _ = spread.raw_direction
            squares, total = rows.norms**2, spread.total
            influence = projections**2 - (value / total)[:, None] * squares
        elif definition == "centred":
            value, projections, _ = spread.centred_direction
            total = spread.centred
            influence = projections**2 - (value / total)[:, None] * spread.squares
        else:
            value, projections, variance = spread.raw_direction
            total = spread.centred
            mean = projections.mean(axis=1, keepdims=True)
            influence = (projections - mean) ** 2 - (variance / total)[:, None] * spread.squares
            influence += _turning(rows.x, value, projections, rows.row_sum)
        result: np.ndarray = _centred(influence / total[:, None]) * np.sqrt(n / (n - 1))
        return result


def _turning(x: np.ndarray, value: np.ndarray, projections: np.ndarray, row_sum: np.ndarray) -> np.ndarray:
    """The effect of a row's weight on |C v|^2 by turning v: -2 (v.s)(s.dv_i) / n with s the sum of the rows, (w, n).

    dv_i = (v.x_i) (value - X'X)^+ x_i; the inverse by the first TERMS of its series, whose ratio is that of the second
    eigenvalue to the first.
    """
    n = x.shape[-2]
    v = np.matmul(projections[:, None].astype(x.dtype), x)[:, 0].astype(np.float64) / value[:, None]
    along = np.vecdot(v, row_sum)[:, None]
    rest = row_sum - along * v  # (w, d): the part of the sum across v
    total = np.zeros_like(projections)
    for term in range(TERMS):
        step = _products(x, rest) / value[:, None]
        total += step
        if term + 1 < TERMS:
            rest = np.matmul(step[:, None].astype(x.dtype), x)[:, 0].astype(np.float64)
            rest -= np.vecdot(v, rest)[:, None] * v
    result: np.ndarray = -2 * along * projections * total / n
    return result


def jackknife(x: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Influences on any score, by leaving rows out one at a time; 0 for a row that isn't tried.

    Of more than MAX_LEFT_OUT rows, so many evenly spaced ones are tried, and their influences scaled to n rows: the
    variance is right on average, but the covariance of groups that share a cluster, such as a sentence, is
    underestimated.
    """
    n = x.shape[-2]
    if n < 3:
        return np.full(x.shape[:-1], np.nan)
    which = np.linspace(0, n - 1, min(n, MAX_LEFT_OUT)).round().astype(int)  # all of at most MAX_LEFT_OUT
    rest = np.stack([np.asarray(score(np.delete(x, i, axis=-2)), np.float64) for i in which.tolist()], axis=-1)
    result = np.zeros(x.shape[:-1])
    result[..., which] = -_centred(rest) * np.sqrt((n - 1) / n * n / len(which))
    return result


def _products(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """x_i.v of each row: (..., n) float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.ndarray = np.matmul(x, v[..., None].astype(x.dtype))[..., 0].astype(np.float64)
    return result


def _centred(values: np.ndarray) -> np.ndarray:
    result: np.ndarray = values - values.mean(axis=-1, keepdims=True)
    return result
