"""What claims measure, against naive references: bounds of released figures, entropies, pairs, humps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ctxexp_papers.claims import pairs
from ctxexp_papers.claims.statistics.walks import hump_p
from ctxexp_papers.papers import queipo_2025
from ctxexp_papers.papers.ethayarajh_2019 import per_word

from ctxexp import Sentence
from ctxexp.results import Estimates

RNG = np.random.default_rng


def test_the_interval_of_a_mean_of_bounded_values_is_wilsons() -> None:
    """Values of -1 and 1 are the worst case, and their mean a share in disguise."""
    from scipy.stats import binomtest

    n = per_word.DRAWS
    for count in (400, 700, 990):
        reference = binomtest(count, n).proportion_ci(method="wilson")
        found = per_word.bounded_mean(np.array([2 * count / n - 1]))
        assert found.low[0] + per_word.ROUNDING == pytest.approx(2 * reference.low - 1, abs=1e-5)
        assert found.high[0] - per_word.ROUNDING == pytest.approx(2 * reference.high - 1, abs=1e-5)


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_the_released_baseline_lies_within_its_bound(shared: float) -> None:
    """The authors' draw: 1,000 vectors, 1,000 pairs of them with replacement; the truth is the shared direction's."""
    rng, held = RNG(0), 0
    for _ in range(60):
        signs = np.where(
            rng.random((per_word.DRAWS, 1)) < (1 + shared) / 2, 1.0, -1.0
        )  # vectors of width 1: cosines +-1
        one, other = rng.integers(0, per_word.DRAWS, (2, per_word.DRAWS))
        value = np.array([float((signs[one] * signs[other]).mean())])
        span = per_word.bounded_mean(value, per_word.PAIRED)
        held += bool(span.low[0] <= shared**2 <= span.high[0])
    assert held >= 55


def test_adjusted_and_corrected_intervals_hold_every_combination() -> None:
    raw, level = Estimates(*np.array([[0.6], [0.5], [0.7]])), Estimates(*np.array([[0.2], [0.1], [0.3]]))
    corrected, adjusted = per_word.corrected(raw, level), per_word.adjusted(raw, level)
    assert (corrected.low[0], corrected.high[0]) == pytest.approx(((0.5 - 0.3) / 0.7, (0.7 - 0.1) / 0.9))
    assert (adjusted.low[0], adjusted.high[0]) == pytest.approx((0.4 - np.hypot(0.1, 0.1), 0.4 + np.hypot(0.1, 0.1)))
    words = pd.DataFrame({"layer_0": [0.1, 0.2, np.nan, 0.3]})
    span = per_word.mean_of_words(words)
    assert span.value[0] == pytest.approx(0.2)
    assert span.high[0] == pytest.approx(0.2 + 1.959964 * 0.1 / np.sqrt(3) + per_word.ROUNDING)


def test_massive_rows_entropy_against_its_definition() -> None:
    rng = RNG(1)
    x = rng.normal(size=(7, 5))
    x[0] *= 50
    values = np.linalg.eigvalsh(x @ x.T / np.trace(x @ x.T))
    values = values[values > 1e-12]
    assert queipo_2025.entropy_of(queipo_2025.shares(x)) == pytest.approx(-(values * np.log(values)).sum())
    along = sum((row @ x[0]) ** 2 / (x[0] @ x[0]) for row in x[1:])
    rest = sum(row @ row for row in x[1:])
    size = x[0] @ x[0]
    assert queipo_2025.least_share(x) == pytest.approx((size + along) / (size + rest))
    assert queipo_2025.shares(x)[0] >= queipo_2025.least_share(x)
    assert queipo_2025.most_entropy(0.25, 4) == pytest.approx(np.log(4))
    tight = np.vstack([np.eye(4)[0] * 9, np.eye(4)[1:]])  # one direction, and equal rests: the bound is reached
    assert queipo_2025.entropy_of(queipo_2025.shares(tight)) == pytest.approx(
        queipo_2025.most_entropy(queipo_2025.least_share(tight), 4)
    )


def test_vectors_of_texts_are_means_of_their_words() -> None:
    texts = [Sentence.of(words) for words in (["a", "b", "c"], ["d"], ["e", "f"])]
    found = pairs.encode("random_words", texts)
    every = pairs.encode("random_words", [Sentence.of([word]) for word in "abcdef"]).means(0)
    np.testing.assert_allclose(found.means(0)[0], every[:3].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.means(0)[1:], [every[3], every[4:].mean(axis=0)], atol=1e-6)
    assert np.isnan(pairs.Encodings([np.zeros((1, 0, 4))], (0,)).means(0)).all()
    parts = pairs.parts_of(10, 3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(10))
    assert pairs.cosines(np.eye(2), np.ones((2, 2))) == pytest.approx([2**-0.5] * 2)


def test_without_a_folder_no_ratings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STS", raising=False)
    assert pairs.sentence_pairs(5) is None


@pytest.mark.parametrize("kind", ["noise", "walk", "smooth"])
def test_walks_without_a_hump_seldom_have_a_clear_one(kind: str) -> None:
    rng, clear, any_hump = RNG(7), 0, 0
    for _ in range(200):
        steps = rng.normal(size=13)
        if kind == "smooth":
            for i in range(1, 13):
                steps[i] += 0.8 * steps[i - 1]
        curve = steps if kind == "noise" else steps.cumsum()
        clear += hump_p(curve, rng) < 0.05
        any_hump += curve[1:-1].max() > max(curve[0], curve[-1])
    assert clear / 200 <= 0.09
    assert any_hump / 200 > 0.3
    bell = np.sin(np.linspace(0, np.pi, 13))
    assert hump_p(bell, rng) < 0.05
    assert hump_p(np.linspace(0, 1, 13), rng) > 0.2
