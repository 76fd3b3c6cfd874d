"""Who is near whom in a space, equal distances shared out: what a random order of the tied gives on average.

Equal vectors (a word in a static table) lie equally far from everyone. Which of them a sort puts first hangs on the
processor, so nothing here asks for it: of t tied rows of which m fit, each is a neighbour with weight m / t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 512  # rows whose distances to all others are in memory at a time
GRID = 1e-11  # distances this near, in squared norms, are equal: rounding parts what is equal, otherwise by processor
NEARER, TIED, NEXT = 1, 2, 3  # classes of a row's neighbours: among the k, at the k-th's distance, then moving up

Geometry = Literal["cosine", "euclidean"]


@dataclass(frozen=True)
class Neighbours:
    """Each row's k nearest others: `nearer` many for certain, and k - nearer of `tied` equally far ones.

    `of` (n, n) sparse int8: the class of each neighbour. Where all tied ones fit, the `following` next ones (who move
    up where one is left out) are in it as well.
    """

    k: int
    of: csr_array
    nearer: np.ndarray  # (n,) int64, as the next two
    tied: np.ndarray
    following: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.of.data.nbytes + self.of.indices.nbytes + self.of.indptr.nbytes)

    @property
    def weights(self) -> csr_array:
        """(n, n) float64: the probability that j is among i's k nearest under a random order of the tied."""
        return self.weighted(self.without()[:, 0])

    def weighted(self, by_class: np.ndarray) -> csr_array:
        """(n, n): neighbours weighted by their row's number for their class, (n, 4)."""
        row = np.repeat(np.arange(len(self.nearer)), np.diff(self.of.indptr))
        from scipy.sparse import csr_array  # SciPy is slow to import: not for a list of what there is

        return csr_array((by_class[row, self.of.data], self.of.indices, self.of.indptr), shape=self.of.shape)

    def without(self) -> np.ndarray:
        """(n, 4, 4): for each row the weight of each class's rows where one of a class is left out (0: of none)."""
        k, s, t = self.k, self.nearer, self.tied
        full = s + t == k
        found = np.zeros((len(s), 4, 4))
        found[:, :, NEARER] = 1
        found[:, :, TIED] = ((k - s) / t)[:, None]
        found[:, NEARER, TIED] = np.minimum(1, (k - s + 1) / t)
        found[:, TIED, TIED] = np.minimum(1, (k - s) / np.maximum(t - 1, 1))
        for one in (NEARER, TIED):
            found[full, one, NEXT] = 1 / np.maximum(self.following[full], 1)
        return found


def nearest(x: np.ndarray, k: int, geometry: Geometry) -> Neighbours:
    """Each row's k nearest others, ties by their expectation; k at most n - 2."""
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

    of = csr_array((np.concatenate(classes), np.concatenate(columns), indptr), shape=(n, n))
    return Neighbours(k, of, *np.concatenate(counts, axis=1))


def ranks(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    """(n, n) float32: at [i, j] how many rows lie nearer to i than j does, j itself counted, and half of those as far;
    0 on the diagonal."""
    from scipy.stats import rankdata

    found = np.empty((len(x), len(x)), np.float32)
    for at, distance in _blocks(x, geometry):
        found[at : at + len(distance)] = rankdata(distance, axis=1)
    np.fill_diagonal(found, 0)
    return found


def _blocks(x: np.ndarray, geometry: Geometry) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, distances (rows, n) with inf for oneself): squared Euclidean ones of the rows, or of the rows at norm
    1, on a grid that is coarser than rounding and much finer than any distance that tells something."""
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
