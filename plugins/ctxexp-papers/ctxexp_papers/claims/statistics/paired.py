"""Differences of the same units, and of two groups of units: words count once each, however often they occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

MIN_UNITS = 5


class Interval(NamedTuple):
    """A mean, its 95% interval, and over how many units (words, tasks) it is."""

    value: float
    low: float
    high: float
    n: int

    def above(self, bound: float = 0.0) -> bool | None:
        """Whether it lies above a bound: True or False by the interval, None where that spans the bound."""
        return True if self.low > bound else False if self.high <= bound else None


def paired_difference(
    one: np.ndarray, other: np.ndarray | float = 0.0, *, clusters: Sequence[object] | None = None, ways: int = 1
) -> Interval:
    """The mean of `one` less `other` on the same units, each cluster's mean counted once.

    Args:
        one: (n,) a value a unit, such as a word's occurrence or a task; pairs with NaN in either are left out.
        other: (n,) the same units under the other condition, or one number.
        clusters: n labels, such as words; None: every unit is its own.
        ways: Of so many looks any may decide: the interval is as wide as that needs (Bonferroni).

    Returns:
        The interval by Student's t over clusters.

    Raises:
        ValueError: With fewer than MIN_UNITS clusters, or different lengths.

    Example:
        >>> paired_difference(np.array([2.0, 3.0, 4.0, 5.0, 6.0]), 1.0).value
        3.0
    """
    difference = np.asarray(one, np.float64) - other
    defined = np.isfinite(difference)
    if clusters is None:
        means = difference[defined]
    else:
        if len(clusters) != len(difference):
            raise ValueError(f"expected a cluster a unit, got {len(clusters)} of {len(difference)}")
        _, of = np.unique(np.asarray(clusters)[defined], return_inverse=True)
        means = np.bincount(of, difference[defined]) / np.bincount(of)
    return _mean(means, ways)


def group_difference(one: np.ndarray, other: np.ndarray, *, ways: int = 1) -> Interval:
    """The mean of one group of units less that of another, by Welch's t; NaN are left out.

    Args:
        one: (n,) a value a unit, such as a monosemous word's self-similarity.
        other: (m,) those of other units.
        ways: See `paired_difference`.

    Returns:
        The interval, with n of the smaller group.

    Raises:
        ValueError: With fewer than MIN_UNITS units in either.
    """
    a, b = (np.asarray(x, np.float64)[np.isfinite(x)] for x in (one, other))
    _check(min(len(a), len(b)))
    u, v = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1)) if u + v else 1.0
    half = float(stdtrit(freedom, 1 - 0.025 / ways) * np.sqrt(u + v))
    value = float(a.mean() - b.mean())
    return Interval(value, value - half, value + half, min(len(a), len(b)))


def _mean(values: np.ndarray, ways: int) -> Interval:
    _check(n := len(values))
    half = float(stdtrit(n - 1, 1 - 0.025 / ways) * values.std(ddof=1) / np.sqrt(n))
    value = float(values.mean())
    return Interval(value, value - half, value + half, n)


def _check(n: int) -> None:
    if n < MIN_UNITS:
        raise ValueError(f"expected {MIN_UNITS} units at the least, got {n}")
