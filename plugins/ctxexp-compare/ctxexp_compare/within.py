"""Moments of a sum over pairs when one side's rows are permuted, within strata (words) or freely, in closed form.

Unbiased CKA, neighbours' overlap and information imbalance are sums T = sum over i != j of a[i, j] b[i, j]. Under
permutations within strata a pair of rows of strata s and t meets every such pair of rows of b equally often, so that b
becomes its mean over the block (s, t), its diagonal left out: E[T] = sum over blocks of sum(a) sum(b) / pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ctxexp_compare.contract import NullDistribution

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Blocks(NamedTuple):
    """Sums of a matrix over the columns of each stratum (n, w) and over blocks (w, w), the blocks' means, and the sums
    of squared entries about their row's and column's mean in the block (w, w; None for a sparse matrix)."""

    rows: np.ndarray
    sums: np.ndarray
    means: np.ndarray
    rest: np.ndarray | None = None


def indicator(strata: np.ndarray) -> csr_array:
    """Matrix (n, w): 1 at each row's stratum."""
    from scipy.sparse import csr_array  # SciPy is slow to import: not for a list of what there is

    n = len(strata)
    return csr_array((np.ones(n), strata, np.arange(n + 1)), shape=(n, int(strata.max()) + 1))


def pairs(strata: np.ndarray) -> np.ndarray:
    """(w, w) the number of ordered pairs of different rows of two strata."""
    many = np.bincount(strata).astype(np.float64)
    return np.outer(many, many) - np.diag(many)


def blocks(matrix: Any, strata: np.ndarray) -> Blocks:
    """The blocks of a matrix (n, n) with a diagonal of zeros, an array or sparse."""
    member = indicator(strata)
    dense = isinstance(matrix, np.ndarray)
    rows = (member.T @ matrix.T).T if dense else (matrix @ member).toarray()
    sums = member.T @ rows
    count = pairs(strata)
    means = np.divide(sums, count, out=np.zeros_like(sums), where=count > 0)
    if not dense:
        return Blocks(rows, sums, means)
    many = np.bincount(strata)
    squares = member.T @ (member.T @ (matrix * matrix).T).T
    by_row = member.T @ (rows**2) / many
    rest = np.maximum(squares - by_row - by_row.T + sums**2 / np.outer(many, many), 0)
    return Blocks(rows, sums, means, rest)


def spread(a: Blocks, b: Blocks, strata: np.ndarray) -> float:
    """Standard deviation of T over permutations within strata, of two symmetric arrays: that of the rows' sums over
    strata, permuted against each other, and that of the entries' remainders (blocks of one stratum counted alike). It
    is a third too large where words occur five times."""
    many = np.bincount(strata).astype(np.float64)
    one, other = (rows - (s / many[:, None])[strata] for rows, s in ((a.rows, a.sums), (b.rows, b.sums)))
    other = other / many
    total, order = 0.0, np.argsort(strata, kind="stable")
    for at in np.split(order, np.cumsum(many).astype(int)[:-1]):
        if len(at) > 1:
            total += 4 * float(((one[at] @ other[at].T) ** 2).sum()) / (len(at) - 1)
    if a.rest is not None and b.rest is not None:
        free = np.maximum(many - 1, 1)
        total += 2 * float((a.rest * b.rest / np.outer(free, free)).sum())
    return float(np.sqrt(total))


def mean(a: Blocks, b: Blocks) -> float:
    """Mean of T over all permutations within strata."""
    return float((a.sums * b.means).sum())


def mean_influence(a: Blocks, b: Blocks, strata: np.ndarray) -> np.ndarray:
    """(n,) the derivative of the mean of T by the weight of each row, the number of pairs included; for symmetric
    matrices, whose entries depend on no other row."""
    member = np.einsum("ij,ij->i", a.rows, b.means[strata]) + np.einsum("ij,ij->i", b.rows, a.means[strata])
    return 2 * member - pair_count_effect(a, b, strata)


def pair_count_effect(a: Blocks, b: Blocks, strata: np.ndarray) -> np.ndarray:
    """(n,) the part of a row's influence on the mean that comes from the number of pairs in its blocks alone."""
    product = a.means * b.means
    many = np.bincount(strata).astype(np.float64)
    by_stratum = product @ many + many @ product - 2 * np.diag(product)
    return by_stratum[strata]


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


def free_chance(a: PermutationSums, b: PermutationSums, n: int) -> NullDistribution:
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
