"""The shapes of a test: a bound in enough layers, a trend over layers, an association, a difference between models.

An interval decides, or nothing does: a test is passed where the whole interval is on the claim's side, failed where all
of it is on the other, and open between. Released figures have no intervals: their points are compared, which says what
the figures say and is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import numpy as np

from ctxexp.maths.correlation import spearman, spearman_rows
from ctxexp.results.values import Key
from ctxexp_claims.evidence import Evidence
from ctxexp_claims.spans import NotMeasuredError

DRAWS = 2000
ORDERS = 7  # layers up to which all orders are tried
NONE = 0.05
"""The margin of equivalence for cosines: what lies within it of 0 is none; less than it isn't a change."""


@dataclass(frozen=True)
class Check:
    """One test on one model: did it come out as claimed (None: open, or not measured), with what effect.

    `low` and `high` are the effect's 95% interval, NaN where the evidence brings none (released figures). `brief` is
    the outcome as a table has it ("6 of 12"), `said` the effect in words, or why there is none.
    """

    model: str
    variant: str = ""
    passed: bool | None = None
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: float = math.nan
    said: str = ""
    link: str = ""
    brief: str = ""

    @property
    def measured(self) -> bool:
        return math.isfinite(self.effect)

    def under(self, variant: str) -> Check:
        return replace(self, variant=variant)


def checked(model: str, test: Callable[[], Check]) -> Check:
    """The test's outcome, or why it wasn't measured."""
    try:
        return test()
    except NotMeasuredError as why:
        return Check(model, said=str(why))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What a value is to be: above a number, below one, or within +- one."""

    above: float | None = None
    below: float | None = None
    within: float | None = None

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


def in_layers(
    evidence: Evidence,
    key: Key,
    *,
    bound: Bound,
    first: int = 1,
    only: int | None = None,
    least: float = 1.0,
    spared: int = 0,
    over: int | None = None,
) -> Check:
    """Whether the curve lies within its bound in enough layers from `first`: a share `least` of them,
    all but those `spared`, or in one alone (`only`, negative: from the last).

    With `over`, what is bounded is each other layer's difference from that one. The effect is that of the layer that
    decides: the one nearest to breaking it after as many as may be spared.
    """
    spans = evidence.span(key)
    count = len(spans.value)
    layers = [i for i in range(first, count) if i != over] if only is None else [only % count]
    if not layers:
        raise NotMeasuredError(f"{key} has no layer {first}")
    spans = spans if over is None else evidence.differences(key, over)
    spans.require(key, layers)
    worst, best = bound.margins(spans.low[layers], spans.high[layers])
    yes, no = int((worst > 0).sum()), int(((best <= 0) & (worst < 0)).sum())
    needed = math.ceil(least * len(layers) - 1e-9) - spared
    order = np.argsort(worst, kind="stable")
    at = layers[int(order[len(layers) - needed])]
    passed = True if yes >= needed else False if len(layers) - no < needed else None
    brief = f"{yes} of {len(layers)}" if only is None else f"{spans.value[at]:.3f}"
    said = f"layer {at}" if only is not None else f"{brief} layers, {no} not; layer {at} decides"
    if over is None:
        said += _twin(evidence, key, at)
    n = evidence.n(key, at)
    return Check(evidence.model, "", passed, *evidence.shown(*spans.at(at)), n, said, evidence.link, brief)


def _twin(evidence: Evidence, key: Key, layer: int) -> str:
    """How the layer differs from that of the untrained twin, in words; empty without one."""
    if evidence.twin is None:
        return ""
    try:
        value, low, high = evidence.less(evidence.twin, key, layer, layer)
    except NotMeasuredError:
        return ""
    return f"; less its untrained twin {value:+.3f} [{low:+.3f}, {high:+.3f}]"


def trend(evidence: Evidence, key: Key, *, rises: bool, least: float = NONE) -> Check:
    """Whether the curve rises (falls) with depth: Spearman's rho of layer and value is on that side of 0, and the
    change along the straight line through all layers at least `least`.

    Both intervals redraw each layer's value within its own, independently, which errs on the wide side since layers
    share their words. How often chance gives such an order, and the steps against it, are named.
    """
    spans = evidence.span(key)
    layers = np.arange(len(spans.value))
    if len(layers) < 3:
        raise NotMeasuredError(f"{key}: a trend needs 3 layers")
    spans.require(key, layers.tolist())
    sign, values = (1 if rises else -1), spans.value
    rho, change = spearman(values, layers), float(_change(values))
    rho_ends, change_ends = (rho, rho), (change, change)
    if not evidence.points:
        drawn = spans.redrawn(DRAWS)
        rho_ends = _middle(spearman_rows(drawn, layers))
        change_ends = _middle(_change(drawn))
    order, size = (side(sign, rho_ends, 0.0), side(sign, change_ends, least))
    passed = False if False in (order, size) else None if None in (order, size) else True
    against = [f"{a} to {b}" for a, b in pairwise(layers.tolist()) if sign * (values[b] - values[a]) < 0]
    said = [f"rho, {'against it: layer ' + ', '.join(against) if against else 'every step agrees'}"]
    said += [f"change {change:+.3f}" + ("" if evidence.points else f" [{change_ends[0]:+.3f}, {change_ends[1]:+.3f}]")]
    said += [chance(values, layers, sign)]
    if evidence.twin is not None and (twin := evidence.twin.curve(key)) is not None:
        said.append(f"the untrained twin's change {float(_change(twin)):+.3f}")
    n = evidence.n(key, int(layers[-1]))
    found = evidence.shown(rho, *rho_ends)
    return Check(evidence.model, "", passed, *found, n, "; ".join(said), evidence.link, f"{rho:.2f}")


def accompanied(evidence: Evidence, one: Key, other: Key) -> Check:
    """Whether two curves go against each other over layers: Spearman's rho is below 0, more than chance gives.

    Here layers are what is counted: at p < .05 (of all orders up to 7 layers, in either direction) it is decided.
    """
    a, b = evidence.span(one), evidence.span(other)
    layers = list(range(len(a.value)))
    if len(layers) < 3:
        raise NotMeasuredError(f"{one}: an association needs 3 layers")
    a.require(one, layers)
    b.require(other, layers)
    rho, p = spearman(a.value, b.value), p_of(a.value, b.value)
    ends = (rho, rho)
    if not evidence.points:
        ends = _middle(spearman_rows(a.redrawn(DRAWS), b.redrawn(DRAWS, part=1)))
    below = side(-1, ends, 0.0)
    passed = None if p >= 0.05 else below
    said = f"rho over {len(layers)} layers, {_p(p)}{'' if p < 0.05 else ': no more than chance gives'}"
    brief = f"{rho:.2f} ({_p(p)})"
    return Check(
        evidence.model, "", passed, *evidence.shown(rho, *ends), float(len(layers)), said, evidence.link, brief
    )


def below(
    one: Evidence, other: Evidence, key: Key, layers: tuple[int, int], within: float | None = None, where: str = ""
) -> Check:
    """Whether `one` lies below `other` in a curve, each at its layer (negative: from the last), or within +- `within`
    of it; the effect is one minus other. `where` names the place where it is no layer."""
    at = tuple(i % len(e.span(key).value) for e, i in zip((one, other), layers, strict=True))
    value, low, high = one.less(other, key, *at)
    ends = low, high
    if within is None:
        passed = side(-1, ends, 0.0)
    else:
        passed = True if max(map(abs, ends)) <= within else False if max(-ends[1], ends[0]) > within else None
    a, b = one.span(key).value[at[0]], other.span(key).value[at[1]]
    said = f"{where or f'layers {at[0]} and {at[1]}'}: {a:.3f} against {b:.3f} of {other.label or other.model}"
    n = one.n(key, at[0])
    return Check(one.model, "", passed, *one.shown(value, low, high), n, said, one.link, f"{value:+.3f}")


def side(sign: int, ends: tuple[float, float], bound: float) -> bool | None:
    """Whether an interval lies beyond a bound on the side of `sign`: True, False if all of it doesn't, None if open."""
    least, most = sorted((sign * ends[0], sign * ends[1]))
    return True if least > bound else False if most <= bound else None


def chance(x: np.ndarray, y: np.ndarray, sign: int) -> str:
    """How often chance alone gives an order as far on this side, in words: "chance gives as much in 1 of 6 orders"."""
    if len(x) > ORDERS:
        from scipy.stats import spearmanr

        p = float(spearmanr(x, y, alternative="greater" if sign > 0 else "less").pvalue)
        return f"chance gives as much with {_p(p)}"
    found = _orders(x, y)
    count = int((sign * found >= sign * spearman(x, y) - 1e-9).sum())
    return f"chance gives as much in {count} of {len(found)} orders"


def p_of(x: np.ndarray, y: np.ndarray) -> float:
    """How often chance alone gives an association as strong, in either direction, in [0, 1]."""
    if len(x) > ORDERS:
        from scipy.stats import spearmanr

        return float(spearmanr(x, y).pvalue)
    return float((np.abs(_orders(x, y)) >= abs(spearman(x, y)) - 1e-9).mean())


def _p(p: float) -> str:
    return f"p {p:.3f}" if p >= 0.0005 else "p < .001"


def _orders(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    every = np.array(list(permutations(x.tolist())))
    return spearman_rows(every, y)


def _change(values: np.ndarray) -> np.ndarray:
    """From the first layer to the last along the straight line (least squares) through values (..., layers): (...)."""
    x = np.linspace(-0.5, 0.5, values.shape[-1])
    return np.asarray(values @ x / (x @ x))


def _middle(drawn: np.ndarray) -> tuple[float, float]:
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(low), float(high)
