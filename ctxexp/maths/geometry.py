"""The mathematics of contextuality: pure functions of groups of rows, (..., n, d) in, (...,) float64 out.

Equations are those of Ethayarajh 2019, "How Contextual are Contextualized Word Representations?", section 3. Float32
rows are read as they are, with sums over at most 256 rows in float32 and everything above in float64: cosines and the
uncentred share of variance agree with a float64 double loop within 1e-6. So do the centred and the released share,
unless the mean is hundreds of times the spread: then they may miss by 1e-5, and by more where the spread nears the
rounding of float32. Float64 rows are computed in float64 throughout. Undefined is NaN: groups with fewer than two rows,
a NaN or an infinity in them, and, for cosines, with a row of norm zero (below 1e-19 in float32).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeVar, cast, get_args

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths.spectra import ROWS, Spread

Definition = Literal["uncentred", "centred", "released"]

T = TypeVar("T")


class _Held(threading.local):
    """What the blocks below set, a thread its own."""

    memo: tuple[np.ndarray, dict[str, object]] | None = None
    eps: float = 0.0


_held = _Held()


@contextmanager
def sharing(x: np.ndarray) -> Iterator[None]:
    """Within this block several functions of the same, unchanging array `x` share their intermediate results."""
    before = _held.memo
    _held.memo = (x, {})
    try:
        yield
    finally:
        _held.memo = before


@contextmanager
def precision(eps: float) -> Iterator[None]:
    """Within this block rows are taken to be exact to machine epsilon `eps` only (their type's own, if that is larger).

    Half-precision vectors reach these functions as float32, with differences of float16 or bfloat16 rounding between
    rows that ought to be equal: those are no spread to explain.
    """
    before = _held.eps
    _held.eps = eps
    try:
        yield
    finally:
        _held.eps = before


def once(x: np.ndarray, name: str, make: Callable[[np.ndarray], T]) -> T:
    """What `make` makes of x: within `sharing(x)` it is made once under its name."""
    held = _held.memo
    if held is None or held[0] is not x:
        return make(x)
    if name not in held[1]:
        held[1][name] = make(x)
    return cast(T, held[1][name])


def norms(x: np.ndarray) -> np.ndarray:
    """Euclidean norms of rows: (..., n, d) -> (..., n) float64, >= 0."""
    result: np.ndarray = np.sqrt(once(x, "squares", _squares))
    return result


def mean_cosine(x: np.ndarray) -> np.ndarray:
    """Mean cosine over ordered distinct pairs of rows, in [-1, 1]: self-similarity (Definition 1), exactly.

    Closed form: with unit rows u, (|sum u|^2 - n) / (n^2 - n). The released code samples at most 1,000 pairs instead.
    """
    n = x.shape[-2]
    if n < 2:
        return np.full(x.shape[:-2], np.nan)
    sums = once(x, "sums", sums_of)
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.clip((_dot(sums.unit, sums.unit) - sums.ones) / (n * n - n), -1.0, 1.0)
    return result  # np.clip keeps NaN, which min and max would not


def mean_cosine_to_mean(x: np.ndarray, *, unit_norm: bool = False) -> np.ndarray:
    """Mean cosine of the rows to their mean vector, in [-1, 1]: intra-sentence similarity (Definition 2).

    `unit_norm` scales the rows to norm 1 before the mean is taken, so that long rows don't rule it (not in the paper).
    Since cos(m, x_i) = m.u_i / |m|, the mean over i is m.(sum u) / (n |m|). NaN where the mean vector is zero.
    """
    n = x.shape[-2]
    if n < 2:
        return np.full(x.shape[:-2], np.nan)
    sums = once(x, "sums", sums_of)
    mean = sums.unit if unit_norm else sums.rows
    length = np.sqrt(_dot(mean, mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = _dot(mean, sums.unit) / (n * length)
    # A mean at rounding level has no direction.
    vanishes = length <= 16 * np.finfo(x.dtype).eps * (n if unit_norm else np.sqrt(n * sums.energy))
    return np.clip(np.where(vanishes, np.nan, cosine), -1.0, 1.0)


def explained_variance(x: np.ndarray, *, definition: Definition = "uncentred") -> np.ndarray:
    """Share of variance that one direction explains, in [0, 1]: maximum explainable variance (Definition 3).

    - uncentred: sigma_1^2 / sum_i sigma_i^2 of the rows as they are, as printed; at least 1 / min(n, d).
    - centred: the same after subtracting the mean row, which is PCA; at least 1 / min(n - 1, d).
    - released: Var(x v) / (sum of the columns' variances) with v the first right singular vector of the UNCENTRED
      rows, what the published code computed (scikit-learn's TruncatedSVD, explained_variance_ratio_); may be near 0.

    NaN where the denominator is 0: rows that are all zero or, for the last two, all equal (up to rounding, see
    `precision`).
    """
    if definition not in get_args(Definition):
        raise MetricError(f"definition={definition!r}: expected one of {', '.join(get_args(Definition))}")
    if x.shape[-2] < 2 or x.shape[-1] == 0:
        return np.full(x.shape[:-2], np.nan)
    flat = x if x.ndim == 3 else x.reshape(-1, *x.shape[-2:])
    if flat is not x:
        with sharing(flat):
            return explained_variance(flat, definition=definition).reshape(x.shape[:-2])
    spread = once(x, "spread", spread_of)
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "centred":
            share = once(x, "centred", lambda _: spread.solve_centred())[0] / spread.centred
        elif definition == "uncentred":
            share = once(x, "uncentred", lambda _: spread.solve_uncentred())[0] / spread.total
        else:
            share = once(x, "along", lambda _: spread.solve_uncentred(along=True))[1] / spread.centred
    result: np.ndarray = np.clip(share, 0.0, 1.0)
    return result


class Sums(NamedTuple):
    """Sums over the rows of each group."""

    rows: np.ndarray  # (..., d) float64: sum of x_i
    unit: np.ndarray  # (..., d) float64: sum of u_i = x_i / |x_i|; NaN if a row is zero
    ones: np.ndarray  # (...,) float64: sum of |u_i|^2, n up to the rounding of the u_i
    energy: np.ndarray  # (...,) float64: sum of |x_i|^2


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.vecdot(a, b)
    return result


def _squares(x: np.ndarray) -> np.ndarray:
    """|x_i|^2: (..., n) float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.ndarray = np.vecdot(x, x).astype(np.float64)
    return result


def sums_of(x: np.ndarray) -> Sums:
    """Sums over the rows of each group, in float64."""
    squares = once(x, "squares", _squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = (1 / np.sqrt(squares)).astype(x.dtype)  # (..., n): inf for a zero row, which makes the sum NaN
        unit = _weighted_sum(inverse, x)
        ones = (squares * inverse.astype(np.float64) ** 2).sum(-1)
    return Sums(once(x, "rows", _row_sum), unit, ones, squares.sum(-1))


def _row_sum(x: np.ndarray) -> np.ndarray:
    return _weighted_sum(np.ones(x.shape[:-1], x.dtype), x)


def _weighted_sum(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sum_i weights_i x_i: (..., d) float64, from partial sums in x's type over at most ROWS rows."""
    n = x.shape[-2]
    total: np.ndarray | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, n, ROWS):
            part = np.matmul(weights[..., None, at : at + ROWS], x[..., at : at + ROWS, :])[..., 0, :]
            total = part.astype(np.float64) if total is None else total + part
    assert total is not None  # callers have at least one row
    return total


def spread_of(x: np.ndarray) -> Spread:
    """Second moments of each group, with this block's `precision`."""
    return Spread(x, once(x, "rows", _row_sum), _held.eps)
