"""Nearest neighbours by distance, dot product and cosine, all three from one pass of chunked matrix products.

A chunk of queries meets all candidates in one float32 product of centred rows: with c = x - m, |x_i - x_j| and x_i.x_j
follow from c_i.c_j, and centring spares the distances the cancellation that a far-off mean would cost. The product only
chooses a few more candidates than are wanted; their values are computed again from the rows themselves, in float64. A
query whose choice float32's rounding could have spoilt (near ties) is searched again in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.progress import Progress, Silent

By = Literal["l2", "dot", "cosine"]

CHUNK_BYTES = 2**26  # of one block of products; about four such blocks are held at a time
SLACK = 6  # candidates beyond the k that are wanted
STRIDES = 64  # products are first compared in groups of that many


@dataclass(frozen=True)
class Nearest:
    """The k nearest of each query, best first: NaN and -1 where there are fewer than k."""

    values: np.ndarray  # (n_queries, k) float64: distances ascending, or products or cosines descending
    rows: np.ndarray  # (n_queries, k) int64

    def mean(self, k: int) -> np.ndarray:
        """Mean value over each query's k nearest, (n_queries,); NaN where there are fewer than k."""
        result: np.ndarray = self.values[:, :k].mean(axis=1)
        return result


def nearest(
    x: np.ndarray,
    *,
    k: int,
    by: Sequence[By] = get_args(By),
    queries: np.ndarray | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> dict[By, Nearest]:
    """The k nearest rows of `x` (n, d) to each of its rows (or to rows `queries`), by each measure, itself excluded.

    Exact: values are those of a float64 double loop to rounding, ties in any order. By cosine a row of norm zero is
    nobody's neighbour and has none. Beside `x` about five times `chunk_bytes` and one float32 copy of `x` are held.
    Raises MetricError for NaN or infinity in `x`, for k < 1 and for unknown measures.
    """
    if k < 1:
        raise MetricError(f"k={k}: expected at least 1 neighbour")
    if x.ndim != 2:
        raise MetricError(f"nearest neighbours of an array of shape {x.shape}: expected rows, (n, d)")
    unknown = [name for name in by if name not in get_args(By)]
    if unknown:
        raise MetricError(f"neighbours by {unknown[0]!r}: expected {', '.join(get_args(By))}")
    rows = np.arange(len(x)) if queries is None else np.asarray(queries, np.int64)
    found = {
        name: Nearest(np.full((len(rows), k), np.nan), np.full((len(rows), k), -1, np.int64))
        for name in dict.fromkeys(by)
    }
    if len(x) < 2 or not len(rows) or not found:
        return found
    space = _Space.of(x)
    step = max(1, chunk_bytes // (4 * len(x)))
    with (progress or Silent()).stage("nearest neighbours", len(rows), "rows") as stage:
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            again = _search(space, rows[part], k, found, first, np.float32)
            halved = max(1, step // 2)
            for name, doubtful in again.items():  # products of eight bytes: half as many at a time
                for i in range(0, len(doubtful), halved):
                    _repeat(space, rows, doubtful[i : i + halved], k, name, found[name])
            stage.advance(len(rows[part]))
    return found


class _Space(NamedTuple):
    """What the search needs of the candidates beside the rows."""

    x: np.ndarray  # (n, d), as given
    mean: np.ndarray  # (d,) float64
    centred: np.ndarray  # (n, d) float32
    half: np.ndarray  # (n,) float64: |c_j|^2 / 2
    along: np.ndarray  # (n,) float64: m.c_j
    norm: np.ndarray  # (n,) float64: |x_j|
    longest: float  # the largest |c_j|

    @classmethod
    def of(cls, x: np.ndarray) -> _Space:
        n = len(x)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = x.sum(axis=0, dtype=np.float64) / n
        if not np.isfinite(mean).all():
            raise MetricError("nearest neighbours of rows with NaN or infinity; leave those rows out")
        centred, half, along, norm = np.empty(x.shape, np.float32), np.empty(n), np.empty(n), np.empty(n)
        for i in range(0, n, 4096):
            exact = x[i : i + 4096].astype(np.float64)
            norm[i : i + 4096] = np.sqrt(np.vecdot(exact, exact))
            exact -= mean
            centred[i : i + 4096] = exact
            half[i : i + 4096] = np.vecdot(exact, exact) / 2
            along[i : i + 4096] = exact @ mean
        return cls(x, mean, centred, half, along, norm, float(np.sqrt(2 * half.max())))

    def scores(self, by: By, g: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What to maximise (q, n), from the products g (q, n) of centred rows, in g's type."""
        score: np.ndarray
        if by != "cosine":
            score = g + (-self.half if by == "l2" else self.along).astype(g.dtype)
            return score
        with np.errstate(divide="ignore"):
            inverse = np.where(self.norm > 0, 1 / self.norm, 0)
        score = g + (self.along + self.mean @ self.mean).astype(g.dtype)
        score += self.along[rows, None].astype(g.dtype)
        score *= inverse.astype(g.dtype)
        score[:, self.norm == 0] = -np.inf
        return score

    def bound(self, by: By, rows: np.ndarray, dtype: type) -> np.ndarray:
        """By how much a score in `dtype` may miss, (q,): rounding of the product, and of what is added to it.

        The rounding errors of a product's d terms are taken to add like a random walk, four times over.
        """
        eps = float(np.finfo(dtype).eps)
        own = np.sqrt(2 * self.half[rows])
        walk: np.ndarray = 4 * (np.sqrt(self.x.shape[1]) + 2) * eps * own * self.longest
        if by == "l2":
            walk += 2 * eps * float(self.half.max())
            return walk
        added = np.abs(self.along).max() + (self.mean @ self.mean + np.abs(self.along[rows]) if by == "cosine" else 0)
        result: np.ndarray = walk + 2 * eps * added
        if by == "cosine":
            result /= self.norm[self.norm > 0].min() if (self.norm > 0).any() else 1.0
        return result

    def exact(self, by: By, rows: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Values (q, w) of queries `rows` (q,) with candidates `chosen` (q, w), float64 from the rows as given."""
        values = np.empty(chosen.shape)
        step = max(1, 2**22 // max(1, chosen.shape[1] * self.x.shape[1]))
        for i in range(0, len(rows), step):
            a = self.x[rows[i : i + step]].astype(np.float64)[:, None]
            b = self.x[chosen[i : i + step]].astype(np.float64)
            if by == "l2":
                b -= a
                values[i : i + step] = np.sqrt(np.vecdot(b, b))
            else:
                values[i : i + step] = np.vecdot(a, b)
        if by == "cosine":
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.clip(values / (self.norm[rows, None] * self.norm[chosen]), -1.0, 1.0)
        return values

    def as_score(self, by: By, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The score that an exact value stands for: the inverse of what `scores` leaves out."""
        if by == "l2":  # |x_i - x_j|^2 / 2 = |c_i|^2 / 2 - (c_i.c_j - |c_j|^2 / 2)
            return np.asarray(self.half[rows] - values**2 / 2)
        if by == "dot":  # x_i.x_j = c_i.c_j + m.c_j + m.c_i + |m|^2
            return np.asarray(values - self.along[rows] - self.mean @ self.mean)
        return np.asarray(values * self.norm[rows])


def _search(
    space: _Space, rows: np.ndarray, k: int, found: dict[By, Nearest], at: int, dtype: type
) -> dict[By, np.ndarray]:
    """Fill in the neighbours of `rows` from place `at` on; by measure, the places whose choice rounding may spoil."""
    g = space.centred[rows] @ space.centred.T
    doubtful: dict[By, np.ndarray] = {}
    for by, into in found.items():
        values, chosen, sure = _best(space, by, g, rows, k, dtype)
        into.values[at : at + len(rows), : values.shape[1]] = values
        into.rows[at : at + len(rows), : values.shape[1]] = chosen
        doubtful[by] = at + np.flatnonzero(~sure)
    return doubtful


def _repeat(space: _Space, rows: np.ndarray, places: np.ndarray, k: int, by: By, into: Nearest) -> None:
    """The neighbours of the queries at `places`, by products in float64."""
    own = rows[places]
    mine = space.x[own].astype(np.float64) - space.mean
    g = np.empty((len(own), len(space.x)))
    for i in range(0, len(space.x), 4096):
        g[:, i : i + 4096] = mine @ (space.x[i : i + 4096].astype(np.float64) - space.mean).T
    values, chosen, _ = _best(space, by, g, own, k, np.float64)
    into.values[places, : values.shape[1]], into.rows[places, : values.shape[1]] = values, chosen


def _best(
    space: _Space, by: By, g: np.ndarray, rows: np.ndarray, k: int, dtype: type
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact values and rows (q, min(k, n - 1)), best first, and whether the choice is beyond doubt (q,)."""
    n, q = g.shape[1], np.arange(len(rows))[:, None]
    scores = space.scores(by, g, rows)
    scores[q[:, 0], rows] = -np.inf
    width = min(k + SLACK, n - 1)
    chosen = _top(scores, width)
    values = space.exact(by, rows, chosen)
    lost = ~np.isfinite(scores[q, chosen])  # a row of norm zero, or the query itself where too few are left
    values[lost] = np.nan
    order = np.argsort(values if by == "l2" else -values, axis=1, kind="stable")[:, : min(k, n - 1)]
    worst = scores[q, chosen].min(axis=1).astype(np.float64)  # no other candidate scores more than this
    values, chosen = np.take_along_axis(values, order, axis=1), np.take_along_axis(chosen, order, axis=1)
    with np.errstate(invalid="ignore"):
        sure = space.as_score(by, rows, values[:, -1]) > worst + space.bound(by, rows, dtype)
    sure |= (width == n - 1) | ~np.isfinite(worst)
    chosen = np.where(np.isnan(values), -1, chosen)
    return values, chosen, sure


def _top(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns (q, k) of the k largest scores of each row, in any order.

    The k largest lie in the k groups of columns whose largest are largest: comparing groups first saves sorting rows.
    """
    q, n = scores.shape
    if n < 4 * STRIDES * k:
        return np.argpartition(scores, n - k, axis=1)[:, n - k :]
    wide = n // STRIDES  # group j holds columns j, j + wide, j + 2 wide ...; the columns past the last whole stride too
    peaks = scores[:, : wide * STRIDES].reshape(q, STRIDES, wide).max(axis=1)
    groups = np.argpartition(peaks, wide - k, axis=1)[:, wide - k :]
    columns = (groups[:, None, :] + wide * np.arange(STRIDES)[:, None]).reshape(q, -1)
    rest = np.broadcast_to(np.arange(wide * STRIDES, n), (q, n - wide * STRIDES))
    columns = np.concatenate([columns, rest], axis=1)
    held = np.take_along_axis(scores, columns, axis=1)
    best = np.argpartition(held, held.shape[1] - k, axis=1)[:, -k:]
    return np.take_along_axis(columns, best, axis=1)
