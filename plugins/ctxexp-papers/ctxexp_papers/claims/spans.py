"""Values with their 95% intervals, layer by layer, and differences of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ctxexp.maths import Stream
from ctxexp.results import Key

Z = 1.959964  # half-width of a 95% interval in standard errors


def widening(ways: int) -> float:
    """How much wider 95% intervals must be so that the best of so many gives a wrong answer as rarely as one does
    (Bonferroni, for normal errors)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(ways, 1)) / Z


class NotMeasuredError(Exception):
    """Why a test can't be made on a run: a curve, a value or an interval that isn't there."""


@dataclass(frozen=True)
class Span:
    """A curve with the ends of its 95% intervals (n,) each, and its bootstrap replicates (n, r) where they were kept.

    Of points that came without intervals both ends are the values.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    replicates: np.ndarray | None = None

    def require(self, key: Key, layers: Sequence[int]) -> None:
        """Raise NotMeasuredError unless all these layers have a value and an interval."""
        if holes := [i for i in layers if not np.isfinite(self.value[i])]:
            raise NotMeasuredError(f"{key} is undefined in layer {', '.join(map(str, holes))}")
        if not np.isfinite(self.low[list(layers)]).all():
            raise NotMeasuredError(f"{key} has no interval: run with bootstrap and baseline redraws")

    def widened(self, ways: int) -> Span:
        """The intervals as wide as a look at so many of them needs."""
        k = widening(ways)
        return Span(self.value, self.value - k * (self.value - self.low), self.value + k * (self.high - self.value))

    def at(self, layer: int) -> tuple[float, float, float]:
        """Value, low and high of a layer."""
        return float(self.value[layer]), float(self.low[layer]), float(self.high[layer])

    def redrawn(self, draws: int) -> np.ndarray:
        """Curves (draws, n) as they might have come out: the run's own replicates, else each layer's value redrawn
        within its own interval, independently, which errs on the wide side since layers share their words."""
        if self.replicates is not None:
            return self.replicates.T[:draws].astype(np.float64)
        sd = (self.high - self.low) / (2 * Z)
        rng = np.random.default_rng([0, Stream.CLAIMS, 0])
        curves: np.ndarray = self.value + sd * rng.normal(size=(draws, len(sd)))
        return curves

    def less(self, other: Span, one: int, two: int) -> tuple[float, float, float]:
        """This curve's layer less the other's with a 95% interval: on the same resamples where both kept theirs, else
        with standard errors added in squares. Of points all three are the same."""
        effect = float(self.value[one] - other.value[two])
        if self.replicates is not None and other.replicates is not None:
            low, high = np.nanpercentile(self.replicates[one].astype(np.float64) - other.replicates[two], [2.5, 97.5])
            return effect, float(low), float(high)
        widths = self.high[one] - self.low[one], other.high[two] - other.low[two]
        half = float(np.hypot(*widths)) / 2
        return effect, effect - half, effect + half
