"""The influence of each row on a group's score, of which its sampling error is made, for resampling by any cluster.

A row's influence is the derivative of the score by the row's weight, scaled so that for n independent rows the sum of
the squares estimates the score's variance (the infinitesimal jackknife; Efron 1982). Influences sum to 0 over a group;
those of a cluster's rows (of a sentence, a document) add up to the cluster's. Groups (..., n, d) in, (..., n) float64
out, NaN where the score is undefined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ctxexp.maths.geometry import Definition, mean_cosine_to_mean
from ctxexp.maths.prepared import PreparedRows, prepare

MOST = 8  # rows that are left out, one after the other, of a group whose score has no formula here
TERMS = 4  # of the series for how the first direction turns


def of_mean_cosine(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Of the mean cosine over pairs: 2 (c_i - mean c) / (n - 2), c_i the row's mean cosine with the others.

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
    """Of the mean cosine to the mean vector: f = R.U / (n |R|), R the sum of the rows x_i, U that of the u_i."""
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-1], np.nan)
    sums, length = rows.sums, rows.norms
    r = sums.normalized if unit_norm else sums.rows
    size = np.sqrt(np.vecdot(r, r))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        along_r = _products(rows.x, r) / size  # x_i.R / |R|
        of_normalized = along_r / length
        of_row = _products(rows.x, sums.normalized) / (length if unit_norm else 1.0) / size
        along = of_normalized if unit_norm else along_r
        f = mean_cosine_to_mean(rows, unit_norm=unit_norm)[..., None]
        influence = (of_row + of_normalized) / n - f * along / size
    result: np.ndarray = _centred(influence) * np.sqrt(n / (n - 1))
    return result


def of_explained_variance(x: np.ndarray | PreparedRows, *, definition: Definition = "uncentred") -> np.ndarray:
    """Of the share of variance along one direction: ((v.x_i)^2 - share |x_i|^2) / sum |x_j|^2, v held.

    v is the first direction of the uncentred or centred rows, which by being the best doesn't matter to first order. In
    the released share it isn't the best of the variance that it is read off: there its turning counts (`_turning`).
    """
    rows = prepare(x)
    *shape, n, d = rows.x.shape
    if n < 2 or d == 0:
        return np.full((*shape, n), np.nan)
    spread = rows.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "uncentred":
            value, _, loads = rows.uncentred
            squares, total = rows.norms**2, spread.total
            influence = loads**2 - (value / total)[:, None] * squares
        elif definition == "centred":
            value, loads = rows.centred
            total = spread.centred
            influence = loads**2 - (value / total)[:, None] * spread.squares()
        else:
            value, along, loads = rows.along
            total = spread.centred
            mean = loads.mean(axis=1, keepdims=True)
            influence = (loads - mean) ** 2 - (along / total)[:, None] * spread.squares()
            influence += _turning(rows.x, value, loads, rows.row_sum)
        result: np.ndarray = _centred(influence / total[:, None]) * np.sqrt(n / (n - 1))
        return result


def _turning(x: np.ndarray, value: np.ndarray, loads: np.ndarray, row_sum: np.ndarray) -> np.ndarray:
    """The effect of a row's weight on |C v|^2 by turning v: -2 (v.s)(s.dv_i) / n with s the sum of the rows, (w, n).

    dv_i = (v.x_i) (value - X'X)^+ x_i; the inverse by the first TERMS of its series, whose ratio is that of the second
    eigenvalue to the first.
    """
    n = x.shape[-2]
    v = np.matmul(loads[:, None].astype(x.dtype), x)[:, 0].astype(np.float64) / value[:, None]
    along = np.vecdot(v, row_sum)[:, None]
    rest = row_sum - along * v  # (w, d): the part of the sum across v
    total = np.zeros_like(loads)
    for term in range(TERMS):
        step = _products(x, rest) / value[:, None]
        total += step
        if term + 1 < TERMS:
            rest = np.matmul(step[:, None].astype(x.dtype), x)[:, 0].astype(np.float64)
            rest -= np.vecdot(v, rest)[:, None] * v
    result: np.ndarray = -2 * along * loads * total / n
    return result


def by_leaving_out(x: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Of any score: rows left out one at a time, of more than MOST rows that many of them, each standing for n / MOST.

    The variance that they make up is right on average; the share that rows of several groups have in common, such as
    that of their sentence, is lost where not all rows are tried.
    """
    n = x.shape[-2]
    if n < 3:
        return np.full(x.shape[:-1], np.nan)
    which = np.linspace(0, n - 1, min(n, MOST)).round().astype(int)  # all of at most MOST
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
