"""Intrinsic dimension of the occurrences, of the manifold on which they lie, by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge

from ctxexp_measures.isotropy.sample import Redraws, SampleMetric
from ctxexp_measures.isotropy.spectrum import DIMENSIONS

BLOCK = 512  # rows whose distances to all others are in memory at a time
DISCARD = 0.1  # share of the ratios, the largest, that is left out as in the TwoNN paper: they are the noisiest


class IntrinsicDimension(SampleMetric):
    """Intrinsic dimension of random occurrences by nearest neighbours, in dimensions: TwoNN and maximum likelihood.

    `raw`: TwoNN (Facco, d'Errico, Rodriguez & Laio 2017), from the ratio of the second to the first neighbour's
    distance. `mle`: Levina & Bickel (2004) from `k` neighbours, the inverse estimates averaged over points as MacKay &
    Ghahramani (2005) correct it. Both take distances: squared distances, which some nearest-neighbour libraries return
    and some released code uses, would halve the dimension. Equal vectors say nothing of a manifold: of rows that
    float32 can't tell apart only the first is kept, and `duplicates` counts the others. Both estimates fall short in
    high dimensions (a 50-dimensional Gaussian of 1,000 rows gives about 32, a 768-dimensional one 150).
    """

    name: ClassVar[str] = "intrinsic_dimension"
    title = "Intrinsic dimension"
    reading = DIMENSIONS
    statistics: ClassVar[tuple[str, ...]] = ("raw", "mle", "duplicates")
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})

    def __init__(self, *, k: Annotated[int, Ge(2)] = 20, redraws: Redraws = 0) -> None:
        super().__init__(redraws=redraws)
        self.k = k
        self.definition = f"TwoNN of random occurrences (Facco et al. 2017); mle from {k} neighbours (Levina & Bickel)"

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw (TwoNN), NaN of fewer than three distinct rows; mle, NaN of fewer than k + 1; duplicates; n distinct
        rows."""
        rows = x[is_distinct(x)]
        statistics = {"n": float(len(rows)), "duplicates": float(len(x) - len(rows))}
        if len(rows) > 2:
            distances = neighbour_distances(rows, min(self.k, len(rows) - 1))
            statistics["raw"] = two_nn(distances)
            if distances.shape[1] == self.k:
                statistics["mle"] = mle(distances)
        return statistics


def neighbour_distances(x: np.ndarray, k: int) -> np.ndarray:
    """Euclidean distances (not squared) of each row of `x` (n, d) to its k nearest others, ascending: (n, k)."""
    result = np.empty((len(x), k))
    for at, squares in _squared_distances(x):
        rows = np.arange(len(squares))
        squares[rows, at + rows] = np.inf  # not itself
        result[at : at + len(squares)] = np.sort(np.partition(squares, k - 1, axis=1)[:, :k], axis=1)
    return np.sqrt(result)


def two_nn(distances: np.ndarray) -> float:
    """TwoNN from neighbours' distances (n, >= 2): the slope through the origin of -log(1 - F) on log(r2 / r1)."""
    log_ratio = np.sort(np.log(distances[:, 1] / distances[:, 0]))
    n = len(log_ratio)
    part = slice(0, int(np.floor(n * (1 - DISCARD))))
    y = -np.log1p(-np.arange(1, n + 1)[part] / n)
    along = log_ratio[part]
    total = float(along @ along)
    return float(along @ y) / total if total > 0 else float("nan")


def mle(distances: np.ndarray) -> float:
    """Maximum likelihood from neighbours' distances (n, k), ascending: the inverse of the mean inverse estimate."""
    inverse = np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1)  # 1 / m_k(x_i): k - 1 terms
    total = float(inverse.mean())
    return 1.0 / total if total > 0 else float("nan")


def is_distinct(x: np.ndarray) -> np.ndarray:
    """Mask (n,) of the rows of `x` (n, d) that lie further than float32's rounding from every row before them."""
    keep = np.ones(len(x), dtype=bool)
    tolerance = (2 * np.finfo(np.float32).eps) ** 2 * (x**2).sum(axis=1)  # (n,), squared distances
    for at, squares in _squared_distances(x):
        for i in np.nonzero((squares <= tolerance[at : at + len(squares), None]).sum(axis=1) > 1)[0]:
            keep[at + i] = not ((squares[i, : at + i] <= tolerance[at + i]) & keep[: at + i]).any()
    return keep


def _squared_distances(x: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, squared distances (rows, n)) of blocks of rows to all rows; 0 where rounding would give less."""
    y = x - x.mean(axis=0)  # distances stay, cancellation goes
    sizes = (y**2).sum(axis=1)
    for at in range(0, len(y), BLOCK):
        block = y[at : at + BLOCK]
        yield at, np.maximum(sizes[at : at + len(block), None] + sizes - 2 * block @ y.T, 0)
