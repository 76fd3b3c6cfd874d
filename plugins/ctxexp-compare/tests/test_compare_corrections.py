"""Corrections and thresholds of comparisons, a row each, with a right value by hand, by every permutation or by a
derivative; others are held by the naive references of their own tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from ctxexp_compare import Cka, InformationImbalance, Linearity, Sample, matrices, within
from ctxexp_compare.cka import u_centred
from ctxexp_compare.contract import NullDistribution
from ctxexp_compare.layer_choice import winner
from scipy.optimize import brentq
from scipy.stats import truncnorm

from ctxexp.maths import Resamples

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


def noise(seed: int, n: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def compared(measure: Any, seed: int, n: int = 30) -> tuple[Any, Any, Sample]:
    sample = Sample(np.arange(n))
    return measure.prepare_side(noise(3, n), sample), measure.prepare_side(noise(seed, n), sample), sample


def itself(measure: Any) -> float:
    a, b, _ = compared(measure, 3)
    return float(measure.score(a, b).value)


def free_sd() -> float:
    """Of CKA over all permutations of six rows, mean over pairs of spaces: it hangs on none."""
    found = []
    for seed in range(4, 8):
        a, b = u_centred(noise(3, 6)).astype(float), u_centred(noise(seed, 6)).astype(float)
        every = [(a * b[np.ix_(order, order)]).sum() for order in permutations(range(6))]
        found.append(np.std(every) / np.linalg.norm(a) / np.linalg.norm(b))
    return float(np.mean(found))


def chance(measure: Any, n: int) -> NullDistribution:
    return measure.chance(*compared(measure, 4, n), 3)  # type: ignore[no-any-return]


RESAMPLES = Resamples.of_clusters(np.arange(9), 10, np.random.default_rng(0))
MOVES = np.random.default_rng(5).normal(size=(2, 9))  # an occurrence's, of a value and of its chance level
MOVES -= MOVES.mean(axis=1, keepdims=True)


def adjusted(level: float) -> float:
    return matrices._adjusted(1.0, (1 + level) / 2, NullDistribution(level, np.nan), np.zeros(9), RESAMPLES)[0]


def adjusted_moves(sd: float) -> np.ndarray:
    """Of a value of 0.7 over a level of 0.2."""
    return matrices._adjusted(1.0, 0.7, NullDistribution(0.2, sd, MOVES[1]), MOVES[0], RESAMPLES)[1]


def moves_by_difference() -> np.ndarray:
    """What a small move of both terms changes."""
    up, down = ((0.7 + t * MOVES[0] - 0.2 - t * MOVES[1]) / (0.8 - t * MOVES[1]) for t in (1e-6, -1e-6))
    return (up - down) / 2e-6


def size(moves: np.ndarray) -> float:
    return float(np.linalg.norm(RESAMPLES.by_block(moves)))


MEANS = np.array([9.0, 3.0, 0.0, -1.0])


def gain(*, given: bool = False) -> tuple[float, float, float]:
    """Of the first over the third, chosen before the fourth; all independent, of variance 1."""
    rng = np.random.default_rng(0)
    found = winner.winner_gain(MEANS, np.eye(4), [0, 1], [2, 3], rng, rival_is_given=given)
    return found.low, found.value, found.high


def gain_by_hand(*, most: float) -> list[float]:
    """The true gains under which a normal gain of variance 2, known to be below `most` and within the simultaneous
    interval, is below 9 with the probabilities of the ends and of the middle."""
    width = np.sqrt(2) * winner.simultaneous_quantile(np.eye(4), [0, 1], [2, 3], np.random.default_rng(0), 0.005)

    def below(true: float) -> float:
        low, high = max(-width, -3 - true), min(width, most - true)  # the second would have won below 9 - 2 * 6 = -3
        return float(truncnorm.cdf((9 - true) / np.sqrt(2), low / np.sqrt(2), high / np.sqrt(2)))

    tail = (0.05 - 0.005) / (1 - 0.005) / 2
    return [
        brentq(lambda true, p=p: below(true) - p, 9 - 0.999 * width, 9 + 0.999 * width) for p in (1 - tail, 0.5, tail)
    ]


def regret(correlation: float) -> float:
    covariance = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    return winner.regret_bound(np.array([5.0, 4.9, 4.9]), covariance, [0, 1, 2], np.random.default_rng(0))[0]


def may_be_best() -> list[int]:
    return winner.regret_bound(np.array([9.0, 0.0, 1.0]), np.eye(3), [0, 1, 2], np.random.default_rng(0))[1]


def one_candidate() -> float:
    return winner.simultaneous_quantile(np.eye(1), [0], [], np.random.default_rng(0))


DUNNETT = 1.916  # the one-sided 95% quantile of the larger of two normals that correlate by 1/2
ROWS: dict[str, tuple[Callable[[], Any], Any, float]] = {
    "the spread of CKA within words is that of every permutation": (spread_over_drawn, 1, 0.04),
    "the spread of CKA over free permutations is that of every one": (lambda: chance(Cka(), 6).sd, free_sd, 1e-5),
    "a row moves the mean within words by its derivative": (told_influence, influence_by_weight, 1e-6),
    "CKA of a space with itself": (lambda: itself(Cka()), Cka().self_score_at(30), 1e-6),
    "imbalance of a space with itself": (
        lambda: InformationImbalance().self_score_at(30),
        lambda: itself(InformationImbalance()),
        1e-6,
    ),
    "freely permuted rows foretell nothing": (lambda: 1 + chance(Linearity(), 40).mean, 1, 0),
    "a room of a twentieth is adjusted": (lambda: adjusted(0.95), 0.5, 1e-6),
    "a room of rounding is not": (lambda: adjusted(1 - 5e-5), np.nan, 0),
    "an adjusted value is moved through both terms": (lambda: adjusted_moves(np.nan), moves_by_difference, 1e-6),
    "and by the spread of permuted rows": (
        lambda: size(adjusted_moves(0.4)),
        lambda: np.hypot(size(adjusted_moves(np.nan)), 0.4 / 0.8),
        1e-9,
    ),
    "a gain knows that winner and rival were chosen": (gain, lambda: gain_by_hand(most=9 + 2), 1e-4),
    "a rival that is given was not": (lambda: gain(given=True), lambda: gain_by_hand(most=np.inf), 1e-4),
    "a single comparison holds at 99.5%": (one_candidate, 2.807, 0.05),
    "regret holds for both others at once": (lambda: regret(0.0), DUNNETT * np.sqrt(2) - 0.1, 0.04),
    "what beats another but not the winner is not the best": (may_be_best, [0], 0),
    "regret of scores that go together": (lambda: regret(0.5), DUNNETT - 0.1, 0.04),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right, tolerance = ROWS[row]
    expected = right() if callable(right) else right
    np.testing.assert_allclose(np.asarray(found(), float), np.asarray(expected, float), rtol=tolerance)
