"""Which changes along a curve its data can show: differences of layers that hold for all pairs of layers at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from ctxexp.results.values import Estimates

MIN_REPLICATES = 100  # of fewer, the 95% point of the largest of many differences is not known
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Leg:
    """A certain change of a curve between two layers."""

    sign: int  # 1: it rises, -1: it falls
    start: int
    end: int
    reverses: bool  # whether a change of the other sign is certain somewhere between


@dataclass(frozen=True)
class Trend:
    """The course of a curve: its defined layers, and the claimed changes along it, at most two."""

    layers: tuple[int, ...]
    has_interval: bool  # without one nothing is certain
    legs: tuple[Leg, ...] = ()


def trend(estimates: Estimates, signs: np.ndarray) -> Trend:
    """The course of a curve of values (n_layers,), by the signs (n_layers, n_layers) of the changes that are claimed.

    Of the lowest and the highest layer that one is the turn which lies farther from both ends together; a leg leads to
    it, another on from it to where it goes farthest, each only if the change between its ends is certain.
    """
    layers = np.flatnonzero(np.isfinite(estimates.value))
    y, low, _ = (part[layers] for part in estimates)
    names = tuple(layers.tolist())
    if not np.isfinite(low).any() or len(layers) < 2:
        return Trend(names, bool(np.isfinite(low).any()))
    signs = signs[np.ix_(layers, layers)]
    last = len(y) - 1
    extremes = int(y.argmin()), int(y.argmax())
    turn = max(extremes, key=lambda i: (abs(y[i] - y[0]) + abs(y[i] - y[last]), 0 < i < last))
    ends = [(a, b) for a, b in pairwise(sorted({0, turn, last})) if signs[a, b]]
    if not ends and signs.any():
        i, j = np.unravel_index(np.argmax(np.abs(np.triu(np.subtract.outer(y, y)) * signs)), signs.shape)
        ends = [(int(i), int(j))]
    return Trend(names, True, tuple(_leg(signs, names, a, _farthest(y, signs, a, b)) for a, b in ends))


def _farthest(y: np.ndarray, signs: np.ndarray, start: int, end: int) -> int:
    """The layer up to `end` that the change from `start` goes farthest to, where it is certain there too."""
    farthest = start + int(np.argmax(signs[start, end] * y[start : end + 1]))
    return farthest if signs[start, farthest] else end


def _leg(signs: np.ndarray, layers: tuple[int, ...], start: int, end: int) -> Leg:
    sign, within = int(signs[start, end]), np.triu(signs[start : end + 1, start : end + 1])
    return Leg(sign, layers[start], layers[end], bool((within == -sign).any()))


def layer_changes(estimates: Estimates, replicates: np.ndarray | None = None) -> np.ndarray:
    """The certain changes (n_layers, n_layers) between the layers of a curve (`certain_changes`); 0 where either layer
    is undefined: those count neither as values nor among the pairs."""
    n = len(estimates.value)
    layers = np.flatnonzero(np.isfinite(estimates.value))
    rows = None if replicates is None or len(replicates) != n else replicates[layers]
    signs = np.zeros((n, n), int)
    if len(layers):
        signs[np.ix_(layers, layers)] = certain_changes(Estimates(*(part[layers] for part in estimates)), rows)
    return signs


def certain_changes(estimates: Estimates, replicates: np.ndarray | None = None) -> np.ndarray:
    """The sign of value j less value i, (n, n), where the data make it certain; else 0.

    The family-wise level is 5%: with nothing but noise, a sign appears anywhere in one of twenty matrices. With
    replicates of the same resamples (n, r), a difference is certain beyond c of its own standard deviations, c being
    the 95% point of the largest of all pairs (the bootstrap's max-t; Romano and Wolf 2005). Without them it must exceed
    the sum of both intervals' halves, widened by Bonferroni's factor for so many pairs, which holds however the two are
    correlated.
    """
    y, low, high = estimates
    n = len(y)
    change = y[None, :] - y[:, None]
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
    is_certain = np.isfinite(bound) & (np.abs(change) > np.fmax(bound, rounding))
    signs: np.ndarray = np.where(is_certain, np.sign(change), 0).astype(int)
    return signs


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
