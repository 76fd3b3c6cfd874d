"""Information imbalance: does nearness in one space tell of nearness in the other?"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp_compare import null
from ctxexp_compare.distances import ranks
from ctxexp_compare.measure import Chance, Sample, Score, TwoSpaces


class Ranked(NamedTuple):
    """Each row's order of the others (n, n), its nearest and second nearest (n,)."""

    rank: np.ndarray
    first: np.ndarray
    second: np.ndarray


class InformationImbalance(TwoSpaces):
    """Information imbalance of A to B, 2 / n (B knows all that A's neighbours tell) to 1 (nothing), as a mean rank.

    2 / n times the mean rank in B of A's nearest neighbour, by Euclidean distance (Glielmo et al. 2022; DADApy's
    definition, whose ranks begin at 1). It has a direction: A to B small and B to A large, A holds more than B. 1
    where rows are permuted, exactly; a space with itself has 2 / n, in the limit 0.
    """

    name: ClassVar[str] = "information_imbalance"
    title: ClassVar[str] = "Information imbalance"
    definition = "2 / n times the mean rank in B of A's nearest neighbour (Glielmo et al. 2022)"
    unit: ClassVar[str] = "imbalance"
    symmetric: ClassVar[bool] = False
    itself: ClassVar[float] = 0.0

    def side(self, x: np.ndarray, sample: Sample) -> Ranked:
        rank = ranks(x, "euclidean", sample)
        return Ranked(rank, np.argmax(rank == 1, axis=1), np.argmax(rank == 2, axis=1))

    def score(self, a: Ranked, b: Ranked) -> Score:
        """The value; an occurrence's influence is what leaving it out changes: ranks behind it fall by one, and whose
        nearest it was takes the second."""
        n = len(a.first)
        every = np.arange(n)
        held = b.rank[every, a.first].astype(np.int64)
        total = int(held.sum())
        nearer = (b.rank < held[:, None]).sum(axis=0) - 1  # (n,): of how many rows it is nearer in B; not of its own
        other = b.rank[every, a.second].astype(np.int64)
        # Whose nearest neighbour goes: the second's rank, less one where the one that goes was nearer in B.
        change = np.bincount(a.first, other - held - (other > held), minlength=n)
        without = 2 * (total - held - nearer + change) / (n - 1) ** 2
        value = 2 * total / n**2
        moved = (n - 1) / n * (value - without)
        return Score(value, moved - moved.mean())

    def chance(self, a: Ranked, b: Ranked, sample: Sample, permutations: int) -> Chance:
        n = len(sample)
        drawn = np.bincount(a.first, minlength=n).astype(np.float64)
        back = float((a.first[a.first] == np.arange(n)).sum())
        one = null.Sums(float(n), float(n), back, float(n), float(drawn @ drawn), float(n))
        row, column = n * (n - 1) / 2, b.rank.sum(axis=0, dtype=np.float64)
        squares = n * (n - 1) * n * (2 * n - 1) / 6
        mirrored = float(np.einsum("ij,ji->", b.rank, b.rank, dtype=np.float64))
        other = null.Sums(n * row, squares, mirrored, n * row**2, float(column @ column), row * float(column.sum()))
        found = null.chance(one, other, n)
        return Chance(2 * found.mean / n**2, 2 * found.sd / n**2)
