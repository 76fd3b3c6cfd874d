"""Values with intervals: by layer with their errors, whatever these come of (samples, tasks, a run's replicates, or an
interval alone); and means, shares and correlations of units (words, tasks), each unit counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ctxexp.maths import Stream, midranks, partial_correlation

Z = 1.959964  # half-width of a 95% interval in standard errors
MIN_UNITS, MIN_WORDS = 5, 20
STRATA = 10  # of frequency


class NotMeasuredError(Exception):
    """Why a test can't be made: a curve, a value or an interval that isn't there."""


@dataclass(frozen=True, eq=False)
class LayerCurve:
    """Values by layer, with the ends of their 95% intervals, (n,) each.

    Attributes:
        layers: The layers' numbers.
        by_sample: (samples, n) values whose mean the curve is: of disjoint samples of a text, or of tasks.
        replicates: (n, r) bootstrap replicates of a run; curves of the same resamples share `resampling`.
        n: Of how many samples, tasks or words it is.
        families: Of each sample its family's name, where samples are tasks that go together; empty: independent ones.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    layers: tuple[int, ...]
    by_sample: np.ndarray | None = None
    replicates: np.ndarray | None = None
    resampling: object = None
    n: float = float("nan")
    families: tuple[str, ...] = ()

    @classmethod
    def of_samples(
        cls, values: np.ndarray, layers: Sequence[int] | None = None, families: tuple[str, ...] = ()
    ) -> LayerCurve:
        """The mean of values (samples, n), its interval Student's t over samples.

        Example:
            >>> curve = LayerCurve.of_samples(np.array([[0.0, 1.0], [0.2, 1.2], [0.1, 1.1]]))
            >>> curve.value.round(2).tolist(), curve.high.round(2).tolist()
            ([0.1, 1.1], [0.35, 1.35])
        """
        numbers = tuple(range(values.shape[1]) if layers is None else layers)
        mean, half = values.mean(axis=0), _half_width(values)
        return cls(mean, mean - half, mean + half, numbers, values, n=float(len(values)), families=families)

    def ends(self, n_comparisons: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the intervals (n,), Bonferroni-corrected for `n_comparisons`."""
        if self.by_sample is not None:
            mean, half = self.by_sample.mean(axis=0), _half_width(self.by_sample, n_comparisons)
            return mean - half, mean + half
        k = widening(n_comparisons)
        return self.value - k * (self.value - self.low), self.value + k * (self.high - self.value)

    def at(self, places: Sequence[int]) -> LayerCurve:
        """The curve of the layers at these places alone."""
        where = list(places)
        return replace(
            self,
            value=self.value[where],
            low=self.low[where],
            high=self.high[where],
            layers=tuple(self.layers[i] for i in where),
            by_sample=None if self.by_sample is None else self.by_sample[:, where],
            replicates=None if self.replicates is None else self.replicates[where],
        )

    def mean(self) -> LayerCurve:
        """The mean over layers, as a curve of one; without samples or replicates as if all layers erred together."""
        if self.by_sample is not None:
            return LayerCurve.of_samples(self.by_sample.mean(axis=1, keepdims=True), self.layers[:1])
        value, low, high = (end.mean(keepdims=True) for end in (self.value, self.low, self.high))
        replicates = None if self.replicates is None else self.replicates.mean(axis=0, keepdims=True)
        return replace(self, value=value, low=low, high=high, layers=self.layers[:1], replicates=replicates)

    def less(self, other: LayerCurve) -> LayerCurve:
        """The difference of two curves of as many layers: sample by sample, else on the same resamples where both have
        them, else with standard errors added in squares."""
        if self.by_sample is not None and other.by_sample is not None:
            return LayerCurve.of_samples(self.by_sample - other.by_sample, self.layers)
        value, replicates = self.value - other.value, None
        if self.replicates is not None and other.replicates is not None and self.resampling == other.resampling:
            replicates = self.replicates.astype(np.float64) - other.replicates
            low, high = np.nanpercentile(replicates, [2.5, 97.5], axis=1)
        else:
            half = np.hypot(self.high - self.low, other.high - other.low) / 2
            low, high = value - half, value + half
        return LayerCurve(value, low, high, self.layers, None, replicates, self.resampling, self.n)

    def redrawn(self, draws: int) -> np.ndarray:
        """Curves (draws, n) as they might have come out: resampled samples, the run's own replicates, else each layer's
        value redrawn within its own interval, independently, which errs on the wide side since layers share words."""
        rng = np.random.default_rng([0, Stream.CLAIMS, 0])
        if self.by_sample is not None:
            n = len(self.by_sample)
            return np.asarray(rng.multinomial(n, np.full(n, 1 / n), draws) / n @ self.by_sample)
        if self.replicates is not None:
            return self.replicates.T[:draws].astype(np.float64)
        drawn: np.ndarray = self.value + (self.high - self.low) / (2 * Z) * rng.normal(size=(draws, len(self.value)))
        return drawn

    def defined(self, name: str) -> LayerCurve:
        """The layers that have values; of a run, which has them all or fails, raises NotMeasuredError for a hole, and
        for a curve without intervals."""
        finite = np.isfinite(self.value)
        if not finite.any():
            raise NotMeasuredError(f"{name} is undefined: too few rows for the width, or no such rows")
        if self.by_sample is None and not finite.all():
            holes = ", ".join(str(self.layers[i]) for i in np.flatnonzero(~finite))
            raise NotMeasuredError(f"{name} is undefined in layer {holes}")
        if not np.isfinite(self.low[finite]).all():
            raise NotMeasuredError(f"{name} has no interval: run with bootstrap and baseline redraws")
        return self if finite.all() else self.at(np.flatnonzero(finite).tolist())


def widening(n_comparisons: int) -> float:
    """The factor that widens a 95% interval of normal errors for `n_comparisons` (Bonferroni)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(n_comparisons, 1)) / Z


def _half_width(values: np.ndarray, n_comparisons: int = 1) -> np.ndarray:
    """Half the 95% interval, by Student's t, of the mean of values (n, ...) over their first axis."""
    n = len(values)
    half: np.ndarray = stdtrit(n - 1, 1 - 0.025 / n_comparisons) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return half


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


def mean_of(values: np.ndarray, *, wider: float = 1.0) -> Interval:
    """The mean of the values (n,) that are defined, its interval Student's t over units, `wider` times as wide for
    families of units.

    Raises:
        ValueError: With fewer than MIN_UNITS of them.
    """
    values = np.asarray(values, np.float64)[np.isfinite(values)]
    n = len(values)
    if n < MIN_UNITS:
        raise ValueError(f"expected {MIN_UNITS} units at the least, got {n}")
    value, half = float(values.mean()), float(_half_width(values)) * wider
    return Interval(value, value - half, value + half, n)


def wilson(count: float, n: float, *, n_comparisons: int = 1) -> tuple[float, float]:
    """Wilson's 95% interval of a share, `count` of `n`, Bonferroni-corrected for `n_comparisons`."""
    z = Z * widening(n_comparisons)
    p, middle = count / n, 1 + z**2 / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    centre = p + z**2 / (2 * n)
    return max(0.0, float((centre - half) / middle)), min(1.0, float((centre + half) / middle))


def within_strata(values: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Residuals of values (n, k) after the means of the strata of frequency (n,) and its rank, which is what is left of
    it within a stratum. Words of one frequency are in one stratum."""
    ranks = midranks(frequency)
    stratum = np.minimum((ranks - 0.5) * STRATA / len(ranks), STRATA - 1).astype(int)
    _, stratum = np.unique(stratum, return_inverse=True)
    design = np.column_stack([np.eye(stratum.max() + 1)[stratum], ranks / len(ranks)])
    fitted: np.ndarray = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    residuals: np.ndarray = values - fitted
    return residuals


def matched_difference(values: np.ndarray, is_one: np.ndarray, frequency: np.ndarray) -> Interval:
    """The mean of one group of words less that of the others, at equal frequency.

    Args:
        values: (n,) a value a word, finite.
        is_one: (n,) bool, which words are of the group.
        frequency: (n,) how often each occurs.

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
    half = float(stdtrit(max(least - 1, 1), 0.975)) * error
    return Interval(value, value - half, value + half, least)


def partial_ranks(
    y: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
    frequency: np.ndarray,
    *,
    rng: np.random.Generator,
    n_comparisons: int = 1,
    resamples: int = 1000,
) -> PartialRank:
    """Spearman's partial correlations of y with two properties at equal frequency, each given the other.

    Args:
        y: (n,) a value a word, such as its self-similarity; all arrays are finite.
        one: (n,) its number of senses.
        other: (n,) the variety of its contexts.
        frequency: (n,) how often it occurs; ranks are compared within strata of it.
        rng: Draws the resamples of words.
        n_comparisons: Bonferroni-corrects the intervals for so many.
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
    return PartialRank(*(_interval(rho, n, n_comparisons) for rho in (*rhos, rhos[0] - rhos[1])))


def _interval(replicates: np.ndarray, n: int, n_comparisons: int) -> Interval:
    low, high = np.nanquantile(replicates[1:], [0.025 / n_comparisons, 1 - 0.025 / n_comparisons])
    return Interval(float(replicates[0]), float(low), float(high), n)
