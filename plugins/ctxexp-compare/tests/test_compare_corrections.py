"""Corrections and thresholds of comparisons, a row each, with a right value by hand, by every permutation or by a
derivative; others are held by the naive references of their own tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ctxexp_compare import Cka, InformationImbalance, Linearity, Sample, linearity, matrices, within
from ctxexp_compare.cka import u_centred
from ctxexp_compare.contract import NullDistribution
from ctxexp_compare.layer_choice import choice, families, tasks, winner
from scipy.optimize import brentq
from scipy.stats import truncnorm

from ctxexp.maths import Resamples
from ctxexp.results import Estimates, Key

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


def alone_best() -> list[float]:
    """The regret of the winner, and what may be the best."""
    most, may = winner.regret_bound(np.array([9.0, 0.0, 1.0]), np.eye(3), [0, 1, 2], np.random.default_rng(0))
    return [most, *may]


def one_candidate() -> float:
    return winner.simultaneous_quantile(np.eye(1), [0], [], np.random.default_rng(0))


def squares_about_the_mean(size: np.ndarray) -> tuple[float, float]:
    """What draws of families say: the expected squares about the mean of all over its variance, and their degrees of
    freedom, where a family's tasks are one and where they are independent; the lesser of each."""
    rng, weight, shares, dfs = np.random.default_rng(0), size / size.sum(), [], []
    for variance in (np.ones(len(size)), 1 / size):
        drawn = rng.normal(size=(400_000, len(size))) * np.sqrt(variance)
        squares = np.square(weight * (drawn - (drawn @ weight)[:, None])).sum(axis=1)
        shares.append(squares.mean() / (weight**2 @ variance))
        dfs.append(2 * squares.mean() ** 2 / squares.var())
    return min(shares), min(dfs)


def told_variance(*, of_level: bool) -> float:
    """That of a mean over tasks by the design effect over the true one; 2,000 worlds of five families of three tasks
    that are the same, with a level and a curve of each family's own."""
    rng, told, found = np.random.default_rng(0), [], []
    for _ in range(2000):
        own = rng.normal(size=(5, 1)) + rng.normal(size=(5, 6))
        x = np.repeat(own, 3, axis=0)
        part = x.mean(axis=1, keepdims=True) if of_level else families.centre(x)
        single = np.square(part - part.mean(axis=0)).sum() / 14 / 15
        told.append(families.design_effect(x, [*"aaabbbcccdddeee"], of_level=of_level).factor * single)
        mean = (own.mean(axis=1, keepdims=True) if of_level else own - own.mean(axis=1, keepdims=True)).mean(axis=0)
        found.append(np.square(mean).sum())
    return float(np.mean(told) / np.mean(found))


def families_at(correlation: float) -> int:
    """How many are told of two pairs of tasks over 10,000 layers with a curve in common, the tasks of a pair as alike
    beyond it."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(2, 1, 10_000)) * np.sqrt(correlation)
    own = own + rng.normal(size=(2, 2, 10_000)) * np.sqrt(1 - correlation)
    x = own.reshape(4, -1) + 3 * rng.normal(size=10_000)
    return len(set(families.families_by_correlation(x)))


def effects(*, of_level: bool) -> float:
    """Of five families of three tasks with a level in common and a curve of each task's own."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(5, 1)), 3, axis=0) + rng.normal(size=(15, 2000))
    return families.design_effect(x, [*"aaabbbcccdddeee"], of_level=of_level).factor


def family_coverage() -> float:
    """How often a difference of two layers that is 0 lies in its interval by five families of three tasks, which
    correlate by .7; 2,000 worlds of six layers."""
    rng, names, inside = np.random.default_rng(0), [*"aaabbbcccdddeee"], 0
    for _ in range(2000):
        x = rng.normal(size=(5, 1, 6)) * np.sqrt(0.7) + rng.normal(size=(5, 3, 6)) * np.sqrt(0.3)
        x = x.reshape(15, 6)
        variance = np.var(x[:, 0] - x[:, 5], ddof=1) / 15
        reach = 1.96 * np.sqrt(variance * choice._variance_inflation(families.design_effect(x, names)))
        inside += abs((x[:, 0] - x[:, 5]).mean()) <= reach
    return inside / 2000


def opposite_tasks() -> float:
    x = np.random.default_rng(0).normal(size=(5, 6))
    return families.design_effect(np.concatenate([x, -x]), [*"abcdeabcde"]).factor


def loss_of_first_layer() -> float:
    """At the most: by 10 points, of a difference of variance 1 + 1 - 2 * 0.5."""
    covariance = np.array([[[1, 0.5], [0.5, 1]]])
    layers = (choice.Candidate(0), choice.Candidate(1))
    found = choice.choose(choice.ScoreTable("mine", ("a",), layers, np.array([[50.0, 60.0]]), covariance), loss=20).cut
    return found.high


# less the mean of four tasks, of which two pairs correlate by r each, a pair's correlate by (3r - 1) / (3 - r)
ALIKE = (1 + 3 * 0.3) / (3 + 0.3)  # for a correlation of 0.3


def item_spread() -> float:
    """The standard error of a score over two tasks whose items make variances of 1 and 4."""
    return choice._estimates(score_table(2, np.eye(3) * np.array([[[1.0]], [[4.0]]])), "auto", ())[2][0, 0]


def score_table(n: int, covariance: np.ndarray | None = None) -> choice.ScoreTable:
    scores = np.random.default_rng(1).normal(size=(n, 3))
    layers = tuple(map(choice.Candidate, range(3)))
    return choice.ScoreTable("mine", tuple(map(str, range(n))), layers, scores, covariance)


def task_spread() -> np.ndarray:
    """Of nine independent tasks: the covariance of means, for a normal interval to be Student's."""
    return choice._estimates(score_table(9), "tasks", ())[1] / (np.cov(score_table(9).scores.T) / 9)


def linear_moves() -> float:
    """What rows say of a held-out score's variance, over it as rows that were no row of training would say."""
    a, b, _ = compared(Linearity(), 4, 40)
    score, wrong, all_of = Linearity().score(a, b), [], []
    for fit, penalty in zip(a.fits[0], linearity._penalties(a, b.x), strict=True):
        loads, mean = linearity._loads(fit, b.x)
        aim = b.x[fit.split.tests[0]] - mean
        wrong.append(np.square(aim - (fit.along[0] * (linearity._shrinkage(fit.s, penalty) / fit.s)) @ loads).sum(1))
        all_of.append(np.square(aim).sum(axis=1))
    order = np.concatenate([fit.split.tests[0] for fit in a.fits[0]])
    plain = (np.concatenate(all_of) * (1 - score.value) - np.concatenate(wrong)) / np.concatenate(all_of).sum()
    return float(np.var(score.influence[order]) / np.var(plain))


CHAIN = np.random.default_rng(712).normal(size=(7, 6))  # which families they are depends on the kind of linkage


def together(number: Any) -> np.ndarray:
    return np.array(number)[:, None] == np.array(number)


def joined_by_hand() -> np.ndarray:
    """Tasks whose groups were joined, the most alike first, while these correlate by enough in the mean over pairs."""
    r, groups = np.corrcoef(families.centre(CHAIN)), [[i] for i in range(len(CHAIN))]
    while len(groups) > 1:
        mean, a, b = max((r[np.ix_(a, b)].mean(), a, b) for a, b in permutations(groups, 2))
        if mean < families.CORRELATION:
            break
        groups = [group for group in groups if group not in (a, b)] + [a + b]
    return together([next(i for i, group in enumerate(groups) if task in group) for task in range(len(CHAIN))])


DRAWS = np.random.default_rng(0).normal(size=(3, 50)).cumsum(axis=0)


def told_covariance() -> np.ndarray:
    """Of three layers' scores, one of whose draws has no value, in points."""
    key = Key("sts", "all")
    one = SimpleNamespace(
        by_key={key: Estimates(*np.zeros((3, 3)))},
        replicates={key: np.hstack([DRAWS, [[np.nan], [0.0], [0.0]]])},
        info=SimpleNamespace(model=SimpleNamespace(layers=())),
    )
    run = SimpleNamespace(keys={"a task": key}, points=100.0)
    return tasks._scores(run, "a task", [one])[1]


def covariance_by_hand() -> np.ndarray:
    moves = 100 * (DRAWS - DRAWS.mean(axis=1, keepdims=True))
    return moves @ moves.T / 49


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
    "what beats another but not the winner is not the best, and none is regretted": (alone_best, [0, 0], 0),
    "regret of scores that go together": (lambda: regret(0.5), DUNNETT - 0.1, 0.04),
    "squares about the mean of families of unlike size": (
        lambda: families._sandwich(np.array([6, 2, 2, 1])),
        lambda: squares_about_the_mean(np.array([6, 2, 2, 1])),
        0.01,
    ),
    "families of the same tasks: the variance of differences": (lambda: told_variance(of_level=False), 1, 0.02),
    "and of their level": (lambda: told_variance(of_level=True), 1, 0.05),
    "families of a level in common: of differences": (lambda: effects(of_level=False), 1, 0.1),
    "families of a level in common: of the level": (lambda: effects(of_level=True), 3, 0.3),
    "an interval over families holds what is right": (family_coverage, 0.95, 0.012),
    "tasks that even out are no more than independent ones": (opposite_tasks, 1, 0),
    "what a lower layer loses at the most": (loss_of_first_layer, 10 + 1.96, 0.005),
    "tasks a little less alike are no family": (lambda: families_at(ALIKE - 0.03), 0, 0),
    "a little more alike they are": (lambda: families_at(ALIKE + 0.03), 2, 0),
    "tasks are joined by the mean over pairs": (
        lambda: together(families.families_by_correlation(CHAIN)),
        joined_by_hand,
        0,
    ),
    "scores of one task go together as their draws do": (told_covariance, covariance_by_hand, 1e-9),
    "the error of a mean over two tasks by their items": (item_spread, 5 / 4, 1e-9),
    "nine tasks are few: Student's quantile": (task_spread, (2.3060 / 1.9600) ** 2 * np.ones((3, 3)), 1e-4),
    "maps share rows: a fifth held out": (linear_moves, 1 + 1 / (1 - 1 / linearity.FOLDS), 0.05),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right, tolerance = ROWS[row]
    expected = right() if callable(right) else right
    np.testing.assert_allclose(np.asarray(found(), float), np.asarray(expected, float), rtol=tolerance)
