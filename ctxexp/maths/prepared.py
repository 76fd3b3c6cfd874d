"""Rows with the intermediate results that several functions of them need, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from ctxexp.maths.spectra import ROWS, Spread

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class RowSums(NamedTuple):
    """Sums over the rows of each group."""

    total: np.ndarray  # (..., d) float64: sum of x_i
    normalized: np.ndarray  # (..., d) float64: sum of u_i = x_i / |x_i|; NaN if a row is zero
    normalized_energy: np.ndarray  # (...,) float64: sum of |u_i|^2, n up to the rounding of the u_i
    energy: np.ndarray  # (...,) float64: sum of |x_i|^2


class PreparedRows:
    """Groups of rows `x` (..., n, d), which must not change, with norms, sums and spread when they are first needed.

    Functions of rows (`ctxexp.maths.geometry`, `ctxexp.maths.influence`) take it in place of the array: those that get
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
            result: np.ndarray = np.vecdot(self.x, self.x).astype(np.float64)
        return result

    @property
    def norms(self) -> np.ndarray:
        """|x_i|: (..., n) float64, >= 0."""
        result: np.ndarray = np.sqrt(self.squares)
        return result

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
