"""Mean and spread of a sum over pairs when one side's rows are permuted, in closed form (Mantel 1967).

Unbiased CKA, neighbours' overlap and information imbalance are all sums T = sum over i != j of a[i, j] b[i, j]. Over
all n! permutations of b's rows and columns together, E[T] and E[T^2] depend on six sums of each matrix alone: each
ordered pair of entries shares both, one or none of its indices, and b's mean over such pairs takes the place of b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ctxexp_compare.measure import NullDistribution


class PermutationSums(NamedTuple):
    """Sums over a matrix (n, n) with a diagonal of zeros that determine the moments of its permutations."""

    total: float
    squares: float  # a_ij^2
    mirrored: float  # a_ij a_ji
    rows: float  # squared sums of rows
    columns: float
    across: float  # sum of a row times that of its column

    @classmethod
    def of(cls, a: np.ndarray) -> PermutationSums:
        """The sums of a matrix (n, n)."""
        a = a.astype(np.float64)
        row, column = a.sum(axis=1), a.sum(axis=0)
        return cls(
            float(row.sum()), float((a * a).sum()), float((a * a.T).sum()),
            float(row @ row), float(column @ column), float(row @ column),
        )  # fmt: skip


def chance(a: PermutationSums, b: PermutationSums, n: int) -> NullDistribution:
    """Mean and sd of T over all permutations of n > 3 rows."""
    pairs, triples, fours = n * (n - 1), n * (n - 1) * (n - 2), n * (n - 1) * (n - 2) * (n - 3)
    mean = a.total * b.total / pairs
    second = (a.squares * b.squares + a.mirrored * b.mirrored) / pairs
    for x, y in zip(_one_shared(a), _one_shared(b), strict=True):
        second += x * y / triples
    second += _none_shared(a) * _none_shared(b) / fours
    return NullDistribution(mean, float(np.sqrt(max(second - mean**2, 0.0))))


def _one_shared(s: PermutationSums) -> tuple[float, float, float, float]:
    """Sums of a_ij a_kl whose index pairs share one index: i = k; j = l; j = k; i = l."""
    return s.rows - s.squares, s.columns - s.squares, s.across - s.mirrored, s.across - s.mirrored


def _none_shared(s: PermutationSums) -> float:
    return s.total**2 - s.squares - s.mirrored - sum(_one_shared(s))
