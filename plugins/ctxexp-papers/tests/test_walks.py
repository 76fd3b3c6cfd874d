"""Tests over layers hold their level in worlds without a trend, and find planted ones."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_papers.claims.walks import hump_p, trend_p, walks_of

RNG = np.random.default_rng
WORLDS = 400  # a share of 5% of them has a standard error of 1.1%


def worlds(kind: str, seed: int) -> np.ndarray:
    """(WORLDS, 13) random walks."""
    e = RNG(seed).normal(size=(WORLDS, 13))
    if kind.startswith("smooth"):
        return smooth(e, float(kind.split()[-1])).cumsum(axis=1)
    return (e * RNG(seed + 1).lognormal(0, 1.5, 13)).cumsum(axis=1)


def smooth(e: np.ndarray, phi: float) -> np.ndarray:
    """Steps whose neighbours go alike: a stationary AR(1) of each row's innovations."""
    steps = e.copy()
    steps[:, 0] /= np.sqrt(1 - phi**2)
    for i in range(1, e.shape[1]):
        steps[:, i] += phi * steps[:, i - 1]
    return steps


@pytest.mark.parametrize("kind", ["unequal steps", "smooth 0.8"])
def test_worlds_without_trend_give_at_most_7_percent(kind: str) -> None:
    rng = RNG(0)
    assert np.mean([trend_p(x, rng) < 0.05 for x in worlds(kind, 1)]) <= 0.07


def test_planted_trends_are_found_where_layers_are_many_enough() -> None:
    rng = RNG(3)
    line = np.linspace(0, 1, 13)
    assert trend_p(line, rng) == trend_p(-line, rng) == pytest.approx(1 / 2048)
    rough = [line + rng.normal(0, 0.03, 13) for _ in range(100)]
    assert np.mean([trend_p(x, rng) < 0.05 for x in rough]) > 0.9
    assert trend_p(line[:3], rng) == 0.5  # three layers decide nothing
    assert trend_p(np.linspace(0, 1, 31), rng) == pytest.approx(1 / 2048)


def test_long_walks_draw_each_direction_equally_often() -> None:
    curve = RNG(1).normal(size=16)
    walks = walks_of(curve, RNG(0))
    assert walks.shape == (2048, 16)
    np.testing.assert_allclose(walks[0], curve - curve[0])
    turned = np.diff(walks, axis=1) / np.diff(curve)
    np.testing.assert_allclose(np.abs(turned), 1)
    np.testing.assert_allclose(turned[:, 0], 1)  # the first step keeps its direction
    np.testing.assert_allclose(turned[:, 1:].mean(axis=0), 0, atol=0.1)  # 4.5 standard errors


def test_a_curve_that_does_not_change_has_no_p() -> None:
    assert np.isnan(trend_p(np.ones(13), RNG(0)))
    assert np.isnan(trend_p(np.array([1.0, 2.0]), RNG(0)))


@pytest.mark.parametrize("kind", ["unequal steps", "smooth 0.8"])
def test_walks_without_a_hump_seldom_have_a_clear_one(kind: str) -> None:
    rng, curves = RNG(7), worlds(kind, 7)
    clear = [hump_p(curve, rng) < 0.05 for curve in curves]
    any_hump = curves[:, 1:-1].max(axis=1) > np.maximum(curves[:, 0], curves[:, -1])
    assert np.mean(clear) <= 0.09
    assert any_hump.mean() > 0.3
    assert hump_p(np.sin(np.linspace(0, np.pi, 13)), rng) < 0.05
    assert hump_p(np.linspace(0, 1, 13), rng) > 0.2
