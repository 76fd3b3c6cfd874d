"""Changes of curves that a finding may claim: beyond their interval, large enough to matter, and whichever way they are
measured: by each variant of the measure and, of means over words, in both halves of the text.

A change along a curve is a difference of layers that holds for all pairs of layers at once; differences between runs
and between layers have intervals of their own. One rule for steps from layer to layer and from model to model:
`claimed_steps`, `claimed_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.measuring.study import HALVES, HALVES_TABLE
from ctxexp.metrics.contextuality import VARIANTS
from ctxexp.report.wording import CONTEXTUALITY, UNITS_TO_ONE, unit_label
from ctxexp.results.finding import Leg
from ctxexp.results.results import AVERAGED, OVER_WORDS, mix_mark
from ctxexp.results.values import LAYER, Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

LEAST = 0.02  # of a cosine or a share: a smaller change is none that a reader should act on
MIN_REPLICATES = 100  # of fewer, the 95% point of the largest of many differences is not known
_Z = NormalDist().inv_cdf(0.975)


def halves(results: Results, key: Key) -> list[np.ndarray]:
    """The curve (n_layers,) in both halves of the text, of a mean over words, by the bands that both fill, or where
    there is none by all of a half's words. Empty for other measures."""
    table = results.tables.get(HALVES_TABLE)
    if table is None or key.place != LAYER or key.baseline or results.info.measure(key.measure).over not in AVERAGED:
        return []
    rows = table[(table.measure == key.measure) & (table.task == key.task) & (table.statistic == key.statistic)]
    curves = []
    for _, half in rows[rows.part.isin(HALVES)].groupby("part"):
        values = np.full(results.n_layers, np.nan)
        values[half.layer.to_numpy(int)] = half.value.to_numpy(float)
        curves.append(values)
    return curves


@np.errstate(invalid="ignore")  # of infinite values no step is claimed
def claimed_steps(results: Results, key: Key) -> np.ndarray:
    """The signs (n_layers, n_layers) of the changes of a curve between layers that may be claimed, else 0."""
    signs = layer_changes(interval_estimates(results, key), results.replicates.get(key), least(results, key))
    others = [results.by_key[other].value for name in VARIANTS if (other := _beside(key, name)) in results.by_key]
    steps = [np.sign(_changes(values)) for values in (*others, *halves(results, key))]
    return _signs_of_all(signs, steps)


@np.errstate(invalid="ignore")
def claimed_order(points: Sequence[tuple[Results, Key, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The values of curves at a layer each, and which of them lie above which for certain.

    A difference may be claimed where its interval, at 95% for all of them together, leaves out 0 and what is too small
    to act on, where the runs' texts fill the same bands of frequency, where the ranges of their variants don't cross,
    and where both halves of the text agree.

    Args:
        points: A run, one of its curves, and a layer, each.

    Returns:
        The values (n,), and the signs (n, n) of the j-th less the i-th; 0 where nothing may be claimed.

    Example:
        >>> from ctxexp.results import Results
        >>> from ctxexp.results.values import Values
        >>> values = Values()
        >>> for task, value in (("noun", 0.2), ("verb", 0.5)):
        ...     ends = (np.array([value + step]) for step in (0, -0.01, 0.01))
        ...     values.by_key[Key("self_similarity", "raw", task)] = Estimates(*ends)
        >>> run = Results.of(values)
        >>> values, order = claimed_order([(run, key, 0) for key in run.by_key])
        >>> values.tolist(), order.tolist()
        ([0.2, 0.5], [[0, 1], [-1, 0]])
    """
    ends = np.array([[part[at] for part in interval_estimates(results, key)] for results, key, at in points]).T
    draws = [results.replicates[key][at] for results, key, at in points if key in results.replicates]
    is_paired = len({len(draw) for draw in draws}) == 1 and len(draws) == len(points)
    is_paired = is_paired and all(points[0][0].info.shares_resamples(results.info) for results, _, _ in points)
    replicates = np.stack(draws) if is_paired else None
    signs = certain_changes(Estimates(*ends), replicates, least(points[0][0], points[0][1]))
    mixes = [
        (mix.weights, mix.bands, mix.filled, mix_mark(results, key.measure))
        for results, key, _ in points
        if results.info.measure(key.measure).over in OVER_WORDS and (mix := results.info.mix)
    ]
    if len(set(mixes)) > 1:
        return ends[0], np.zeros_like(signs)
    ranges = [variant_range(results, key, at) for results, key, at in points]
    low, high = (np.array(part)[:, None] for part in zip(*(each or (np.nan, np.nan) for each in ranges), strict=True))
    crosses = (low <= high.T) & (high >= low.T)
    steps = [np.where(crosses, 0, signs)]
    of_halves = [halves(results, key) for results, key, _ in points]
    if all(len(each) == 2 for each in of_halves):
        for i in range(2):
            values = np.array([each[i][at] for each, (*_, at) in zip(of_halves, points, strict=True)])
            steps.append(np.sign(_changes(values)))
    return ends[0], _signs_of_all(signs, steps)


def variant_range(results: Results, key: Key, at: int) -> tuple[float, float] | None:
    """The lowest and the highest of a value and its variants at a layer; None for a measure without any."""
    low, high = (results.by_key.get(_beside(key, end)) for end in ("lowest", "highest"))
    return (float(low.value[at]), float(high.value[at])) if low and high else None


def _beside(key: Key, statistic: str) -> Key:
    """The key of a curve beside a measure's value."""
    return key._replace(statistic=statistic if key.name == "raw" else "")


def _changes(values: np.ndarray) -> np.ndarray:
    """The j-th value less the i-th, (n, n)."""
    return values[None, :] - values[:, None]


def _signs_of_all(signs: np.ndarray, steps: Sequence[np.ndarray]) -> np.ndarray:
    """The signs of changes that all of these steps (NaN: undefined there) have."""
    is_claimed = np.ones(signs.shape, bool)
    for step in steps:
        is_claimed &= (step == signs) | np.isnan(step)
    return np.where(is_claimed, signs, 0)


def least(results: Results, key: Key) -> float:
    """The least change of a curve that is spoken of; 0 for units in which none is known."""
    units = (*UNITS_TO_ONE, CONTEXTUALITY)
    return LEAST if key.name == "share_of_room" or unit_label([results], key.measure) in units else 0.0


def interval_estimates(results: Results, key: Key) -> Estimates:
    """The curve with its interval; without one for a mean over seeds, whose spread is no interval."""
    estimates = results.by_key[key]
    if not results.info.seeds:
        return estimates
    nothing = np.full(len(estimates.value), np.nan)
    return Estimates(estimates.value, nothing, nothing)


def claimed_legs(estimates: Estimates, signs: np.ndarray) -> tuple[Leg, ...]:
    """The changes along a curve of values (n_layers,), at most two, by the signs (n_layers, n_layers) of those between
    layers that are claimed.

    The turn is the lowest or the highest layer, whichever differs more from both ends. One leg leads to it, a second
    on from it to where it goes farthest; each only if the change between its ends is claimed.
    """
    layers = np.flatnonzero(np.isfinite(estimates.value))
    y, names = estimates.value[layers], layers.tolist()
    signs = signs[np.ix_(layers, layers)]
    if not signs.any():
        return ()
    last = len(y) - 1
    extremes = int(y.argmin()), int(y.argmax())
    turn = max(extremes, key=lambda i: (abs(y[i] - y[0]) + abs(y[i] - y[last]), 0 < i < last))
    ends = [(a, b) for a, b in pairwise(sorted({0, turn, last})) if signs[a, b]]
    if not ends:
        i, j = np.unravel_index(np.argmax(np.abs(np.triu(np.subtract.outer(y, y)) * signs)), signs.shape)
        ends = [(int(i), int(j))]
    return tuple(_leg(signs, names, a, _farthest(y, signs, a, b)) for a, b in ends)


def _farthest(y: np.ndarray, signs: np.ndarray, start: int, end: int) -> int:
    """The layer up to `end` that the change from `start` goes farthest to, where it is certain there too."""
    farthest = start + int(np.argmax(signs[start, end] * y[start : end + 1]))
    return farthest if signs[start, farthest] else end


def _leg(signs: np.ndarray, layers: Sequence[int], start: int, end: int) -> Leg:
    sign, within = int(signs[start, end]), np.triu(signs[start : end + 1, start : end + 1])
    return Leg(sign, layers[start], layers[end], bool((within == -sign).any()))


def layer_changes(estimates: Estimates, replicates: np.ndarray | None = None, least: float = 0.0) -> np.ndarray:
    """The certain changes (n_layers, n_layers) between the layers of a curve (`certain_changes`); 0 where either layer
    is undefined: those count neither as values nor among the pairs."""
    n = len(estimates.value)
    layers = np.flatnonzero(np.isfinite(estimates.value))
    rows = None if replicates is None or len(replicates) != n else replicates[layers]
    signs = np.zeros((n, n), int)
    if len(layers):
        signs[np.ix_(layers, layers)] = certain_changes(Estimates(*(part[layers] for part in estimates)), rows, least)
    return signs


def certain_changes(estimates: Estimates, replicates: np.ndarray | None = None, least: float = 0.0) -> np.ndarray:
    """The sign of value j less value i, (n, n), where the data make it certain that they differ by over `least`; else
    0.

    The family-wise level is 5%: where no two differ by more, a sign appears anywhere in one of twenty matrices, however
    small the text is. With replicates of the same resamples (n, r), a difference is certain beyond c of its own
    standard deviations, c being the 95% point of the largest of all pairs (the bootstrap's max-t; Romano and Wolf
    2005). Without them it must exceed the sum of both intervals' halves, widened by Bonferroni's factor for so many
    pairs, which holds however the two are correlated.
    """
    y, low, high = estimates
    n = len(y)
    change = _changes(y)
    draws = np.empty((n, 0)) if replicates is None else replicates.astype(np.float64)
    defined: np.ndarray = np.asarray(np.isfinite(draws).any(axis=1))
    draws = draws[:, np.isfinite(draws[defined]).all(axis=0)]
    if draws.shape[1] >= MIN_REPLICATES:
        bound = _max_t_bounds(draws, defined)
    else:
        factor = NormalDist().inv_cdf(1 - 0.05 / max(n * (n - 1), 2)) / _Z
        below, above = y - low, high - y
        rise, fall = below[None, :] + above[:, None], above[None, :] + below[:, None]
        bound = factor * np.where(change > 0, rise, fall)
    rounding = 1e-6 * np.abs(y).max()
    is_certain = np.isfinite(bound) & (np.abs(change) > np.fmax(bound, rounding) + least)
    return np.where(is_certain, np.sign(change), 0).astype(int)


def _max_t_bounds(draws: np.ndarray, defined: np.ndarray) -> np.ndarray:
    """The bounds (n, n) that the differences of n curves' points with draws (n, r) exceed if certain; NaN: unknown."""
    n = len(draws)
    i, j = np.triu_indices(n, 1)
    differences = draws[j] - draws[i]
    sd = differences.std(axis=1, ddof=1)
    varies = sd > 1e-9 * np.nanmax(np.abs(draws[defined]), initial=1e-300)
    distances = np.abs(differences - differences.mean(axis=1, keepdims=True))[varies] / sd[varies, None]
    c = max(float(np.percentile(distances.max(axis=0), 95)), _Z) if varies.any() else _Z
    bound = np.zeros((n, n))
    bound[i, j] = bound[j, i] = c * sd
    return bound
