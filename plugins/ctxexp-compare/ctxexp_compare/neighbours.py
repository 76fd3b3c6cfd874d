"""Share of an occurrence's nearest neighbours that are the same in both spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_compare import within
from ctxexp_compare.contract import ComparisonScore, NullDistribution, Sample, TwoSpaces
from ctxexp_compare.distances import NEXT, TIED, Geometry, Neighbours, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class MutualNeighbours(TwoSpaces):
    """Share of an occurrence's k nearest neighbours that both spaces have in common, mean over occurrences, in [0, 1].

    Nearest by cosine (Huh, Cheung, Wang & Isola 2024, mutual k-nearest neighbours). Equal distances count by their
    expectation: where two spaces put the tied in random orders of their own, so that a space whose vectors are equal
    (a static table) has less than 1 with itself. Chance has a closed form: within words, and over all permutations of
    one space's rows, where it is k / (n - 1).
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
        self.min_rows = self.k + 2
        self.definition = f"share of {self.k} nearest neighbours in common, {self.source}"

    @property
    def label(self) -> str:
        return self.name if self.k == self.usual else f"{self.name} k={self.k}"

    def prepare_side(self, x: np.ndarray, sample: Sample) -> Neighbours:
        return nearest(x, self.k, self.geometry)

    def score(self, a: Neighbours, b: Neighbours) -> ComparisonScore:
        """The share; an occurrence's influence is the change by leaving it out, its places among others' neighbours
        taken by the next ones."""
        n = len(a.n_nearer)
        both = 4 * a.classes + b.classes  # each pair's class in A and class in B
        both.sort_indices()
        row = np.repeat(np.arange(n), np.diff(both.indptr))
        kinds = np.bincount(16 * row + both.data, minlength=16 * n).reshape(n, 4, 4).astype(np.float64)
        of_a, of_b = a.leave_one_out_weights(), b.leave_one_out_weights()
        # [i, g, h]: what i has in common where one of class g in A and h in B is left out, itself no longer counted
        common = np.einsum("igh,iag,ibh->iab", kinds, of_a, of_b)
        common -= np.einsum("igg,ihh->igh", of_a, of_b)
        own = common[:, 0, 0]
        lost = own[row] - common.reshape(n, 16)[row, both.data]
        without = (own.sum() - own - np.bincount(both.indices, lost, n)) / ((n - 1) * self.k)
        whole = float(own.sum()) / (n * self.k)
        influence = (n - 1) / n * (whole - without)
        return ComparisonScore(whole, influence - influence.mean())

    def chance(self, a: Neighbours, b: Neighbours, sample: Sample, permutations: int) -> NullDistribution:
        n = len(sample)
        if sample.strata is not None:
            one, other = (within.blocks(side.weights, sample.strata) for side in (a, b))
            influence = influence_through(a, other, sample.strata) + influence_through(b, one, sample.strata)
            influence -= within.pair_count_effect(one, other, sample.strata)
            scale = n * self.k
            return NullDistribution(
                within.mean(one, other) / scale, float("nan"), (influence - influence.mean()) / scale
            )
        moments = within.free_chance(_sums(a.weights, self.k), _sums(b.weights, self.k), n)
        return NullDistribution(moments.mean / (n * self.k), moments.sd / (n * self.k))


def influence_through(side: Neighbours, other: within.Blocks, strata: np.ndarray) -> np.ndarray:
    """(n,) the influence of each row's weight on the mean within strata through one space: as a row with neighbours,
    and as a neighbour, whose place goes to the next ones."""
    near, weights = side.classes.tocoo(), side.weights.data
    by_pair = other.means[strata[near.row], strata[near.col]]
    n, full = len(strata), side.n_nearer + side.n_tied == side.k
    comes_next = np.where(full[near.row], near.data == NEXT, near.data == TIED)
    many = np.maximum(np.where(full, side.n_next, side.n_tied), 1)
    refill = np.bincount(near.row[comes_next], by_pair[comes_next], n) / many
    result: np.ndarray = np.bincount(near.row, weights * by_pair, n)
    return result + np.bincount(near.col, weights * (by_pair - refill[near.row]), n)


def _sums(weights: csr_array, k: int) -> within.PermutationSums:
    """The sums of a matrix of neighbours' weights, which add up to k in each row."""
    n = weights.shape[0]
    column = np.asarray(weights.sum(axis=0))
    squares, back = float((weights.data**2).sum()), float((weights * weights.T).sum())
    return within.PermutationSums(float(n * k), squares, back, float(n * k**2), float(column @ column), float(n * k**2))


class NeighbourhoodOverlap(MutualNeighbours):
    """Neighbourhood overlap in [0, 1]: the same share, by Euclidean distance (Valeriani et al. 2023)."""

    name: ClassVar[str] = "neighbourhood_overlap"
    title: ClassVar[str] = "Neighbourhood overlap"
    geometry: ClassVar[Geometry] = "euclidean"
    source: ClassVar[str] = "by Euclidean distance (Valeriani et al. 2023)"
    usual: ClassVar[int] = 30
