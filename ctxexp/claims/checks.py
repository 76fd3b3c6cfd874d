"""The shapes of a test: a bound in every layer, a trend over layers, a difference between models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ctxexp.claims.evidence import Evidence
from ctxexp.correlation import spearman

Z = 1.959964  # half-width of a 95% interval in standard errors
DRAWS = 2000


@dataclass(frozen=True)
class Check:
    """One test on one model: did it come out as claimed (None: it wasn't measured), with what effect.

    `low` and `high` are the effect's 95% interval, NaN where the evidence brings none (released figures). `said` is the
    effect in words, or why there is none.
    """

    model: str
    variant: str = ""
    passed: bool | None = None
    effect: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: float = float("nan")
    said: str = ""
    link: str = ""

    def under(self, variant: str) -> Check:
        return replace(self, variant=variant)


def missing(model: str, why: str) -> Check:
    return Check(model, said=why)


def every_layer(
    evidence: Evidence,
    key: str,
    *,
    above: float | None = None,
    below: float | None = None,
    within: float | None = None,
    first: int = 1,
    spared: int = 0,
    interval: bool = True,
) -> Check:
    """Whether the curve's interval lies above, below, or within +- a bound in all layers from `first` but `spared`.

    The effect is the layer nearest to breaking it (the worst after those spared). Without an interval (`interval`
    false) the value itself is taken; with one that wasn't computed, or where a layer has no value, nothing is decided.
    """
    curve, low, high = intervals(evidence, key, interval)
    if curve is None:
        return missing(evidence.model, f"no {key} in its runs")
    layers = np.arange(first, len(curve))
    if why := _undefined(curve, key, first):
        return missing(evidence.model, why)
    if not np.isfinite(low[layers]).all():
        return missing(evidence.model, f"{key} has no interval: run with bootstrap and baseline redraws")
    if above is not None:
        margins = low[layers] - above
    elif below is not None:
        margins = below - high[layers]
    else:
        assert within is not None
        margins = np.minimum(within - high[layers], within + low[layers])
    order = layers[np.argsort(margins, kind="stable")]
    worst = int(order[min(spared, len(order) - 1)])
    least = float(np.sort(margins)[min(spared, len(order) - 1)])
    said = f"nearest to the bound: layer {worst}"
    if spared:
        said += f" (spared: layer {', '.join(map(str, order[:spared].tolist()))})"
    measure = key.rpartition("/")[0]
    return Check(
        evidence.model, "", least > 0, *_spread(curve, low, high, worst, interval),
        evidence.n(measure, worst), said, evidence.link,
    )  # fmt: skip


def trend(evidence: Evidence, key: str, *, rises: bool, first: int = 0, interval: bool = True) -> Check:
    """Whether the curve rises (falls) with depth: Spearman's rho of layer and value, its interval on that side of 0.

    The interval redraws each layer's value within its own, independently, which errs on the wide side since layers
    share their words. Steps against the trend are named.
    """
    curve, low, high = intervals(evidence, key, interval)
    if curve is None:
        return missing(evidence.model, f"no {key} in its runs")
    layers = np.arange(first, len(curve))
    if len(layers) < 3:
        return missing(evidence.model, f"{key}: a trend needs 3 layers")
    if why := _undefined(curve, key, first):
        return missing(evidence.model, why)
    if not np.isfinite(low[layers]).all():
        return missing(evidence.model, f"{key} has no interval: run with bootstrap and baseline redraws")
    values, sign = curve[layers], 1 if rises else -1
    rho = spearman(values, layers)
    ends = (float("nan"), float("nan"))
    if interval:
        sd = (high[layers] - low[layers]) / (2 * Z)
        noisy = values + sd * np.random.default_rng(0).normal(size=(DRAWS, len(layers)))
        drawn = [spearman(each, layers) for each in noisy]
        ends = float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))
    passed = sign * rho > 0 and (not interval or min(sign * ends[0], sign * ends[1]) > 0)
    against = [f"{a} to {b}" for a, b in pairwise(layers.tolist()) if sign * (curve[b] - curve[a]) < 0]
    said = f"rho of layer and value; against it: layer {', '.join(against)}" if against else "rho; every step agrees"
    n = evidence.n(key.rpartition("/")[0], int(layers[-1]))
    return Check(evidence.model, "", bool(passed), float(rho), *ends, n, said, evidence.link)


def smaller(
    one: Evidence,
    other: Evidence,
    key: str,
    layers: tuple[Sequence[int] | int, Sequence[int] | int],
    *,
    by: float = 0.0,
    interval: bool = True,
) -> Check:
    """Whether `one` lies below `other` in a curve, at a layer or in the mean of some; the effect is one minus other.

    The interval adds both standard errors in squares; a mean of layers takes the mean of theirs, as if layers erred
    together. `by` is how far below it must be.
    """
    found = [_mean(evidence, key, at, interval) for evidence, at in zip((one, other), layers, strict=True)]
    for evidence, pair in zip((one, other), found, strict=True):
        if pair is None:
            return missing(one.model, f"no {key} with an interval in runs of {evidence.model}")
    (a, sa), (b, sb) = (pair for pair in found if pair is not None)
    half = Z * float(np.hypot(sa, sb)) if interval else float("nan")
    effect = a - b
    passed = (effect + half if interval else effect) < -by
    n = one.n(key.rpartition("/")[0], _indices(one, key, layers[0])[0])
    said = f"{a:.3f} against {b:.3f} of {other.label or other.model}"
    return Check(one.model, "", bool(passed), effect, effect - half, effect + half, n, said, one.link)


def intervals(evidence: Evidence, key: str, wanted: bool) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """A curve with the ends of its interval: NaN where it has none, the curve itself where none is wanted."""
    curve = evidence.curve(key)
    if curve is None:
        return None, np.empty(0), np.empty(0)
    if not wanted:
        return curve, curve, curve
    nothing = np.full(len(curve), np.nan)
    return curve, evidence.curves.get(f"{key}_ci_low", nothing), evidence.curves.get(f"{key}_ci_high", nothing)


def _undefined(curve: np.ndarray, key: str, first: int) -> str:
    """Which layers from `first` on have no value, in words; empty if all have."""
    holes = [i for i in range(first, len(curve)) if not np.isfinite(curve[i])]
    if not holes and first < len(curve):
        return ""
    return f"{key} is undefined in layer {', '.join(map(str, holes))}" if holes else f"{key} has no layer {first}"


def _spread(
    curve: np.ndarray, low: np.ndarray, high: np.ndarray, at: int, interval: bool
) -> tuple[float, float, float]:
    nan = float("nan")
    return (float(curve[at]), float(low[at]), float(high[at])) if interval else (float(curve[at]), nan, nan)


def _indices(evidence: Evidence, key: str, at: Sequence[int] | int) -> list[int]:
    """Layer numbers, negative ones counted from the last."""
    count = len(evidence.curves[key])
    return [i % count for i in ([at] if isinstance(at, int) else at) if -count <= i < count]


def _mean(evidence: Evidence, key: str, at: Sequence[int] | int, interval: bool) -> tuple[float, float] | None:
    """A curve's mean over layers and its standard error; None if the curve, the layer or its interval isn't there."""
    curve, low, high = intervals(evidence, key, interval)
    if curve is None:
        return None
    layers = _indices(evidence, key, at)
    if not layers:
        return None
    value, se = float(curve[layers].mean()), float(((high - low)[layers] / (2 * Z)).mean())
    return (value, se) if np.isfinite(value) and np.isfinite(se) else None
