"""What a finding may claim: changes beyond their interval, large enough to matter, and true of both halves of the text.

One rule for steps from layer to layer and from model to model: `claimed_steps`, `claimed_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.measuring.study import HALVES, PARTS
from ctxexp.report.differences import share_resamples
from ctxexp.report.findings.trend import certain_changes, layer_changes
from ctxexp.report.wording import UNITS_TO_ONE, measure_info, mix_mark, unit_label
from ctxexp.results.curves import OVER_WORDS
from ctxexp.results.values import LAYER, Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

LEAST = 0.02  # of a cosine or a share: a smaller change is none that a reader should act on


class Half(NamedTuple):
    """A curve in one half of the text."""

    values: np.ndarray  # (n_layers,)
    is_comparable: bool  # whether the half fills the bands that the text fills


def halves(results: Results, key: Key) -> list[Half]:
    """The curve in both halves of the text; empty for a measure that isn't measured there."""
    table = results.tables.get(PARTS)
    if table is None or key.place != LAYER or key.baseline:
        return []
    rows = table[(table.measure == key.measure) & (table.task == key.task) & (table.statistic == key.statistic)]
    filled = " ".join(str(int(each)) for each in results.info.mix.filled)
    curves = []
    for _, half in rows[rows.part.isin(HALVES)].groupby("part"):
        values = np.full(results.n_layers, np.nan)
        values[half.layer.to_numpy(int)] = half.value.to_numpy(float)
        curves.append(Half(values, bool((half.filled == filled).all())))
    return curves


@np.errstate(invalid="ignore")  # of infinite values no step is claimed
def claimed_steps(results: Results, key: Key) -> np.ndarray:
    """The signs (n_layers, n_layers) of the changes of a curve between layers that may be claimed, else 0."""
    estimates = interval_estimates(results, key)
    signs = layer_changes(estimates, results.replicates.get(key))
    of_halves = halves(results, key)
    if not all(half.is_comparable for half in of_halves) or is_too_short(results, key):
        return np.zeros_like(signs)
    steps = [np.sign(half.values[None, :] - half.values[:, None]) for half in of_halves]
    change = np.abs(estimates.value[None, :] - estimates.value[:, None])
    return _claimed(signs, change, steps, least(results, key))


@np.errstate(invalid="ignore")
def claimed_order(points: Sequence[tuple[Results, Key, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The values (n,) of curves at a layer each, and the signs (n, n) of their differences that may be claimed."""
    ends = np.array([[part[at] for part in interval_estimates(results, key)] for results, key, at in points]).T
    draws = [results.replicates[key][at] for results, key, at in points if key in results.replicates]
    is_paired = len({len(draw) for draw in draws}) == 1 and len(draws) == len(points)
    is_paired = is_paired and all(share_resamples(points[0][0], results) for results, _, _ in points)
    signs = certain_changes(Estimates(*ends), np.stack(draws) if is_paired else None)
    of_halves = [halves(results, key) for results, key, _ in points]
    mixes = [results.info.mix for results, key, _ in points if measure_info(results, key.measure).over in OVER_WORDS]
    same_mix = len({(mix.weights, mix.bands, mix.filled) for mix in mixes}) <= 1
    if not same_mix or not all(half.is_comparable for each in of_halves for half in each):
        return ends[0], np.zeros_like(signs)
    if any(is_too_short(results, key) for results, key, _ in points):
        return ends[0], np.zeros_like(signs)
    steps = []
    if all(len(each) == 2 for each in of_halves):
        for i in range(2):
            values = np.array([each[i].values[at] for each, (*_, at) in zip(of_halves, points, strict=True)])
            steps.append(np.sign(values[None, :] - values[:, None]))
    change = np.abs(ends[0][None, :] - ends[0][:, None])
    return ends[0], _claimed(signs, change, steps, least(points[0][0], points[0][1]))


def _claimed(signs: np.ndarray, change: np.ndarray, steps: Sequence[np.ndarray], least: float) -> np.ndarray:
    is_claimed = change >= least
    for step in steps:
        is_claimed &= step == signs
    result: np.ndarray = np.where(is_claimed, signs, 0)
    return result


def least(results: Results, key: Key) -> float:
    """The least change of a curve that is spoken of; 0 for units in which none is known."""
    return LEAST if key.name == "share_of_room" or unit_label([results], key.measure) in UNITS_TO_ONE else 0.0


def is_too_short(results: Results, key: Key) -> bool:
    """Whether a mean over words is of a text that fills no band: it would change with the amount of text."""
    mix = results.info.mix
    return bool(mix_mark(results, key.measure)) and not any(mix.filled)


def interval_estimates(results: Results, key: Key) -> Estimates:
    """The curve and its interval; the spread of a mean over seeds is none."""
    estimates = results.by_key[key]
    if not results.info.seeds:
        return estimates
    nothing = np.full(len(estimates.value), np.nan)
    return Estimates(estimates.value, nothing, nothing)


def opposite_steps(results: Results, key: Key) -> list[int]:
    """The layers at which `adjusted` moves against the claimed step of its share of the room from the layer before."""
    adjusted = results.by_key.get(key._replace(statistic="adjusted"))
    if key.statistic != "share_of_room" or adjusted is None:
        return []
    signs, layers = claimed_steps(results, key), np.flatnonzero(np.isfinite(results.by_key[key].value))
    moves = np.diff(adjusted.value[layers])
    steps = zip(layers[:-1].tolist(), layers[1:].tolist(), moves, strict=True)
    return [b for a, b, move in steps if signs[a, b] * np.sign(move) == -1]
