"""The mathematics of contextuality: pure functions of groups of rows, (..., n, d) in, (...,) float64 out; cosines of
all pairs one by one; and rows with the intermediate results that several functions need, each computed once.

Equations are those of Ethayarajh 2019, "How Contextual are Contextualized Word Representations?", section 3. Float32
rows are read as they are, with sums over at most 256 rows in float32 and everything above in float64: cosines and the
uncentred share of variance agree with a float64 double loop within 1e-6. So do the centred and the released share,
unless the mean is hundreds of times the spread: then they may miss by 1e-5, and by more where the spread nears the
rounding of float32. Float64 rows are computed in float64 throughout. Undefined is NaN: groups with fewer than two
rows, a NaN or an infinity in them, and, for cosines, with a row of norm zero (below 1e-19 in float32).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths.spectra import ROWS, Spread

Definition = Literal["uncentred", "centred", "released"]
BINS = 50  # of the histogram, from -1 to 1
BLOCK = 1024  # rows at a time
NOISE = 1e-6  # cosines up to this are not above 0: float32's rounding
ROOM = 1e-4  # least room above chance for a share of it: below, float32's rounding (1e-7) is no longer small
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


def norms(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Euclidean norms of rows: (..., n, d) -> (..., n) float64, >= 0."""
    return prepare(x).norms


def mean_cosine(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Mean cosine over ordered distinct pairs of rows, in [-1, 1]: self-similarity (Definition 1), exactly.

    Closed form: with unit rows u, (|sum u|^2 - n) / (n^2 - n). The released code samples at most 1,000 pairs instead.

    Example:
        >>> mean_cosine(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).round(3).item()
        0.333
    """
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-2], np.nan)
    sums = rows.sums
    with np.errstate(invalid="ignore"):  # np.clip keeps NaN, which min and max would not
        return np.clip((np.vecdot(sums.normalized, sums.normalized) - sums.normalized_energy) / (n * n - n), -1.0, 1.0)


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
    length = np.sqrt(np.vecdot(mean, mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.vecdot(mean, sums.normalized) / (n * length)
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
    return np.clip(share, 0.0, 1.0)


def pair_cosines(x: np.ndarray) -> Iterator[np.ndarray]:
    """Float32 cosines in [-1, 1], up to rounding, of each pair of distinct rows of x (n, d) once, block by block.

    Pairs with a zero row have none and are left out.
    """
    length = norms(x)
    u = (x[length > 0] / length[length > 0, None]).astype(np.float32)
    for i in range(0, len(u), BLOCK):  # a block with itself, then with what follows
        block = u[i : i + BLOCK]
        yield (block @ block.T)[np.triu_indices(len(block), 1)]
        yield (block @ u[i + BLOCK :].T).ravel()


def histogram(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Pairs by cosine (BINS,) int64, bins of equal width from -1 to 1, 1 in the last; and the share of pairs with a
    cosine above 0, in [0, 1].

    Cosines within 1e-6 of 0 are rounding, not above it. The share is NaN without a pair, or with a zero row.
    """
    counts, positive = np.zeros(BINS, np.int64), 0
    for cosine in pair_cosines(x):
        positive += int(np.count_nonzero(cosine > NOISE))
        at = ((cosine + 1) * (BINS / 2)).astype(np.int64)
        counts += np.bincount(np.clip(at, 0, BINS - 1), minlength=BINS)
    n = len(x)
    return counts, positive / (n * (n - 1) / 2) if n > 1 and bool((norms(x) > 0).all()) else math.nan


def chance_corrected(adjusted: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The chance-corrected cosine (raw - A) / (1 - A), float64: 0 at chance, 1 where all vectors are one.

    Adjusted cosines, raw - A, can't exceed 1 - A: in a narrow space all of them are small, whatever they mean. As with
    Cohen's kappa (1960) the excess over chance is divided by the largest that there is room for. It is negative below
    chance, without a bound. It holds A twice, so that it must not be correlated with A.

    Args:
        adjusted: raw - A, any shape.
        level: A, the mean cosine of unrelated occurrences, of a shape that broadcasts with it.

    Returns:
        The corrected values; NaN where 1 - A is not above ROOM, or either is NaN.
    """
    room = 1.0 - np.asarray(level, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(adjusted, np.float64) / np.where(room > ROOM, room, np.nan)


class RowSums(NamedTuple):
    """Sums over the rows of each group."""

    total: np.ndarray  # (..., d) float64: sum of x_i
    normalized: np.ndarray  # (..., d) float64: sum of u_i = x_i / |x_i|; NaN if a row is zero
    normalized_energy: np.ndarray  # (...,) float64: sum of |u_i|^2, n up to the rounding of the u_i
    energy: np.ndarray  # (...,) float64: sum of |x_i|^2


class PreparedRows:
    """Groups of rows `x` (..., n, d), which must not change, with norms, sums and spread when they are first needed.

    Functions of rows (`ctxexp.maths.geometry`, `ctxexp.maths.resampling`) take it in place of the array: those that get
    the same one share their work. Rows are exact to the relative precision `eps` only (a machine epsilon; that of their
    type, if it is larger): half-precision vectors are read as float32, so that rows that ought to be equal differ by
    float16 or bfloat16 rounding, which must not count as variance.

    Example:
        >>> rows = PreparedRows(np.array([[[3.0, 4.0], [0.0, 2.0]]]))
        >>> rows.norms.tolist(), rows.sums.normalized.round(2).tolist()
        ([[5.0, 2.0]], [[0.6, 1.8]])
    """

    def __init__(self, x: np.ndarray, eps: float = 0.0) -> None:
        self.x, self.eps = x, eps

    def apply(self, function: Callable[..., T]) -> T:
        """The function's value of these rows: an array for it unless it is marked by `takes_prepared`."""
        if getattr(function, "takes_prepared", False):
            return function(self)
        return function(RoundedRows.of(self.x, self.eps) if self.eps else self.x)

    @cached_property
    def squares(self) -> np.ndarray:
        """|x_i|^2: (..., n) float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.vecdot(self.x, self.x).astype(np.float64)

    @property
    def norms(self) -> np.ndarray:
        """|x_i|: (..., n) float64, >= 0."""
        return np.sqrt(self.squares)

    @cached_property
    def row_sum(self) -> np.ndarray:
        """The sum of each group's rows: (..., d) float64."""
        return _weighted_sum(np.ones(self.x.shape[:-1], self.x.dtype), self.x)

    @cached_property
    def sums(self) -> RowSums:
        """Sums over the rows of each group, in float64."""
        squares = self.squares
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = (1 / np.sqrt(squares)).astype(self.x.dtype)  # (..., n) inf for a zero row: its group's sum is NaN
            normalized = _weighted_sum(inverse, self.x)
            energy = (squares * inverse.astype(np.float64) ** 2).sum(-1)
        return RowSums(self.row_sum, normalized, energy, squares.sum(-1))

    @cached_property
    def spread(self) -> Spread:
        """Second moments of each group of rows (w, n, d)."""
        return Spread(self.x, self.row_sum, self.eps)


class RoundedRows(np.ndarray):
    """Rows of a half-precision run: an array that carries the machine epsilon of that precision, as do its slices.

    `prepare` reads it, so that a metric that knows nothing of precisions counts no rounding as spread either.
    """

    eps: float = 0.0

    @classmethod
    def of(cls, x: np.ndarray, eps: float) -> RoundedRows:
        """A view of the rows with their precision."""
        rows = x.view(cls)
        rows.eps = eps
        return rows

    def __array_finalize__(self, source: object) -> None:
        if isinstance(source, RoundedRows):
            self.eps = source.eps


def takes_prepared(function: F) -> F:
    """Mark a function of rows, such as a metric's `score`, that takes them prepared too, and so shares their work."""
    function.takes_prepared = True  # type: ignore[attr-defined]
    return function


def prepare(x: np.ndarray | PreparedRows) -> PreparedRows:
    """The rows prepared, as they are if they were already."""
    if isinstance(x, RoundedRows):
        return PreparedRows(x.view(np.ndarray), x.eps)
    return x if isinstance(x, PreparedRows) else PreparedRows(x)


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
