"""Trends and humps of curves over layers, against walks: layers are steps of one walk and not exchangeable.

A random walk of 13 layers correlates with depth at p < .05 in more than half of the cases by the usual test. Two kinds
of walks must go less far than a curve does:

- walks of the curve's own steps, each up or down at random: of the very same roughness, whatever the sizes of their
  steps. Exact for a walk whose steps are symmetric and independent, of any distribution (a sign-flip test; Fisher
  1935), and on the safe side for rougher levels (white noise, AR(1)).
- smooth walks, whose neighbouring steps go alike, as a residual stream's do: Gaussian steps with an autocorrelation of
  SMOOTHNESS. A dozen steps can't tell a slow wave from a trend, so that the smoothest null that is allowed for is taken
  whatever the curve's own smoothness, and Pearson's r compared, which of walks is hardly ever near 1.

The larger share counts. Tried and left: phase-randomised curves (Theiler et al. 1992; on a walk of 13 layers they let
37% pass, since a spectrum of 13 layers wraps round), and a smoothness estimated from the curve's own steps (Berger &
Boos 1994): more power for a rough line, less for a smooth one, none gained in sum.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import rankdata

from ctxexp.maths import spearman

MOST = 2048  # walks: all of them up to 13 layers
N_SMOOTH_WALKS, SMOOTHNESS = 4000, 0.8  # and the lag-1 autocorrelation of their steps
EQUAL = 1e-9  # correlations that differ by less are equal


def walks_of(curve: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Walks of a curve's own steps, each step up or down: all of them up to 13 layers, else MOST drawn ones.

    Args:
        curve: (n,) values by layer, all finite.
        rng: draws the walks of more than 13 layers.

    Returns:
        (walks, n) float64, the first the curve itself less its first value. The first step keeps its direction, since
        turning a whole walk round changes no correlation's size.
    """
    steps = np.diff(np.asarray(curve, np.float64))
    free = max(len(steps) - 1, 0)
    if 2**free <= MOST:
        is_down = (np.arange(2**free)[:, None] >> np.arange(free)) & 1
    else:
        is_down = rng.integers(0, 2, (MOST, free))
        is_down[0] = 0
    signs = np.concatenate([np.ones((len(is_down), min(len(steps), 1))), 1.0 - 2.0 * is_down], axis=1)
    return np.concatenate([np.zeros((len(is_down), 1)), np.cumsum(signs * steps, axis=1)], axis=1)


@lru_cache(maxsize=8)
def smooth_walks(n: int) -> np.ndarray:
    """(N_SMOOTH_WALKS, n) walks whose steps are a stationary AR(1) of SMOOTHNESS, less their mean, at norm 1."""
    steps = np.random.default_rng(n).normal(size=(N_SMOOTH_WALKS, max(n - 1, 0)))
    steps[:, :1] /= np.sqrt(1 - SMOOTHNESS**2)
    for i in range(1, n - 1):
        steps[:, i] += SMOOTHNESS * steps[:, i - 1]
    return _normalized(np.concatenate([np.zeros((N_SMOOTH_WALKS, 1)), np.cumsum(steps, axis=1)], axis=1))


def trend_p(curve: np.ndarray, rng: np.random.Generator) -> float:
    """How often a walk goes with depth as far as the curve does, in either direction.

    Args:
        curve: (n,) values by layer.
        rng: see `walks_of`.

    Returns:
        The larger of two shares, in [0, 1]: of walks of the curve's own steps whose Spearman's rho with depth is as far
        from 0, and of smooth walks whose Pearson's r is; NaN where the curve's is undefined. Three layers give at least
        1/2, seven 1/32, thirteen 1/2048.
    """
    curve, depth = np.asarray(curve, np.float64), np.arange(len(curve))
    rho = spearman(curve, depth)
    if not np.isfinite(rho):
        return float("nan")
    return max(_share(spearman_rows(walks_of(curve, rng), depth), rho), _smooth_share(curve, depth))


def spearman_rows(curves: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's rho (c,) of each of curves (c, n) with another (n,); NaN of one without differences."""
    a, b = (rankdata(values, axis=-1) - (len(other) + 1) / 2 for values in (curves, other))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(a @ b / np.sqrt((a * a).sum(axis=-1) * (b @ b)), -1.0, 1.0))


def hump_p(curve: np.ndarray, rng: np.random.Generator) -> float:
    """How often a walk has as clear a hump as the curve has: a middle layer above both ends.

    A hump's clearness is the least height of its top above the ends, as a share of the curve's whole range: 1 where
    both ends are equally low. Of walks through 13 layers four in ten have some hump, so that only an even one says
    anything. For a valley take the curve with its sign turned.

    Args:
        curve: (n,) values by layer, three at the least.
        rng: see `walks_of`.

    Returns:
        The larger of two shares, in [0, 1]: of walks of the curve's own steps, and of smooth walks.
    """
    curve = np.asarray(curve, np.float64)
    own = _clearness(curve[None])[0]
    walks = (walks_of(curve, rng), smooth_walks(len(curve)))
    return float(max((_clearness(w) >= own - EQUAL).mean() for w in walks))


def _clearness(curves: np.ndarray) -> np.ndarray:
    """(c,) of curves (c, n): at most 1, not above 0 without a hump."""
    height = curves[:, 1:-1].max(axis=1) - np.maximum(curves[:, 0], curves[:, -1])
    return np.asarray(height / np.maximum(np.ptp(curves, axis=1), np.finfo(np.float64).tiny))


def _share(rhos: np.ndarray, rho: float) -> float:
    """The share of correlations as far from 0; undefined ones are not."""
    return float((np.abs(np.nan_to_num(rhos)) >= abs(rho) - EQUAL).mean())


def _smooth_share(curve: np.ndarray, other: np.ndarray) -> float:
    """The share of smooth walks whose Pearson's r with the other curve is as far from 0 as the curve's own."""
    y = _normalized(np.asarray(other, np.float64))
    return float((np.abs(smooth_walks(len(curve)) @ y) >= abs(_normalized(curve) @ y) - EQUAL).mean())


def _normalized(curves: np.ndarray) -> np.ndarray:
    """Curves (..., n) less their mean, at norm 1."""
    centred = curves - curves.mean(axis=-1, keepdims=True)
    result: np.ndarray = centred / np.linalg.norm(centred, axis=-1, keepdims=True)
    return result
