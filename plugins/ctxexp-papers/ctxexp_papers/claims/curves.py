"""A value by layer with its error, whatever that comes of: samples, tasks, a run's replicates, or an interval alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit

from ctxexp.maths import Stream

Z = 1.959964  # half-width of a 95% interval in standard errors


class NotMeasuredError(Exception):
    """Why a test can't be made: a curve, a value or an interval that isn't there."""


@dataclass(frozen=True, eq=False)
class Curve:
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
    ) -> Curve:
        """The mean of values (samples, n), its interval Student's t over samples.

        Example:
            >>> curve = Curve.of_samples(np.array([[0.0, 1.0], [0.2, 1.2], [0.1, 1.1]]))
            >>> curve.value.round(2).tolist(), curve.high.round(2).tolist()
            ([0.1, 1.1], [0.35, 1.35])
        """
        numbers = tuple(range(values.shape[1]) if layers is None else layers)
        low, high = _of_mean(values, 1)
        return cls(values.mean(axis=0), low, high, numbers, values, n=float(len(values)), families=families)

    def ends(self, ways: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The intervals' ends (n,) as wide as a look at so many needs, of which any may decide (Bonferroni)."""
        if self.by_sample is not None:
            return _of_mean(self.by_sample, ways)
        k = widening(ways)
        return self.value - k * (self.value - self.low), self.value + k * (self.high - self.value)

    def at(self, places: Sequence[int]) -> Curve:
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

    def mean(self) -> Curve:
        """The mean over layers, as a curve of one; without samples or replicates as if all layers erred together."""
        if self.by_sample is not None:
            return Curve.of_samples(self.by_sample.mean(axis=1, keepdims=True), self.layers[:1])
        value, low, high = (end.mean(keepdims=True) for end in (self.value, self.low, self.high))
        replicates = None if self.replicates is None else self.replicates.mean(axis=0, keepdims=True)
        return replace(self, value=value, low=low, high=high, layers=self.layers[:1], replicates=replicates)

    def less(self, other: Curve) -> Curve:
        """The difference of two curves of as many layers: sample by sample, else on the same resamples where both have
        them, else with standard errors added in squares."""
        if self.by_sample is not None and other.by_sample is not None:
            return Curve.of_samples(self.by_sample - other.by_sample, self.layers)
        value, replicates = self.value - other.value, None
        if self.replicates is not None and other.replicates is not None and self.resampling == other.resampling:
            replicates = self.replicates.astype(np.float64) - other.replicates
            low, high = np.nanpercentile(replicates, [2.5, 97.5], axis=1)
        else:
            half = np.hypot(self.high - self.low, other.high - other.low) / 2
            low, high = value - half, value + half
        return Curve(value, low, high, self.layers, None, replicates, self.resampling, self.n)

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

    def defined(self, name: str) -> Curve:
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


def widening(ways: int) -> float:
    """How much wider 95% intervals must be so that the best of so many gives a wrong answer as rarely as one does
    (Bonferroni, for normal errors)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(ways, 1)) / Z


def _of_mean(values: np.ndarray, ways: int) -> tuple[np.ndarray, np.ndarray]:
    n = len(values)
    half = float(stdtrit(n - 1, 1 - 0.025 / ways)) * values.std(axis=0, ddof=1) / np.sqrt(n)
    mean = values.mean(axis=0)
    return mean - half, mean + half
