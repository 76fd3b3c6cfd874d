"""The expected mean cosine of groups whose rows are replaced by random rows of the same strata, in closed form.

A stratum is a set of measured rows that are alike in something other than their word, such as position or frequency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ctxexp import Occurrences
from ctxexp.maths.geometry import norms
from ctxexp.occurrences import Groups

STEP = 1024  # rows at a time

Gather = Callable[[np.ndarray], np.ndarray]
"""Row numbers (n,) to rows (n, d), valid until the next call."""


class StrataLevel(NamedTuple):
    """The expected mean cosine of every group in one layer: its baseline."""

    of_group: np.ndarray  # (n_groups,) in [-1, 1]; NaN for a group of one row
    influence: np.ndarray  # (n_blocks,) of each cluster on their mean


def strata_level(
    gather: Gather,
    occurrences: Occurrences,
    groups: Groups,
    rows: np.ndarray,
    strata: np.ndarray,
    weights: np.ndarray | None = None,
) -> StrataLevel:
    """The expected mean cosine of each group with its rows replaced by distinct random rows of the same strata.

    Random rows of strata a and b have the expected cosine p_a.p_b, with p_a the mean normalized row of stratum a, and
    two of one stratum (|sum u|^2 - n_a) / (n_a (n_a - 1)). `rows` are the measured rows and must be ascending;
    `strata[i]`, in 0 .. k - 1, is the stratum of `rows[i]`. Rows that are zero or not finite are left out. `weights`
    (n_groups,) of the groups in their mean, which add up to 1; None: equal.
    """
    units = occurrences.units
    cosine, p, sizes = _between(gather, rows, strata)
    own = strata[np.searchsorted(rows, groups.rows)]
    group = np.repeat(np.arange(len(groups)), groups.counts)
    counts = np.zeros((len(groups), len(sizes)))
    np.add.at(counts, (group, own), 1)
    n, within = groups.counts.astype(np.float64), np.diag(cosine)
    share = (n > 1) / np.maximum(np.count_nonzero(n > 1), 1) if weights is None else weights
    cosine_sums = counts @ cosine  # (n_groups, n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = (np.vecdot(cosine_sums, counts) - counts @ within) / (n * (n - 1))
        # The strata of a group's rows are random too, so that each row has an influence through its stratum.
        # The factor is that of a cosine's own influence, so that the two cancel in the difference.
        factor = np.where(n > 2, 2 / (n - 2) * np.sqrt((n - 1) / n), 0)
        of_row = factor[group] * ((cosine_sums[group, own] - within[own]) / (n[group] - 1) - level[group])
        of_pair = np.where(n > 1, share / (n * (n - 1)), 0)
    influence = units.summed(units.of_row[groups.rows], of_row * share[group])
    # the weight of each two strata a and b in the mean
    pairs = (counts * of_pair[:, None]).T @ counts - np.diag(of_pair @ counts)
    same = np.diag(pairs) / np.maximum(sizes - 1, 1)  # a row is no pair with itself
    gradient = ((pairs + np.diag(same * sizes - np.diag(pairs))) @ np.nan_to_num(p)).astype(np.float32)
    expected = (pairs * cosine).sum(axis=1) + same
    for at, u, valid in _unit_rows(gather, rows):
        a = strata[at : at + len(u)]
        part = np.where(valid, 2 * (np.vecdot(u, gradient[a]) - expected[a]) / np.maximum(sizes[a], 1), 0)
        influence += units.summed(units.of_row[rows[at : at + len(u)]], part)
    return StrataLevel(level, influence)


def _between(gather: Gather, rows: np.ndarray, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected cosines of two rows of strata a and b (k, k), the strata's mean unit vectors (k, d) and sizes (k,)."""
    k = int(strata.max()) + 1
    sums, sizes = np.zeros((k, 1)), np.zeros(k)
    for at, u, valid in _unit_rows(gather, rows):
        one_hot = (strata[at : at + len(u)] == np.arange(k)[:, None]) & valid
        sums, sizes = sums + (one_hot.astype(np.float32) @ u).astype(np.float64), sizes + one_hot.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = sums / sizes[:, None]
        cosine = p @ p.T
        np.fill_diagonal(cosine, (np.vecdot(sums, sums) - sizes) / (sizes * (sizes - 1)))
    return np.nan_to_num(cosine), p, sizes  # NaN only where a stratum has no pair, which no group needs


def _unit_rows(gather: Gather, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield chunks (first, normalized rows (n, d), mask of the valid rows (n,)); rows that are zero or not finite are
    zeros."""
    for at in range(0, len(rows), STEP):
        x = gather(rows[at : at + STEP])
        length = norms(x)
        valid = np.isfinite(length) & (length > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield at, np.where(valid[:, None], x / length[:, None].astype(x.dtype), 0), valid
