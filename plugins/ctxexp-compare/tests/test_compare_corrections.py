"""Corrections and thresholds of comparisons, a row each, with a right value by hand, by every permutation or by a
derivative; others are held by the naive references of their own tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from ctxexp_compare import Cka, InformationImbalance, Sample, within
from ctxexp_compare.cka import u_centred

STRATA = np.repeat(np.arange(8), 2)


def spread_over_drawn() -> float:
    """Of 40 pairs of spaces of noise, words twice: the closed spread over that of all 256 permutations, the mean."""
    rng, ratios = np.random.default_rng(0), []
    swaps = [np.arange(16) ^ np.repeat(swapped, 2) for swapped in product((0, 1), repeat=8)]
    for _ in range(40):
        a, b = (u_centred(rng.normal(size=(16, 6))).astype(float) for _ in range(2))
        every = [(a * b[np.ix_(order, order)]).sum() for order in swaps]
        ratios.append(within.spread(within.blocks(a, STRATA), within.blocks(b, STRATA), STRATA) / np.std(every))
    return float(np.mean(ratios))


def symmetric(seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(16, 16)) + 1
    return (x + x.T) * (1 - np.eye(16))


def mean_by_weight(weights: np.ndarray) -> float:
    """The mean within words of two matrices whose rows count as often as these weights say."""
    member = (STRATA[:, None] == np.arange(8)) * weights[:, None]
    pairs = np.outer(member.sum(axis=0), member.sum(axis=0)) - np.diag((member**2).sum(axis=0))
    a, b = (member.T @ symmetric(seed) @ member for seed in (1, 2))
    return float((a * b / pairs).sum())


def influence_by_weight() -> list[float]:
    """The derivative of that mean by the weight of each row."""
    step = 1e-5 * np.eye(16)
    return [(mean_by_weight(1 + one) - mean_by_weight(1 - one)) / 2e-5 for one in step]


def told_influence() -> np.ndarray:
    a, b = (within.blocks(symmetric(seed), STRATA) for seed in (1, 2))
    return within.mean_influence(a, b, STRATA)


def with_itself(measure: Any) -> tuple[float, float]:
    """A space with itself: what the measure says that it is, and what it is."""
    x, sample = np.random.default_rng(3).normal(size=(30, 4)), Sample(np.arange(30))
    side = measure.prepare_side(x, sample)
    return measure.self_score_at(30), measure.score(side, side).value


ROWS: dict[str, tuple[Callable[[], Any], Any, float]] = {
    "the spread of CKA within words is that of every permutation": (spread_over_drawn, 1, 0.04),
    "a row moves the mean within words by its derivative": (told_influence, influence_by_weight, 1e-6),
    "CKA of a space with itself": (lambda: with_itself(Cka())[0], lambda: with_itself(Cka())[1], 1e-6),
    "imbalance of a space with itself": (
        lambda: with_itself(InformationImbalance())[0],
        lambda: with_itself(InformationImbalance())[1],
        1e-6,
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right, tolerance = ROWS[row]
    expected = right() if callable(right) else right
    np.testing.assert_allclose(np.asarray(found(), float), np.asarray(expected, float), rtol=tolerance)
