"""The expected level of groups whose rows change places with others of their strata, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ctxexp.maths.geometry import norms
from ctxexp.measuring.occurrences import Groups, Occurrences

STEP = 1024  # rows at a time

Gathered = Callable[[np.ndarray], np.ndarray]
"""Row numbers (n,) to rows (n, d), valid until the next call."""


class StrataLevel(NamedTuple):
    """The expected level of every group, in one layer."""

    of_group: np.ndarray  # (n_groups,) in [-1, 1]; NaN for a group of one row
    influence: np.ndarray  # (n_blocks,) of each cluster on their mean


def strata_level(
    gather: Gathered, occurrences: Occurrences, groups: Groups, rows: np.ndarray, strata: np.ndarray
) -> StrataLevel:
    """The expected mean cosine of each group's twins: its rows replaced by distinct random ones of the same strata.

    Two rows of strata a and b have p_a.p_b, with p_a the mean unit vector of stratum a, and two of one stratum
    (|sum u|^2 - n_a) / (n_a (n_a - 1)). `strata` (len(rows),) are those of the measured `rows`, ascending; rows without
    a direction have no share in it.
    """
    units = occurrences.units
    cosine, p, sizes = _between(gather, rows, strata)
    own = strata[np.searchsorted(rows, groups.rows)]
    group = np.repeat(np.arange(len(groups)), groups.counts)
    counts = np.zeros((len(groups), len(sizes)))
    np.add.at(counts, (group, own), 1)
    n, at_home = groups.counts.astype(np.float64), np.diag(cosine)
    cosine_sums = counts @ cosine  # (n_groups, n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = (np.vecdot(cosine_sums, counts) - counts @ at_home) / (n * (n - 1))
        # Which strata a group has is a matter of its own rows, and moves with them.
        # The factor is that of a cosine's own influence, so that what both owe to a row cancels.
        factor = np.where(n > 2, 2 / (n - 2) * np.sqrt((n - 1) / n), 0)
        of_row = factor[group] * ((cosine_sums[group, own] - at_home[own]) / (n[group] - 1) - level[group])
        weights = np.where(n > 1, 1 / (n * (n - 1)), 0) / max(np.count_nonzero(n > 1), 1)
    influence = units.summed(units.of_row[groups.rows], of_row) / max(np.count_nonzero(n > 1), 1)
    pairs = (counts * weights[:, None]).T @ counts - np.diag(weights @ counts)  # how often the mean asks for a and b
    same = np.diag(pairs) / np.maximum(sizes - 1, 1)  # a row is no pair with itself
    toward = ((pairs + np.diag(same * sizes - np.diag(pairs))) @ np.nan_to_num(p)).astype(np.float32)
    expected = (pairs * cosine).sum(axis=1) + same
    for at, u, has in _unit_rows(gather, rows):
        a = strata[at : at + len(u)]
        part = np.where(has, 2 * (np.vecdot(u, toward[a]) - expected[a]) / np.maximum(sizes[a], 1), 0)
        influence += units.summed(units.of_row[rows[at : at + len(u)]], part)
    return StrataLevel(level, influence)


def _between(gather: Gathered, rows: np.ndarray, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected cosines of two rows of strata a and b (k, k), the strata's mean unit vectors (k, d) and sizes (k,)."""
    k = int(strata.max()) + 1
    sums, sizes = np.zeros((k, 1)), np.zeros(k)
    for at, u, has in _unit_rows(gather, rows):
        one_hot = (strata[at : at + len(u)] == np.arange(k)[:, None]) & has
        sums, sizes = sums + (one_hot.astype(np.float32) @ u).astype(np.float64), sizes + one_hot.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = sums / sizes[:, None]
        cosine = p @ p.T
        np.fill_diagonal(cosine, (np.vecdot(sums, sums) - sizes) / (sizes * (sizes - 1)))
    return np.nan_to_num(cosine), p, sizes  # without a pair: no group asks for it


def _unit_rows(gather: Gathered, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """(first, rows at norm 1 (n, d), which of them have a direction (n,)); the others are zeros."""
    for at in range(0, len(rows), STEP):
        x = gather(rows[at : at + STEP])
        length = norms(x)
        has = np.isfinite(length) & (length > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield at, np.where(has[:, None], x / length[:, None].astype(x.dtype), 0), has
