"""Nearest neighbours and ranks in a space; ties are averaged over all orders of the tied rows.

Equal vectors (a word in a static table) are equally far from every row. Which of them a sort puts first depends on the
processor, so no result here does: of t tied rows of which m fit, each is a neighbour with weight m / t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 512  # rows whose distances to all others are in memory at a time
GRID = 1e-11  # relative to squared norms; distances that round to one multiple are equal: rounding errors, which differ
# between processors, would separate distances that are equal
NEARER, TIED, NEXT = 1, 2, 3  # classes of a row's neighbours: nearer than the k-th, as near as it, the next

Geometry = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Neighbours:
    """The k nearest other rows of each row: `n_nearer` rows for certain, and k - `n_nearer` of `n_tied` equally far
    ones.

    `classes` (n, n) sparse int8: the class of each neighbour (`NEARER`, `TIED`, `NEXT`). Where all tied ones fit it
    also has the `n_next` next rows, which move up if a neighbour is left out.
    """

    k: int
    classes: csr_array
    n_nearer: np.ndarray  # (n,) int64, as the next two
    n_tied: np.ndarray
    n_next: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.classes.data.nbytes + self.classes.indices.nbytes + self.classes.indptr.nbytes)

    @property
    def weights(self) -> csr_array:
        """(n, n) float64: the probability that j is among i's k nearest under a random order of the tied."""
        return self.with_weights(self.leave_one_out_weights()[:, 0])

    def with_weights(self, by_class: np.ndarray) -> csr_array:
        """(n, n) matrix of neighbours' weights, each row's `by_class` (n, 4) for the class of the neighbour."""
        row = np.repeat(np.arange(len(self.n_nearer)), np.diff(self.classes.indptr))
        from scipy.sparse import csr_array  # slow to import, and not needed to list the plugins

        return csr_array(
            (by_class[row, self.classes.data], self.classes.indices, self.classes.indptr), shape=self.classes.shape
        )

    def leave_one_out_weights(self) -> np.ndarray:
        """Weights (n, 4, 4): for each row, at [g, h], that of a neighbour of class h if one of class g is left out
        (g = 0: none is), for the jackknife."""
        k, s, t = self.k, self.n_nearer, self.n_tied
        full = s + t == k
        weights = np.zeros((len(s), 4, 4))
        weights[:, :, NEARER] = 1
        weights[:, :, TIED] = ((k - s) / t)[:, None]
        weights[:, NEARER, TIED] = np.minimum(1, (k - s + 1) / t)
        weights[:, TIED, TIED] = np.minimum(1, (k - s) / np.maximum(t - 1, 1))
        for one in (NEARER, TIED):
            weights[full, one, NEXT] = 1 / np.maximum(self.n_next[full], 1)
        return weights


def nearest(x: np.ndarray, k: int, geometry: Geometry) -> Neighbours:
    """Each row's k nearest other rows, ties averaged over their orders; k at most n - 2."""
    rows, columns, classes, counts = [], [], [], []
    for at, distance in _blocks(x, geometry):
        kth = np.partition(distance, k - 1, axis=1)[:, k - 1, None]
        above = np.where(distance > kth, distance, np.inf).min(axis=1, keepdims=True)
        s, t = (distance < kth).sum(axis=1), (distance == kth).sum(axis=1)
        last = np.where(s[:, None] + t[:, None] == k, above, kth)
        i, j = np.nonzero(distance <= np.where(np.isfinite(last), last, kth))
        near = distance[i, j]
        classes.append(np.where(near < kth[i, 0], NEARER, np.where(near == kth[i, 0], TIED, NEXT)).astype(np.int8))
        rows.append(at + i)
        columns.append(j)
        counts.append(np.stack([s, t, np.bincount(i[classes[-1] == NEXT], minlength=len(s))]))
    n = len(x)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate(rows), minlength=n))])
    from scipy.sparse import csr_array

    by_row = csr_array((np.concatenate(classes), np.concatenate(columns), indptr), shape=(n, n))
    return Neighbours(k, by_row, *np.concatenate(counts, axis=1))


def ranks(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Ranks (n, n) float32: at [i, j] the rank of j among the rows by distance from i, from 1, ties by their mean; 0 on
    the diagonal."""
    from scipy.stats import rankdata

    rank = np.empty((len(x), len(x)), np.float32)
    for at, distance in _blocks(x, geometry):
        rank[at : at + len(distance)] = rankdata(distance, axis=1)
    np.fill_diagonal(rank, 0)
    return rank


def _blocks(x: np.ndarray, geometry: Geometry) -> Iterator[tuple[int, np.ndarray]]:
    """Yields (first row, distances (rows, n), inf to the row itself): squared Euclidean distances, of normalized rows
    for the cosine, as multiples of a grid that is coarser than rounding errors and much finer than any meaningful
    difference. The grid differs between rows, so that distances from two rows can't be compared."""
    y = x.astype(np.float64)
    if geometry == "cosine":
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        y = np.divide(y, norm, out=np.zeros_like(y), where=norm > 0)
    else:
        y -= y.mean(axis=0)
    squares = np.einsum("ij,ij->i", y, y)
    grid = GRID * (squares + np.median(squares))
    grid = np.where(grid > 0, grid, 1.0)[:, None]
    for at in range(0, len(x), BLOCK):
        rows = slice(at, min(at + BLOCK, len(x)))
        distance = squares[rows, None] + squares - 2 * (y[rows] @ y.T)
        distance /= grid[rows]
        np.rint(distance, out=distance)
        np.maximum(distance, 0, out=distance)
        own = np.arange(len(distance))
        distance[own, at + own] = np.inf
        yield at, distance
