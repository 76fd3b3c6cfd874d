"""The mathematics of contextuality: pure functions of groups of rows, (..., n, d) in, (...,) float64 out.

Equations are those of Ethayarajh 2019, "How Contextual are Contextualized Word Representations?", section 3. Float32
rows are read as they are, with sums over at most 256 rows in float32 and everything above in float64: cosines and the
uncentred share of variance agree with a float64 double loop within 1e-6. So do the centred and the released share,
unless the mean is hundreds of times the spread: then they may miss by 1e-5, and by more where the spread nears the
rounding of float32. Float64 rows are computed in float64 throughout. Undefined is NaN: groups with fewer than two rows,
a NaN or an infinity in them, and, for cosines, with a row of norm zero (below 1e-19 in float32).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths.prepared import PreparedRows, prepare

Definition = Literal["uncentred", "centred", "released"]


def norms(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Euclidean norms of rows: (..., n, d) -> (..., n) float64, >= 0."""
    return prepare(x).norms


def mean_cosine(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Mean cosine over ordered distinct pairs of rows, in [-1, 1]: self-similarity (Definition 1), exactly.

    Closed form: with unit rows u, (|sum u|^2 - n) / (n^2 - n). The released code samples at most 1,000 pairs instead.
    """
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-2], np.nan)
    sums = rows.sums
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.clip(
            (_dot(sums.normalized, sums.normalized) - sums.normalized_energy) / (n * n - n), -1.0, 1.0
        )
    return result  # np.clip keeps NaN, which min and max would not


def mean_cosine_to_mean(x: np.ndarray | PreparedRows, *, unit_norm: bool = False) -> np.ndarray:
    """Mean cosine of the rows to their mean vector, in [-1, 1]: intra-sentence similarity (Definition 2).

    `unit_norm` scales the rows to norm 1 before the mean is taken, so that long rows don't rule it (not in the paper).
    Since cos(m, x_i) = m.u_i / |m|, the mean over i is m.(sum u) / (n |m|). NaN where the mean vector is zero.
    """
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-2], np.nan)
    sums = rows.sums
    mean = sums.normalized if unit_norm else sums.total
    length = np.sqrt(_dot(mean, mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = _dot(mean, sums.normalized) / (n * length)
    # A mean at rounding level has no direction.
    vanishes = length <= 16 * np.finfo(rows.x.dtype).eps * (n if unit_norm else np.sqrt(n * sums.energy))
    return np.clip(np.where(vanishes, np.nan, cosine), -1.0, 1.0)


def explained_variance(x: np.ndarray | PreparedRows, *, definition: Definition = "uncentred") -> np.ndarray:
    """Share of variance that one direction explains, in [0, 1]: maximum explainable variance (Definition 3).

    - uncentred: sigma_1^2 / sum_i sigma_i^2 of the rows as they are, as printed; at least 1 / min(n, d).
    - centred: the same after subtracting the mean row, which is PCA; at least 1 / min(n - 1, d).
    - released: Var(x v) / (sum of the columns' variances) with v the first right singular vector of the UNCENTRED
      rows, what the published code computed (scikit-learn's TruncatedSVD, explained_variance_ratio_); may be near 0.

    NaN where the denominator is 0: rows that are all zero or, for the last two, all equal (up to rounding, see
    `PreparedRows`).
    """
    if definition not in get_args(Definition):
        raise MetricError(f"definition={definition!r}: expected one of {', '.join(get_args(Definition))}")
    rows = prepare(x)
    *shape, n, d = rows.x.shape
    if n < 2 or d == 0:
        return np.full(shape, np.nan)
    if len(shape) != 1:
        flat = PreparedRows(rows.x.reshape(-1, n, d), rows.eps)
        return explained_variance(flat, definition=definition).reshape(shape)
    spread = rows.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "centred":
            share = spread.centred_direction.value / spread.centred
        elif definition == "uncentred":
            share = spread.raw_direction.value / spread.total
        else:
            share = spread.raw_direction.variance / spread.centred
    result: np.ndarray = np.clip(share, 0.0, 1.0)
    return result


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.vecdot(a, b)
    return result
