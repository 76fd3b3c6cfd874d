"""How many of an occurrence's nearest neighbours are the same in both spaces."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_compare import null
from ctxexp_compare.distances import Geometry, nearest
from ctxexp_compare.measure import Chance, Sample, Score, TwoSpaces


class Neighbours(NamedTuple):
    """Each row's k nearest others (n, k), and the one after these (n,)."""

    near: np.ndarray
    after: np.ndarray


class MutualNeighbours(TwoSpaces):
    """Share of an occurrence's k nearest neighbours that both spaces have in common, mean over occurrences, in [0, 1].

    Nearest by cosine (Huh, Cheung, Wang & Isola 2024, mutual k-nearest neighbours). Equal vectors are in a random
    order. Chance, over all permutations of one space's rows: k / (n - 1), and a spread in closed form.
    """

    name: ClassVar[str] = "mutual_knn"
    title: ClassVar[str] = "Mutual nearest neighbours"
    geometry: ClassVar[Geometry] = "cosine"
    source: ClassVar[str] = "by cosine (Huh et al. 2024)"
    usual: ClassVar[int] = 10

    def __init__(self, *, k: int | None = None) -> None:
        self.k = self.usual if k is None else k
        if self.k < 1:
            raise MetricError(f"{self.name} k={k}: expected at least 1 neighbour")
        self.least = self.k + 2
        self.definition = f"share of {self.k} nearest neighbours in common, {self.source}"

    @property
    def label(self) -> str:
        return self.name if self.k == self.usual else f"{self.name} k={self.k}"

    def side(self, x: np.ndarray, sample: Sample) -> Neighbours:
        found = nearest(x, self.k + 1, self.geometry, sample)
        return Neighbours(found[:, :-1], found[:, -1])

    def score(self, a: Neighbours, b: Neighbours) -> Score:
        """The value; an occurrence's influence is what leaving it out changes, its places among others' neighbours
        taken by those that come next."""
        n = len(a.near)
        same = a.near[:, :, None] == b.near[:, None, :]  # (n, k, k)
        of_a, of_b = same.any(axis=2), same.any(axis=1)
        m = of_a.sum(axis=1)
        next_a = (a.after[:, None] == b.near).any(axis=1)  # A's next one is among B's neighbours
        next_b = (b.after[:, None] == a.near).any(axis=1)
        both = next_a.astype(np.int64) + next_b + (a.after == b.after) - 1
        gained = np.bincount(a.near.ravel(), np.where(of_a, both[:, None], next_a[:, None]).ravel(), n)
        gained += np.bincount(b.near.ravel(), np.where(of_b, 0, next_b[:, None]).ravel(), n)
        whole = m.sum() / (n * self.k)
        without = (m.sum() - m + gained) / ((n - 1) * self.k)
        moved = (n - 1) / n * (whole - without)
        return Score(float(whole), moved - moved.mean())

    def chance(self, a: Neighbours, b: Neighbours, sample: Sample, permutations: int) -> Chance:
        n = len(sample)
        found = null.chance(self._sums(a), self._sums(b), n)
        return Chance(found.mean / (n * self.k), found.sd / (n * self.k))

    def _sums(self, side: Neighbours) -> null.Sums:
        """Of the matrix that is 1 at each row's neighbours."""
        n = len(side.near)
        drawn = np.bincount(side.near.ravel(), minlength=n).astype(np.float64)
        back = int((side.near[side.near] == np.arange(n)[:, None, None]).sum())
        total, rows = float(n * self.k), float(n * self.k**2)
        return null.Sums(total, total, float(back), rows, float(drawn @ drawn), rows)


class NeighbourhoodOverlap(MutualNeighbours):
    """Neighbourhood overlap in [0, 1]: the same share, by Euclidean distance (Valeriani et al. 2023)."""

    name: ClassVar[str] = "neighbourhood_overlap"
    title: ClassVar[str] = "Neighbourhood overlap"
    geometry: ClassVar[Geometry] = "euclidean"
    source: ClassVar[str] = "by Euclidean distance (Valeriani et al. 2023)"
    usual: ClassVar[int] = 30


def label_overlap(x: np.ndarray, labels: np.ndarray, k: int, sample: Sample) -> tuple[float, float]:
    """Share of each row's k nearest others by Euclidean distance that have its label, mean over rows, in [0, 1]
    (Valeriani et al. 2023), and the same where labels are permuted; NaN without rows enough."""
    n = len(x)
    if n < k + 2:
        return float("nan"), float("nan")
    near = nearest(x, k, "euclidean", sample)
    counts = np.unique(labels, return_counts=True)[1].astype(np.float64)
    return float((labels[near] == labels[:, None]).mean()), float((counts * (counts - 1)).sum() / (n * (n - 1)))
