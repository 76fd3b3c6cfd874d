"""How much each row moves a group's score: what the score's sampling error is made of, for resampling by any unit.

A row's influence is the derivative of the score by the row's weight, scaled so that for n independent rows the sum of
the squares estimates the score's variance (the infinitesimal jackknife; Efron 1982). Influences sum to 0 over a group;
those of rows of one unit (a sentence, a document) add up to the unit's. Groups (..., n, d) in, (..., n) float64 out,
NaN where the score is undefined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ctxexp.maths.geometry import Definition, mean_cosine_to_mean, norms, once, spread_of, sums_of

MOST = 8  # rows that are left out, one after the other, of a group whose score has no formula here
TERMS = 4  # of the series for how the first direction turns


def of_mean_cosine(x: np.ndarray) -> np.ndarray:
    """Of the mean cosine over pairs: 2 (c_i - mean c) / (n - 2), c_i the row's mean cosine with the others.

    That is what leaving row i out changes it by; sqrt((n - 1) / n) makes it the jackknife's share. Of 2 rows, one pair,
    nothing can be left out: NaN.
    """
    n = x.shape[-2]
    if n < 3:
        return np.full(x.shape[:-1], np.nan)
    sums = once(x, "sums", sums_of)
    own = (_products(x, sums.unit) / norms(x) - 1) / (n - 1)
    result: np.ndarray = _centred(own) * (2 / (n - 2) * np.sqrt((n - 1) / n))
    return result


def of_mean_cosine_to_mean(x: np.ndarray, *, unit_norm: bool = False) -> np.ndarray:
    """Of the mean cosine to the mean vector: f = R.U / (n |R|), R the sum of the rows, U that of the unit rows."""
    n = x.shape[-2]
    if n < 2:
        return np.full(x.shape[:-1], np.nan)
    sums, length = once(x, "sums", sums_of), norms(x)
    r = sums.unit if unit_norm else sums.rows
    size = np.sqrt(np.vecdot(r, r))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        along_r = _products(x, r) / size  # x_i.R / |R|
        of_unit = along_r / length
        of_row = _products(x, sums.unit) / (length if unit_norm else 1.0) / size
        along = of_unit if unit_norm else along_r
        f = mean_cosine_to_mean(x, unit_norm=unit_norm)[..., None]
        moved = (of_row + of_unit) / n - f * along / size
    result: np.ndarray = _centred(moved) * np.sqrt(n / (n - 1))
    return result


def of_explained_variance(x: np.ndarray, *, definition: Definition = "uncentred") -> np.ndarray:
    """Of the share of variance along one direction: ((v.x_i)^2 - share |x_i|^2) / sum |x_j|^2, v held.

    v is the first direction of the uncentred or centred rows, which by being the best doesn't matter to first order. In
    the released share it isn't the best of the variance that it is read off: there its turning counts (`_turning`).
    """
    n = x.shape[-2]
    if n < 2 or x.shape[-1] == 0:
        return np.full(x.shape[:-1], np.nan)
    spread = once(x, "spread", spread_of)
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "uncentred":
            value, _, loads = once(x, "uncentred", lambda _: spread.solve_uncentred())
            squares, total = norms(x) ** 2, spread.total
            moved = loads**2 - (value / total)[:, None] * squares
        elif definition == "centred":
            value, loads = once(x, "centred", lambda _: spread.solve_centred())
            total = spread.centred
            moved = loads**2 - (value / total)[:, None] * spread.squares()
        else:
            value, along, loads = once(x, "along", lambda _: spread.solve_uncentred(along=True))
            total = spread.centred
            mean = loads.mean(axis=-1, keepdims=True)
            moved = (loads - mean) ** 2 - (along / total)[:, None] * spread.squares()
            moved += _turning(x, value, loads, once(x, "sums", sums_of).rows)
        result: np.ndarray = _centred(moved / total[:, None]) * np.sqrt(n / (n - 1))
        return result


def _turning(x: np.ndarray, value: np.ndarray, loads: np.ndarray, row_sum: np.ndarray) -> np.ndarray:
    """What a row's weight does to |C v|^2 by turning v: -2 (v.s)(s.dv_i) / n with s the sum of the rows, (w, n).

    dv_i = (v.x_i) (value - X'X)^+ x_i; the inverse by the first TERMS of its series, whose ratio is that of the second
    eigenvalue to the first.
    """
    n = x.shape[-2]
    v = np.matmul(loads[:, None].astype(x.dtype), x)[:, 0].astype(np.float64) / value[:, None]
    along = np.vecdot(v, row_sum)[:, None]
    rest = row_sum - along * v  # (w, d): what of the sum is not along v
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

    The variance that they make up is right on average; what rows of several groups have in common, such as their
    sentence, is lost where not all rows are tried.
    """
    n = x.shape[-2]
    if n < 3:
        return np.full(x.shape[:-1], np.nan)
    tried = np.arange(n) if n <= MOST else np.linspace(0, n - 1, MOST).round().astype(int)
    rest = np.stack([np.asarray(score(np.delete(x, i, axis=-2)), np.float64) for i in tried.tolist()], axis=-1)
    result = np.zeros(x.shape[:-1])
    result[..., tried] = -_centred(rest) * np.sqrt((n - 1) / n * n / len(tried))
    return result


def _products(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """x_i.v of each row: (..., n) float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.ndarray = np.matmul(x, v[..., None].astype(x.dtype))[..., 0].astype(np.float64)
    return result


def _centred(values: np.ndarray) -> np.ndarray:
    result: np.ndarray = values - values.mean(axis=-1, keepdims=True)
    return result
