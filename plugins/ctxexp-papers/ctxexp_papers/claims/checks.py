"""The shapes of a test: a bound in every layer, a trend over layers, a difference between models.

An interval decides, or nothing does: a test is passed where the whole interval is on the claim's side, failed where all
of it is on the other, and open between. Where one of several layers or models would do, intervals are as wide as so
many looks need. Trends over layers are decided only beyond what walks of the same steps give (`statistics.walks`):
layers are not exchangeable. Released figures have no intervals: their points are compared, which says what the figures
say and is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ctxexp.maths import Stream, spearman
from ctxexp.maths.statistics import spearman_rows
from ctxexp.results import Key
from ctxexp_papers.claims.evidence import Evidence
from ctxexp_papers.claims.spans import NotMeasuredError, Span, widening
from ctxexp_papers.claims.statistics.walks import trend_p

DRAWS = 2000
LEVEL = 0.05  # of walks, that may show a trend as strong
NONE = 0.05
"""The margin of equivalence for cosines, as a share of the room above chance where they are chance-corrected: what lies
within it of 0 is none; less than it isn't a change."""


@dataclass(frozen=True)
class Check:
    """One test on one model: did it come out as claimed (None: open, or not measured), with what effect.

    `low` and `high` are the effect's 95% interval, NaN where the evidence brings none (released figures). `brief` is
    the outcome as a table has it ("6 of 12"), `text` the effect in words, or why there is none; `threshold` the bounds
    of the effect, where they aren't 0, for figures.
    """

    model: str
    variant: str = ""
    passed: bool | None = None
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: float = math.nan
    text: str = ""
    link: str = ""
    brief: str = ""
    threshold: tuple[float, ...] = ()

    @property
    def is_measured(self) -> bool:
        return math.isfinite(self.effect)

    def under(self, variant: str) -> Check:
        return replace(self, variant=variant)


def checked(model: str, test: Callable[[], Check]) -> Check:
    """The test's outcome, or why it wasn't measured."""
    try:
        return test()
    except NotMeasuredError as why:
        return Check(model, text=str(why))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The bound of a value: above a number, below one, or within +- one."""

    above: float | None = None
    below: float | None = None
    within: float | None = None

    @property
    def ends(self) -> tuple[float, ...]:
        """The numbers that bound the value."""
        if self.within is not None:
            return (-self.within, self.within)
        return tuple(end for end in (self.above, self.below) if end is not None)

    def margins(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far inside the bound intervals (n,) are at their worst end and at their best; negative: outside."""
        if self.above is not None:
            return low - self.above, high - self.above
        if self.below is not None:
            return self.below - high, self.below - low
        assert self.within is not None
        worst = np.minimum(self.within - high, self.within + low)
        worst = np.where(np.abs(worst) < 1e-9, 1e-9, worst)  # the margin itself is within it
        return worst, np.minimum(self.within - low, self.within + high)


def in_layers(evidence: Evidence, key: Key, *, bound: Bound, ways: int = 1) -> Check:
    """Whether the curve lies within its bound in every hidden layer. The effect is that of the layer that is nearest to
    breaking it. Any of them could break it, in each of the `ways` in which the claim can fail: it fails only by
    intervals that are widened by so many.
    """
    spans = evidence.span(key)
    layers = list(range(1, len(spans.value)))
    if not layers:
        raise NotMeasuredError(f"{key} has no layer 1")
    spans.require(key, layers)
    worst, _ = _margins(bound, spans, layers)
    broken, best = _margins(bound, spans.widened(len(layers) * ways), layers)
    yes, no = int((worst > 0).sum()), int(((best <= 0) & (broken < 0)).sum())
    at = layers[int(np.argmin(worst))]
    passed = True if yes == len(layers) else False if no else None
    brief = f"{yes} of {len(layers)}"
    text = f"{brief} layers, {no} not; layer {at} decides{_twin(evidence, key, at)}"
    effect = evidence.with_interval(*spans.at(at))
    return Check(evidence.model, "", passed, *effect, evidence.n(key, at), text, evidence.link, brief, bound.ends)


def _margins(bound: Bound, spans: Span, layers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return bound.margins(spans.low[layers], spans.high[layers])


def _twin(evidence: Evidence, key: Key, layer: int) -> str:
    """How the layer differs from that of the untrained twin, in words; empty without one."""
    if evidence.twin is None:
        return ""
    try:
        value, low, high = evidence.less(evidence.twin, key, layer, layer)
    except NotMeasuredError:
        return ""
    return f"; less its untrained twin {value:+.3f} [{low:+.3f}, {high:+.3f}]"


def trend(evidence: Evidence, key: Key, *, rises: bool, ways: int = 1) -> Check:
    """Whether the curve rises (falls) with depth: Spearman's rho of layer and value is on that side of 0, and the
    change along the straight line through all layers at least NONE.

    Nothing is decided unless fewer than 5% of walks go with depth as far; of 5 layers 1 in 8
    does at the least, so that 6 or fewer decide nothing. A claim that fails in any of several `ways` fails only beyond
    so many times rarer walks. Both intervals redraw each layer's value within its own, independently, which errs on the
    wide side since layers share their words.
    """
    spans = evidence.span(key)
    layers = np.arange(len(spans.value))
    if len(layers) < 3:
        raise NotMeasuredError(f"{key}: a trend needs 3 layers")
    spans.require(key, layers.tolist())
    sign, values = (1 if rises else -1), spans.value
    rho, change, p = spearman(values, layers), float(_change(values)), trend_p(values, _rng())
    rho_ends, change_ends = (rho, rho), (change, change)
    if not evidence.points:
        replicates = spans.redrawn(DRAWS)
        rho_ends = _middle(spearman_rows(replicates, layers), rho)
        change_ends = _middle(_change(replicates), change)
    order, size = (side(sign, rho_ends, 0.0), side(sign, change_ends, NONE))
    passed = False if False in (order, size) else None if None in (order, size) else True
    passed = beyond_chance(passed, p, ways)
    against = [f"{a} to {b}" for a, b in pairwise(layers.tolist()) if sign * (values[b] - values[a]) < 0]
    parts = [f"rho, {'against it: layer ' + ', '.join(against) if against else 'every step agrees'}"]
    parts += [f"change {change:+.3f}" + ("" if evidence.points else f" [{change_ends[0]:+.3f}, {change_ends[1]:+.3f}]")]
    parts += [chance(p)]
    if evidence.twin is not None and (twin := evidence.twin.curve(key)) is not None:
        parts.append(f"the untrained twin's change {float(_change(twin)):+.3f}")
    n = evidence.n(key, int(layers[-1]))
    effect = evidence.with_interval(rho, *rho_ends)
    return Check(evidence.model, "", passed, *effect, n, "; ".join(parts), evidence.link, f"{rho:.2f} ({_walks(p)})")


def beyond_chance(passed: bool | None, p: float, ways: int) -> bool | None:
    """The outcome of a test over layers where walks give as much in less than 5% of cases, to fail less by the `ways`
    in which the claim can; else open."""
    return passed if p < (LEVEL / ways if passed is False else LEVEL) else None


def below(
    one: Evidence,
    other: Evidence,
    key: Key,
    layers: tuple[int, int],
    where: str,
    ways: int = 1,
) -> Check:
    """Whether `one` lies below `other` in a curve, each at its layer (negative: from the last); the effect is one minus
    other. `where` names the place, `ways` is in how many the claim can fail."""
    at = tuple(i % len(e.span(key).value) for e, i in zip((one, other), layers, strict=True))
    value, low, high = one.less(other, key, *at)
    k = widening(ways)
    wide = value - k * (value - low), value + k * (high - value)
    passed = True if side(-1, (low, high), 0.0) else False if side(-1, wide, 0.0) is False else None
    a, b = one.span(key).value[at[0]], other.span(key).value[at[1]]
    text = f"{where}: {a:.3f} against {b:.3f} of {other.label or other.model}"
    n = one.n(key, at[0])
    return Check(one.model, "", passed, *one.with_interval(value, low, high), n, text, one.link, f"{value:+.3f}")


def side(sign: int, ends: tuple[float, float], bound: float) -> bool | None:
    """Whether an interval lies beyond a bound on the side of `sign`: True, False if all of it doesn't, None if open."""
    least, most = sorted((sign * ends[0], sign * ends[1]))
    return True if least > bound else False if most <= bound else None


def chance(p: float) -> str:
    """How often chance gives as much, in words: "50.0% of walks go as far: no more than chance"."""
    if not math.isfinite(p):
        return "no trend: the curve doesn't change"
    return f"{_share(p)} of walks go as far{'' if p < LEVEL else ': no more than chance'}"


def _walks(p: float) -> str:
    return f"{_share(p)} of walks" if math.isfinite(p) else "undefined"


def _share(p: float) -> str:
    return f"{p:.1%}" if p >= 0.0005 else "under 0.05%"


def _rng() -> np.random.Generator:
    return np.random.default_rng([0, Stream.CLAIMS, 2])


def _change(values: np.ndarray) -> np.ndarray:
    """From the first layer to the last along the straight line (least squares) through values (..., layers): (...)."""
    x = np.linspace(-0.5, 0.5, values.shape[-1])
    return np.asarray(values @ x / (x @ x))


def _middle(replicates: np.ndarray, estimate: float) -> tuple[float, float]:
    """Their middle 95% and the estimate: noise that is added to a curve brings its rho nearer to 0."""
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return min(float(low), estimate), max(float(high), estimate)
