"""Information imbalance: how well nearness in one space predicts nearness in the other."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp_compare import within
from ctxexp_compare.contract import ComparisonScore, NullDistribution, Sample, TwoSpaces
from ctxexp_compare.distances import NEXT, TIED, Neighbours, nearest, ranks


class RankMatrix(NamedTuple):
    """Ranks of all rows by distance from each row (n, n), ties by their mean, and each row's nearest neighbours."""

    rank: np.ndarray
    first: Neighbours
    blocks: within.Blocks | None = None  # of the ranks, by stratum

    @property
    def nbytes(self) -> int:
        return self.rank.nbytes + self.first.nbytes + (self.blocks.rows.nbytes if self.blocks else 0)


class InformationImbalance(TwoSpaces):
    """Information imbalance of A to B, 2 / n (B knows all that A's neighbours tell) to 1 (nothing), as a mean rank.

    2 / n times the mean rank in B of A's nearest neighbour, by Euclidean distance (Glielmo et al. 2022; DADApy's
    definition, whose ranks begin at 1). Equal distances count by their expectation under random orders of the tied. It
    has a direction: A to B small and B to A large, A holds more than B. Its chance level is exactly
    1 if rows are permuted freely; within words it has a closed form. A space with itself has 2 / n, in the limit 0.
    """

    name: ClassVar[str] = "information_imbalance"
    title: ClassVar[str] = "Information imbalance"
    definition = "2 / n times the mean rank in B of A's nearest neighbour (Glielmo et al. 2022)"
    unit = "imbalance"
    symmetric: ClassVar[bool] = False
    self_score: ClassVar[float] = 0.0

    def self_score_at(self, n: int) -> float:
        return 2 / n

    def prepare_side(self, x: np.ndarray, sample: Sample) -> RankMatrix:
        rank = ranks(x, "euclidean")
        own = None if sample.strata is None else within.blocks(rank, sample.strata)
        return RankMatrix(rank, nearest(x, 1, "euclidean"), own)

    def score(self, a: RankMatrix, b: RankMatrix) -> ComparisonScore:
        """The imbalance; an occurrence's influence is the change by leaving it out: ranks behind it fall by one, and
        rows whose nearest neighbour it was take the next one."""
        n = len(b.rank)
        near = a.first.classes.tocoo()
        tied, later = near.data == TIED, near.data == NEXT
        rank = b.rank[near.row, near.col].astype(np.float64)
        t, m = a.first.n_tied[near.row], a.first.n_next[near.row]
        near_rank = np.bincount(near.row[tied], rank[tied] / t[tied], n)  # (n,) mean rank in B of A's nearest
        nearer, front = _nearer(a.first, b.rank, near_rank)
        without = near_rank.sum() - near_rank - nearer
        # If a nearest neighbour is left out: of t > 1 tied the others remain; a single one is replaced by the next,
        # whose rank falls by 1 where it lay behind.
        gain = (
            rank[later] - (near_rank[near.row[later]] < rank[later]) - 0.5 * (near_rank[near.row[later]] == rank[later])
        )
        moves_up = np.bincount(near.row[later], gain / m[later], n)[near.row]
        others = (t * near_rank[near.row] - rank - (t * front - 0.5)) / np.maximum(t - 1, 1)
        change = np.where(
            tied, np.where(t > 1, others, moves_up) - near_rank[near.row] + front, 0.0
        )  # `nearer` counted `front` too
        without += np.bincount(near.col, change, n)
        value = 2 * float(near_rank.sum()) / n**2
        influence = (n - 1) / n * (value - 2 * without / (n - 1) ** 2)
        return ComparisonScore(value, influence - influence.mean())

    def chance(self, a: RankMatrix, b: RankMatrix, sample: Sample, permutations: int) -> NullDistribution:
        n = len(sample)
        weights = a.first.weights
        if sample.strata is not None and b.blocks is not None:
            return NullDistribution(
                2 * within.mean(within.blocks(weights, sample.strata), b.blocks) / n**2, float("nan")
            )
        columns = np.asarray(weights.sum(axis=0))
        squares, back = float((weights.data**2).sum()), float((weights * weights.T).sum())
        one = within.PermutationSums(float(n), squares, back, float(n), float(columns @ columns), float(n))
        row, column = n * (n - 1) / 2, b.rank.sum(axis=0, dtype=np.float64)
        squares = float(np.einsum("ij,ij->", b.rank, b.rank, dtype=np.float64))
        mirrored = float(np.einsum("ij,ji->", b.rank, b.rank, dtype=np.float64))
        other = within.PermutationSums(
            n * row, squares, mirrored, n * row**2, float(column @ column), row * float(column.sum())
        )
        moments = within.free_chance(one, other, n)
        return NullDistribution(2 * moments.mean / n**2, 2 * moments.sd / n**2)


def _nearer(first: Neighbours, rank: np.ndarray, mean_rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row j, (n,), the number of rows i to which j is nearer in B than their nearest neighbour in A (equally
    near: 1/2; of several tied ones: the mean over them); and (entries,) what each entry of `first.classes` adds."""
    n = len(rank)
    front = np.full(len(first.classes.data), 0.5)  # of the only nearest one with itself
    single = first.n_tied == 1
    ours, limit = (rank, mean_rank) if single.all() else (rank[single], mean_rank[single])
    limit = limit.astype(np.float32)[:, None]
    nearer = (ours < limit).sum(axis=0) + 0.5 * (ours == limit).sum(axis=0)
    nearer -= single & (mean_rank > 0)  # the row itself, whose own rank is 0
    for i in np.flatnonzero(~single):
        at = slice(*first.classes.indptr[i : i + 2])
        tied = first.classes.indices[at][first.classes.data[at] == TIED]
        # ranks are whole or halves: a histogram of the nearest ones' tells how many lie behind each
        many = np.bincount((2 * rank[i, tied]).astype(np.int64), minlength=2 * n + 1) / len(tied)
        behind = np.cumsum(many[::-1])[::-1] - many / 2
        row = behind[(2 * rank[i]).astype(np.int64)]
        row[i] = 0
        front[at] = row[first.classes.indices[at]]
        nearer += row
    return nearer, front
