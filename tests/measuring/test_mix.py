"""The reference mix of words: against the definition, its derivatives, and what the docs say of real vectors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import gamma

from ctxexp.errors import ConfigError
from ctxexp.maths.word_mix import WordMix

BANDS = (1 / 3000, 1 / 1000, 1 / 300, 1.0)


def planted(rng: np.random.Generator, total: int, *, words: int = 6000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words whose frequencies follow Zipf's law and whose scores fall with the logarithm of their frequency: true
    frequencies, counts in a text of so many words, scores."""
    frequency = 0.08 / (1 + np.arange(words))
    scores = 0.2 - 0.08 * np.log(frequency) + 0.05 * rng.normal(size=words)
    return frequency, rng.poisson(frequency * total), scores


def band_means(frequency: np.ndarray, scores: np.ndarray) -> float:
    at = np.digitize(frequency, BANDS[:-1])
    return float(np.mean([scores[at == band].mean() for band in range(1, len(BANDS))]))


def measured(counts: np.ndarray, total: int) -> tuple[Any, np.ndarray]:
    chosen = np.flatnonzero(counts >= 5)
    return WordMix().of(counts[chosen], total), chosen


def reference(counts: np.ndarray, total: int, scores: np.ndarray) -> float:
    """The definition word by word: posterior by quadrature, regression by least squares."""
    means = []
    posterior = gamma(counts[:, None] - 1, scale=1 / total)  # (words, 1)
    z = digamma(counts - 1) - np.log(total)
    for low, high in pairwise(BANDS):
        x = np.linspace(low, min(high, 0.2), 20_001)
        share = (posterior.cdf(high) - posterior.cdf(low))[:, 0]
        inside = np.trapezoid(np.log(x) * posterior.pdf(x), x, axis=1)
        slope = np.polyfit(z, scores, 1, w=np.sqrt(share))[0]
        means.append((share @ scores + slope * (inside.sum() - share @ z)) / share.sum())
    return float(np.mean(means))


def test_the_mean_is_the_definition() -> None:
    _, counts, scores = planted(np.random.default_rng(3), 6_000, words=400)
    mixed, chosen = measured(counts, 6_000)
    weights = mixed.weights(np.ones(len(chosen), bool))
    assert weights.sum() == pytest.approx(1)
    assert mixed.filled.all()
    assert weights @ scores[chosen] == pytest.approx(reference(counts[chosen], 6_000, scores[chosen]), abs=1e-3)


@pytest.mark.nightly
def test_the_mean_does_not_move_with_the_amount_of_text() -> None:
    errors, naive = {}, {}
    for total in (9_000, 16_000, 60_000, 300_000):
        mine, raw = [], []
        for seed in range(40):
            frequency, counts, scores = planted(np.random.default_rng([seed, total]), total)
            mixed, chosen = measured(counts, total)
            weights = mixed.weights(np.ones(len(chosen), bool))
            truth = band_means(frequency, scores)
            mine.append(weights @ scores[chosen] - truth)
            raw.append(scores[chosen].mean() - truth)
        errors[total], naive[total] = np.mean(mine), np.mean(raw)
    assert abs(errors.pop(9_000)) < 0.008  # of whose lowest band half of the words are in fewer than five sentences
    assert max(map(abs, errors.values())) < 0.004
    assert naive[300_000] - naive[9_000] > 0.1  # what equal weights do


def test_order_and_undefined_words() -> None:
    _, counts, scores = planted(np.random.default_rng(1), 16_000)
    mixed, chosen = measured(counts, 16_000)
    s, order = scores[chosen], np.random.default_rng(2).permutation(len(chosen))
    every = mixed.weights(np.ones(len(s), bool))
    other = WordMix().of(counts[chosen][order], 16_000).weights(np.ones(len(s), bool))
    np.testing.assert_allclose(other, every[order], rtol=1e-12)
    defined = np.arange(len(s)) % 3 > 0
    some = mixed.weights(defined)
    assert not some[~defined].any()
    assert some.sum() == pytest.approx(1)
    assert some @ s == pytest.approx(every @ s, abs=0.02)


@pytest.mark.parametrize("weights", ["bands", "occurrences"])
def test_influences_are_derivatives(weights: str) -> None:
    _, counts, scores = planted(np.random.default_rng(4), 16_000)
    chosen = np.flatnonzero(counts >= 5)
    c, s, mix = counts[chosen].astype(float), scores[chosen], WordMix(weights=weights)  # type: ignore[arg-type]

    def mean(counts: np.ndarray, total: float) -> float:
        mixed = mix.of(counts, total)  # type: ignore[arg-type]
        found = mixed.weights(np.ones(len(s), bool))
        return float(found @ s)

    influence = mix.of(c, 16_000).count_influence(s)
    for word in np.linspace(0, len(s) - 1, 9).astype(int).tolist():
        step = 0.5 * (np.arange(len(s)) == word)
        change = mean(c + step, 16_000) - mean(c - step, 16_000)
        assert influence.of_word[word] == pytest.approx(change, rel=0.05, abs=2e-6)
    change = (mean(c, 16_160) - mean(c, 15_840)) / 320
    assert influence.of_total == pytest.approx(change, rel=0.05, abs=1e-12)


def test_equal_weights_and_a_text_that_fills_no_band() -> None:
    counts = np.full(9, 7)
    assert WordMix(weights="equal").of(counts, 900).weights(counts > 0) is None
    short = WordMix().of(counts, 900)
    assert short.weights(counts > 0) is None
    assert not short.filled.any()
    assert not short.count_influence(np.ones(9)).of_word.any()


def test_a_text_says_how_much_it_lacks() -> None:
    frequency = 0.08 / (1 + np.arange(6000))
    full, half = (np.round(frequency * total).astype(int) for total in (20_000, 5_000))
    mix = WordMix()
    assert mix.missing_words(full, full, 20_000, 5) == 0
    wanted = mix.missing_words(half // 2, half // 2, 2_500, 5)
    enough = np.round(frequency * (2_500 + wanted)).astype(int)
    assert wanted > 0
    assert WordMix().of(enough[enough >= 5], 2_500 + wanted).filled.all()
    assert WordMix(weights="equal").missing_words(half, half, 5_000, 5) == 0


@pytest.mark.parametrize("bands", [(), (0.1,), (0.2, 0.1), (0.0, 0.1), (0.1, 2.0)])
def test_odd_bands_are_refused(bands: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=r"words\.bands"):
        WordMix(bands=bands)
