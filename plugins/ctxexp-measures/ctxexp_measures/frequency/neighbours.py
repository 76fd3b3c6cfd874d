"""Nearest neighbours by distance, dot product and cosine, all three from one pass of chunked matrix products.

With centred rows c = x - m, |x_i - x_j| and x_i.x_j follow from c_i.c_j, and centring spares the distances the
cancellation that a far-off mean would cost. The products choose a few more candidates than are wanted; their values are
computed again from the rows themselves. (scikit-learn's chunked distances have no dot product, and take a pass each.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ctxexp.command import Progress
from ctxexp.errors import MetricError

NeighbourMeasure = Literal["l2", "dot", "cosine"]

CHUNK_BYTES = 2**26  # of one block of products; about three such blocks are held at a time
SPARE = 6  # candidates beyond the k that are wanted, since rounding of the products may swap near ties


@dataclass(frozen=True)
class NearestRows:
    """The k nearest of each query, best first: NaN and -1 where there are fewer than k."""

    values: np.ndarray  # (n_queries, k) float64: distances ascending, or products or cosines descending
    rows: np.ndarray  # (n_queries, k) int64

    def mean(self, k: int) -> np.ndarray:
        """Mean value over each query's k nearest, (n_queries,); NaN where there are fewer than k."""
        return self.values[:, :k].mean(axis=1)


def nearest(
    x: np.ndarray,
    *,
    k: int,
    by: Sequence[NeighbourMeasure] = get_args(NeighbourMeasure),
    queries: np.ndarray | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> dict[NeighbourMeasure, NearestRows]:
    """The k nearest rows of `x` (n, d) to each of its rows (or to rows `queries`), by each measure, itself excluded.

    Exact: values are those of a float64 double loop to rounding. Which of equally near rows stand in `rows` depends
    on the processor; their values, and so every mean, don't. By cosine a row of norm zero is no row's neighbour and has
    no neighbours.
    Beside `x` a few times `chunk_bytes` and a float64 copy of `x` are held.
    Raises MetricError for NaN or infinity in `x`.
    """
    rows = np.arange(len(x)) if queries is None else np.asarray(queries, np.int64)
    results = {
        name: NearestRows(np.full((len(rows), k), np.nan), np.full((len(rows), k), -1, np.int64))
        for name in dict.fromkeys(by)
    }
    if len(x) < 2 or not len(rows) or not results:
        return results
    wide = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norm, mean = np.sqrt(np.vecdot(wide, wide)), wide.mean(axis=0)
    if not np.isfinite(mean).all():
        raise MetricError("nearest neighbours of rows with NaN or infinity; leave those rows out")
    wide -= mean
    half_squares, offset = np.vecdot(wide, wide) / 2, wide @ mean + mean @ mean / 2
    step = max(1, chunk_bytes // (8 * len(x)))
    with Progress.of(progress).stage("nearest neighbours", len(rows), "rows") as stage:
        for part in (slice(first, first + step) for first in range(0, len(rows), step)):
            query_rows = rows[part]
            products = wide[query_rows] @ wide.T  # (q, n)
            for name, into in results.items():
                # |x_i - x_j|^2 / 2 = |c_i|^2 / 2 + |c_j|^2 / 2 - c_i.c_j
                # x_i.x_j = c_i.c_j + (m.c_i + |m|^2 / 2) + (m.c_j + |m|^2 / 2)
                scores = products - half_squares if name == "l2" else products + offset[query_rows, None] + offset
                if name == "cosine":
                    scores *= np.divide(1, norm, out=np.zeros_like(norm), where=norm > 0)
                    scores[:, norm == 0] = -np.inf
                scores[np.arange(len(query_rows)), query_rows] = -np.inf
                values, candidates = _best(x, norm, name, query_rows, scores, k)
                into.values[part, : values.shape[1]], into.rows[part, : values.shape[1]] = values, candidates
            stage.advance(len(query_rows))
    return results


def _best(
    x: np.ndarray, norm: np.ndarray, by: NeighbourMeasure, query_rows: np.ndarray, scores: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Exact values and rows (q, min(k, n - 1)) of the queries `query_rows` (q,), best first, by scores (q, n)."""
    width = min(k + SPARE, len(x) - 1)
    candidates = np.argpartition(scores, -width, axis=1)[:, -width:]
    values = _values(x, norm, by, query_rows, candidates)
    values[np.isneginf(np.take_along_axis(scores, candidates, axis=1))] = np.nan
    order = np.argsort(values if by == "l2" else -values, axis=1, kind="stable")[:, :k]
    values, candidates = np.take_along_axis(values, order, axis=1), np.take_along_axis(candidates, order, axis=1)
    return values, np.where(np.isnan(values), -1, candidates)


def _values(
    x: np.ndarray, norm: np.ndarray, by: NeighbourMeasure, rows: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """Values (q, w) of queries `rows` (q,) with `candidates` (q, w), float64 from the rows as given."""
    values = np.empty(candidates.shape)
    step = max(1, 2**22 // max(1, candidates.shape[1] * x.shape[1]))
    for i in range(0, len(rows), step):
        a = x[rows[i : i + step]].astype(np.float64)[:, None]
        b = x[candidates[i : i + step]].astype(np.float64)
        if by == "l2":
            b -= a
        values[i : i + step] = np.sqrt(np.vecdot(b, b)) if by == "l2" else np.vecdot(a, b)
    if by == "cosine":
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.clip(values / (norm[rows, None] * norm[candidates]), -1.0, 1.0)
    return values
