"""Trends: planted curves give their shape, noise gives none more often than the level allows."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.report.changes import certain_changes, claimed_legs, layer_changes
from ctxexp.results import Estimates
from ctxexp.results.finding import Leg

EXACT = 0.01  # half an interval, small beside the planted changes


def curve(values: list[float], half: float = EXACT) -> Estimates:
    y = np.array(values)
    return Estimates(y, y - half, y + half)


def legs_of(estimates: Estimates, replicates: np.ndarray | None = None) -> list[Leg]:
    return list(claimed_legs(estimates, layer_changes(estimates, replicates)))


@pytest.mark.parametrize(
    ("values", "legs"),
    [
        ([0.9, 0.7, 0.5, 0.3], [Leg(-1, 0, 3, False)]),
        ([0.1, 0.2, 0.6, 0.6], [Leg(1, 0, 2, False)]),
        ([0.9, 0.3, 0.3, 0.7], [Leg(-1, 0, 1, False), Leg(1, 1, 3, False)]),
        ([0.9, 0.302, 0.3, 0.301], [Leg(-1, 0, 2, False)]),  # which of the three is lowest isn't known
        ([0.0, 0.5, 0.2, 0.25], [Leg(1, 0, 1, False), Leg(-1, 1, 2, False)]),  # and a last step back
        ([0.9, 0.5, 0.7, 0.2], [Leg(-1, 0, 3, True)]),  # and back between
        ([0.5, 0.502, 0.498, 0.501], []),
        ([0.5, 0.5, 0.5, 0.5], []),
    ],
)
def test_planted_curves(values: list[float], legs: list[Leg]) -> None:
    assert legs_of(curve(values)) == legs
    mirrored = [Leg(-leg.sign, *(getattr(leg, n) for n in ("start", "end", "reverses"))) for leg in legs]
    assert legs_of(curve([-v for v in values])) == mirrored
    assert not legs_of(curve(values, half=0.5))  # the same curve of too little data


def test_gaps_single_layers_and_curves_without_interval() -> None:
    assert legs_of(curve([0.9, np.nan, 0.3, np.nan])) == [Leg(-1, 0, 2, False)]
    for values, half in (([np.nan, 0.4], EXACT), ([np.nan, np.nan], EXACT), ([0.9, 0.1], np.nan)):
        assert not legs_of(curve(values, half))


def test_the_changes_are_the_naive_ones() -> None:
    """Against loops over pairs, on curves with intervals of uneven ends."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=6)
    low, high = y - rng.uniform(0.1, 0.5, 6), y + rng.uniform(0.1, 0.5, 6)
    found = certain_changes(Estimates(y, low, high))
    widened = 2.93520 / 1.95996  # normal quantiles of 1 - .05 / 30 and .975
    for i in range(6):
        for j in range(6):
            upper, lower = (j, i) if y[j] > y[i] else (i, j)
            apart = y[upper] - widened * (y[upper] - low[upper]) > y[lower] + widened * (high[lower] - y[lower])
            assert found[i, j] == (np.sign(y[j] - y[i]) if apart else 0)


@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_noise_shows_a_change_in_at_most_one_of_twenty_curves(correlation: float) -> None:
    """Seven layers of one true value; layers' errors are independent, or nearly one error."""
    rng, claims, sims = np.random.default_rng(1), {"draws": 0, "intervals": 0}, 600
    covariance = np.full((7, 7), correlation) + (1 - correlation) * np.eye(7)
    for _ in range(sims):
        y, *draws = rng.multivariate_normal(np.zeros(7), covariance, 401)
        estimates, rows = Estimates(y, y - 1.96, y + 1.96), y[:, None] + np.array(draws).T
        claims["draws"] += bool(certain_changes(estimates, rows).any())
        claims["intervals"] += bool(certain_changes(estimates).any())
    assert 0.02 * sims < claims["draws"] < 0.09 * sims  # .05 but for the draws' own error, and that of so few curves
    assert claims["intervals"] <= 0.05 * sims


@pytest.mark.parametrize("error", [0.1, 1.0])
def test_a_step_at_the_least_is_claimed_in_at_most_one_of_twenty_texts(error: float) -> None:
    """However short the text: errors a tenth of the least step, and as large as it."""
    rng, least = np.random.default_rng(5), 0.02
    claims = 0
    for _ in range(400):
        y, *draws = np.array([0, least]) + rng.normal(scale=error * least, size=(401, 2))
        rows = y[:, None] + np.array(draws).T
        claims += bool(certain_changes(Estimates(y, y, y), rows, least).any())
    assert claims <= 0.05 * 400
