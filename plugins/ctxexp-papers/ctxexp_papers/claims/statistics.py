"""Means, shares and correlations of units (words, tasks) with intervals, each unit counted once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ctxexp.maths import midranks, partial_correlation
from ctxexp_papers.claims.curves import Z, widening

MIN_UNITS, MIN_WORDS = 5, 20
STRATA = 10  # of frequency


class Interval(NamedTuple):
    """A value, its 95% interval, and over how many units (words, tasks) it is."""

    value: float
    low: float
    high: float
    n: int


class PartialRank(NamedTuple):
    """Partial rank correlations of y with two properties, each given the other and frequency, and their difference."""

    one: Interval
    other: Interval
    difference: Interval  # one less other


def mean_of(values: np.ndarray, *, ways: int = 1, wider: float = 1.0) -> Interval:
    """The mean of the values (n,) that are defined, its interval Student's t over units, as wide as so many looks need,
    and so many times wider for families of units.

    Raises:
        ValueError: With fewer than MIN_UNITS of them.
    """
    values = np.asarray(values, np.float64)[np.isfinite(values)]
    n = len(values)
    if n < MIN_UNITS:
        raise ValueError(f"expected {MIN_UNITS} units at the least, got {n}")
    half = float(stdtrit(n - 1, 1 - 0.025 / ways) * values.std(ddof=1) / np.sqrt(n)) * wider
    value = float(values.mean())
    return Interval(value, value - half, value + half, n)


def wilson(count: float, n: float, *, ways: int = 1) -> tuple[float, float]:
    """Wilson's 95% interval of a share, `count` of `n`; of the most extreme of so many (`ways`), by Bonferroni."""
    z = Z * widening(ways)
    p, middle = count / n, 1 + z**2 / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    centre = p + z**2 / (2 * n)
    return max(0.0, float((centre - half) / middle)), min(1.0, float((centre + half) / middle))


def within_strata(values: np.ndarray, frequency: np.ndarray, strata: int = STRATA) -> np.ndarray:
    """Residuals of values (n, k) after the means of the strata of frequency (n,) and its rank, which is what is left of
    it within a stratum. Words of one frequency are in one stratum."""
    ranks = midranks(frequency)
    stratum = np.minimum((ranks - 0.5) * strata / len(ranks), strata - 1).astype(int)
    _, stratum = np.unique(stratum, return_inverse=True)
    design = np.column_stack([np.eye(stratum.max() + 1)[stratum], ranks / len(ranks)])
    fitted: np.ndarray = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    residuals: np.ndarray = values - fitted
    return residuals


def matched_difference(values: np.ndarray, is_one: np.ndarray, frequency: np.ndarray, *, ways: int = 1) -> Interval:
    """The mean of one group of words less that of the others, at equal frequency.

    Args:
        values: (n,) a value a word, finite.
        is_one: (n,) bool, which words are of the group.
        frequency: (n,) how often each occurs.
        ways: Of so many looks any may decide: the interval is as wide as that needs (Bonferroni).

    Returns:
        The coefficient of the group beside strata of frequency, by Student's t with the heteroscedastic error of White
        (1980, as HC2 corrects it); n of the smaller group.

    Raises:
        ValueError: With fewer than MIN_WORDS words, or fewer than two in either group.
    """
    n, least = len(values), int(min(is_one.sum(), (~is_one).sum()))
    if n < MIN_WORDS or least < 2:
        raise ValueError(f"expected {MIN_WORDS} words and two in either group, got {n} and {least}")
    y, d = within_strata(np.column_stack([values, is_one]).astype(np.float64), frequency).T
    scale = float(d @ d)
    if scale < 1e-9:
        raise ValueError("no stratum of frequency has words of both groups")
    value = float(d @ y) / scale
    leverage = np.minimum(d**2 / scale, 0.99)
    error = float(np.sqrt((d**2 * (y - value * d) ** 2 / (1 - leverage)).sum())) / scale
    half = float(stdtrit(max(least - 1, 1), 1 - 0.025 / ways)) * error
    return Interval(value, value - half, value + half, least)


def partial_ranks(
    y: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
    frequency: np.ndarray,
    *,
    rng: np.random.Generator,
    ways: int = 1,
    resamples: int = 1000,
) -> PartialRank:
    """Spearman's partial correlations of y with two properties at equal frequency, each given the other.

    Args:
        y: (n,) a value a word, such as its self-similarity; all arrays are finite.
        one: (n,) its number of senses.
        other: (n,) the variety of its contexts.
        frequency: (n,) how often it occurs; ranks are compared within strata of it.
        rng: Draws the resamples of words.
        ways: Of so many looks any may decide: the interval is as wide as that needs (Bonferroni).
        resamples: How many.

    Returns:
        Both in [-1, 1] and their difference, with bootstrap intervals over words.

    Raises:
        ValueError: With fewer than MIN_WORDS words.
    """
    n = len(y)
    if n < MIN_WORDS:
        raise ValueError(f"expected {MIN_WORDS} words, got {n}")
    x = within_strata(np.column_stack([midranks(v) for v in (y, one, other)]), frequency)
    weights = np.concatenate([np.full((1, n), 1 / n), rng.multinomial(n, np.full(n, 1 / n), resamples) / n])
    means = weights @ x
    pairs = [(0, 1), (0, 2), (1, 2)]
    spread = weights @ x**2 - means**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r = [
            (weights @ (x[:, i] * x[:, j]) - means[:, i] * means[:, j]) / np.sqrt(spread[:, i] * spread[:, j])
            for i, j in pairs
        ]
    rhos = np.asarray(partial_correlation(*r)), np.asarray(partial_correlation(r[1], r[0], r[2]))
    return PartialRank(*(_interval(rho, n, ways) for rho in (*rhos, rhos[0] - rhos[1])))


def _interval(replicates: np.ndarray, n: int, ways: int) -> Interval:
    low, high = np.nanquantile(replicates[1:], [0.025 / ways, 1 - 0.025 / ways])
    return Interval(float(replicates[0]), float(low), float(high), n)
