"""The influence of each use on contextuality is its derivative by the use's weight."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths.contextuality import Comparison, Uses, strata
from ctxexp.maths.loudness import unit_rows
from ctxexp.maths.word_mix import WordMix
from tests.maths.naive_weights import weighted_contextuality


def sample(first: int, places: int, n_words: int = 15) -> tuple[Uses, np.ndarray]:
    rng = np.random.default_rng(first)
    word, place = rng.integers(n_words, size=(30, places)).ravel(), np.tile(first + np.arange(places), 30)
    x = 1.5 * rng.normal(size=(n_words, 8))[word] + rng.normal(size=(word.size, 8)) + rng.normal(size=(99, 8))[place]
    mix = WordMix(weights="equal").of(np.bincount(word, minlength=n_words), word.size)
    near = rng.integers(4, size=word.size)
    uses = Uses(form=word, place=place, document=np.arange(word.size) // (2 * places), neighbours=near, mix=mix)
    return uses, unit_rows(x)


@pytest.mark.parametrize(("first", "places"), [(2, 4), (32, 5)])
def test_influence_is_the_derivative(first: int, places: int) -> None:
    uses, u = sample(first, places)
    stratum = strata(uses.place)
    result = Comparison(uses, stratum).measure(u, influence=True)
    even, step = np.ones(len(u)), 1e-4
    assert result.value == pytest.approx(weighted_contextuality(uses, u, stratum, even), abs=1e-9)
    for i in range(0, len(u), 17):
        more, less = (even + sign * step * (np.arange(len(u)) == i) for sign in (1, -1))
        ends = [weighted_contextuality(uses, u, stratum, weight) for weight in (more, less)]
        assert result.influence[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-8)


def test_influence_of_frequencies_is_the_derivative() -> None:
    """Of a quantity that is linear in the weights and shares of each band."""
    rng = np.random.default_rng(0)
    counts = np.geomspace(7, 1500, 60).round()
    defined, of_weight, of_share = np.ones(60, bool), rng.normal(size=(3, 60)), rng.normal(size=(3, 60))

    def quantity(counts: np.ndarray, total: float) -> np.ndarray:
        mixed = WordMix().of(counts, total)  # type: ignore[arg-type]
        weights, shares = mixed.by_band(defined), mixed.shares(defined)
        return (weights * of_weight + shares * of_share).sum(axis=1)  # type: ignore[no-any-return]

    found = WordMix().of(counts, 20_000).band_influence(defined, of_weight, of_share)
    for i in (0, 20, 45):
        half = 0.5 * (np.arange(60) == i)
        difference = quantity(counts + half, 20_000) - quantity(counts - half, 20_000)
        np.testing.assert_allclose(found.of_word[:, i], difference, rtol=0.1, atol=2e-3)
    difference = (quantity(counts, 20_010) - quantity(counts, 19_990)) / 20
    np.testing.assert_allclose(found.of_total, difference, rtol=0.05, atol=1e-6)
