"""The shared statistics hold their level in worlds without an effect, find planted ones, and equal naive references."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_papers.claims.statistics.best_layer import best_layer_gain
from ctxexp_papers.claims.statistics.control import excess
from ctxexp_papers.claims.statistics.paired import group_difference, paired_difference

RNG = np.random.default_rng
WORLDS = 300  # a share of 5% of them has a standard error of 1.3%


def gain(scores: np.ndarray, *, both_ends: bool, seed: int = 0):  # type: ignore[no-untyped-def]
    rivals = (0, scores.shape[1] - 1) if both_ends else (scores.shape[1] - 1,)
    return best_layer_gain(scores, rivals=rivals, rng=RNG(seed), resamples=400)


@pytest.mark.parametrize("both_ends", [False, True])
def test_layers_of_equal_truth_have_no_best(both_ends: bool) -> None:
    rng, decided, naive = RNG(1), 0, 0
    for _ in range(WORLDS):
        found = gain(rng.normal(size=(32, 13)), both_ends=both_ends)
        decided += found.passed is not None
        naive += found.low > 0 or found.high < 0
    assert decided / WORLDS <= 0.07
    assert naive / WORLDS > 0.15  # the held-out gains' own interval errs as often as this


def test_the_best_layer_is_found_and_held_out() -> None:
    rng = RNG(2)
    for _ in range(20):
        noise = rng.normal(size=(32, 13))
        peak = (np.arange(13) == 6) * 3.0
        assert gain(noise + peak, both_ends=True).passed is True
        assert gain(noise + peak, both_ends=True).layers[0] == 6
        assert gain(noise + (np.arange(13) == 0) * 3.0, both_ends=True).passed is False
        assert gain(noise + (np.arange(13) == 0) * 3.0, both_ends=False).passed is None
    scores = rng.normal(size=(9, 6))
    by_hand = []
    for i in range(9):
        rest = np.delete(scores, i, axis=0).mean(axis=0)
        best = 1 + int(np.argmax(rest[1:5]))
        by_hand.append(scores[i, best] - scores[i, [0, 5][int(rest[5] > rest[0])]])
    assert gain(scores, both_ends=True).by_task == pytest.approx(by_hand)


@pytest.mark.parametrize("scores", [np.zeros((7, 5)), np.zeros((9, 2)), np.full((9, 5), np.nan)])
def test_too_little_for_a_best_layer_is_said(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected finite scores of 8 tasks"):
        gain(scores, both_ends=False)


def test_words_count_once_however_often_they_occur() -> None:
    """Occurrences of a word go together: without clusters no effect is called one in far more than 5%."""
    rng, by_word, by_row = RNG(4), 0, 0
    for _ in range(WORLDS):
        counts = rng.integers(2, 30, 40)
        words = np.repeat(np.arange(40), counts)
        values = np.repeat(rng.normal(size=40), counts) + 0.3 * rng.normal(size=counts.sum())
        by_word += paired_difference(values, clusters=list(words)).above() is True
        by_word += paired_difference(-values, clusters=list(words)).above() is True
        by_row += abs(values.mean()) > 1.96 * values.std() / len(values) ** 0.5
    assert by_word / WORLDS <= 0.07
    assert by_row / WORLDS > 0.4


def test_differences_equal_scipys() -> None:
    from scipy.stats import ttest_ind, ttest_rel

    rng = RNG(5)
    a, b = rng.normal(size=20), rng.normal(0.5, 2, 20)
    span, reference = paired_difference(a, b), ttest_rel(a, b).confidence_interval()
    assert (span.low, span.high) == pytest.approx((reference.low, reference.high))
    c = np.append(b[:9], np.nan)
    span, reference = group_difference(a, c), ttest_ind(a, b[:9], equal_var=False).confidence_interval()
    assert (span.low, span.high, span.n) == pytest.approx((reference.low, reference.high, 9))
    wide = paired_difference(a, b, ways=10)
    assert wide.low < paired_difference(a, b).low
    with pytest.raises(ValueError, match="5 units at the least"):
        paired_difference(np.arange(4.0))
    with pytest.raises(ValueError, match="a cluster a unit"):
        paired_difference(a, b, clusters=["x"])


def test_what_an_untrained_network_shows_too_is_not_learned() -> None:
    rng, learned = RNG(6), 0
    for _ in range(WORLDS):
        word = rng.normal(1.0, 0.3, 60)  # an effect that both have
        learned += excess(word + rng.normal(0, 0.2, 60), word + rng.normal(0, 0.2, 60)).passed is True
    assert learned / WORLDS <= 0.07
    effect = rng.normal(1.0, 0.3, 60)
    assert excess(effect, effect - 0.5 + rng.normal(0, 0.2, 60)).passed is True
    assert excess(effect, effect + 0.5 + rng.normal(0, 0.2, 60)).passed is False
    assert excess(effect - 2, effect - 3 + rng.normal(0, 0.1, 60)).passed is False  # no effect to be learned
    assert excess(effect, effect + rng.normal(0, 0.2, 60)).passed in (None, False)
