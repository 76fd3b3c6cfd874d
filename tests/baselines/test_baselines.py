"""Random groups: from where, how many, how their chance level settles; twins of like frequency and place."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ctxexp import Corpus, Occurrences
from ctxexp.errors import ConfigError
from ctxexp.matched_baselines import bands, strata_baseline
from ctxexp.maths.resampling import Clusters
from ctxexp.occurrences import Groups
from tests.composed import composed
from tests.measuring_helpers import row_index_of
from tests.shipped import OnePerSentence, SizeMatched, Uniform


def index(n_sentences: int, *, longest: int = 9, repeat: int = 1) -> tuple[Occurrences, np.ndarray]:
    """A corpus of distinct sentences, and which stored sentence each row is in."""
    rng = np.random.default_rng(0)
    sentences = [
        [f"s{i}", *(f"w{j}" for j in rng.integers(0, 50, rng.integers(0, longest)))] for i in range(n_sentences)
    ]
    corpus = Corpus.of("random", sentences * repeat)
    row_index = row_index_of(corpus)
    return Occurrences.of(row_index, corpus), np.repeat(np.arange(n_sentences), np.diff(row_index.offsets))


def test_one_per_sentence_takes_distinct_sentences_words() -> None:
    occurrences, sentence = index(300, repeat=2)
    groups = list(OnePerSentence(size=100, redraws=3).groups(occurrences, np.random.default_rng(0)))
    assert [len(g) for g in groups] == [100] * 4
    for rows in groups:
        assert len(set(sentence[rows].tolist())) == 100
    assert not np.array_equal(groups[0], groups[1])


def test_one_per_sentence_and_uniform_weigh_what_they_name() -> None:
    corpus = Corpus.of(
        "two lengths", [[f"short{i}"] for i in range(40)] + [[f"l{i}x{j}" for j in range(9)] for i in range(40)]
    )
    occurrences = Occurrences.of(row_index_of(corpus), corpus)
    one = np.concatenate(list(OnePerSentence(size=20, redraws=200).groups(occurrences, np.random.default_rng(0))))
    flat = np.concatenate(list(Uniform(size=20, redraws=200).groups(occurrences, np.random.default_rng(0))))
    assert (one < 40).mean() == pytest.approx(0.5, abs=0.03)  # the store holds the 40 short ones first
    assert (flat < 40).mean() == pytest.approx(0.1, abs=0.03)


def test_the_least_sample_is_one_pair(caplog: pytest.LogCaptureFixture) -> None:
    occurrences, _ = index(2)
    for baseline in (OnePerSentence(size=2, redraws=0), SizeMatched(size=2, redraws=0, draws=2, exact=2, largest=2)):
        (rows,) = baseline.groups(occurrences, np.random.default_rng(0))
        assert len(rows) == 2
    assert not caplog.records  # nothing is missing where all is taken


def test_matched_groups_have_the_sizes_asked_for() -> None:
    occurrences, sentence = index(400)
    counts = np.array([2, 2, 5, 6, 40, 55, 300, 900])
    matched = SizeMatched(draws=20).draw(counts, occurrences, np.random.default_rng(0))
    assert {2, 5, 6, 900} <= set(matched.sizes.tolist())  # small ones exactly, and the largest
    for size, draws in zip(matched.sizes.tolist(), matched.draws, strict=True):
        assert draws.shape[1] == size
        assert 2 <= len(draws) <= 20
        for rows in draws:
            assert len(set(rows.tolist())) == size
            assert size > 400 or len(set(sentence[rows].tolist())) == size  # one word a sentence where there are enough


def test_the_ladder_has_small_sizes_and_a_ratio_above() -> None:
    sizes = np.array([2, 5, 12, 13, 40, 40, 999])
    assert SizeMatched(ratio=2).sizes_to_draw(sizes).tolist() == [2, 5, 12, 13, 26, 52, 104, 208, 416, 832, 999]
    assert SizeMatched(ratio=2, largest=100).sizes_to_draw(sizes).tolist() == [2, 5, 12, 13, 26, 52, 100]
    assert SizeMatched(ratio=1.01).sizes_to_draw(np.array([1, 13, 17])).tolist() == [2, 13, 14, 15, 16, 17]
    assert SizeMatched().sizes_to_draw(np.array([3, 12])).tolist() == [3, 12]


def test_larger_groups_are_drawn_less_often_from_distinct_sentences() -> None:
    occurrences, sentence = index(60)
    matched = SizeMatched(draws=100).draw(np.array([4, 12, 60, 61, 240]), occurrences, np.random.default_rng(0))
    numbers = {size: len(draws) for size, draws in zip(matched.sizes.tolist(), matched.draws, strict=True)}
    expected = {size: max(2, min(100, int(100 * (12 / size) ** 1.5))) for size in numbers}
    assert numbers == expected
    assert min(numbers.values()) < 3 < numbers[60] < numbers[12] == numbers[4] == 100
    (most,) = (draws for size, draws in zip(matched.sizes.tolist(), matched.draws, strict=True) if size == 60)
    assert all(len(set(sentence[rows].tolist())) == 60 for rows in most)


def test_matched_levels_are_read_between_the_rungs() -> None:
    """Exact for a + b / n, flat beyond the last rung."""
    occurrences, _ = index(400)
    counts = np.unique(np.random.default_rng(0).integers(2, 350, 60))
    matched = SizeMatched(largest=200).draw(counts, occurrences, np.random.default_rng(0))
    assert len(matched.sizes) < len(counts)
    weights = matched.weights(counts)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(matched.weights(matched.sizes), np.eye(len(matched.sizes)), atol=1e-12)
    np.testing.assert_allclose(weights @ (0.3 + 2 / matched.sizes), 0.3 + 2 / np.minimum(counts, 200))


def test_one_sentence_is_too_few() -> None:
    with pytest.raises(ConfigError, match="the baseline needs at least 2 distinct sentences, the corpus has 1"):
        next(OnePerSentence().groups(index(1)[0], np.random.default_rng(0)))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_no_word_rules_its_band(share: float) -> None:
    counts = np.random.default_rng(1).zipf(1.4, 3000).clip(max=5000)
    band = bands(counts, share)
    assert band.max() > 2
    for b in range(band.max() + 1):
        inside = counts[band == b]
        assert inside.max() <= share * inside.sum()
        assert b == 0 or inside.max() <= counts[band == b - 1].min()
    assert bands(np.array([9, 1, 1]), 0.2).tolist() == [0, 0, 0]  # no band would do: one is all there is


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("position_matched baseline.twins=0", r"baseline\.twins=0: expected at least 1"),
        ("frequency_matched baseline.share=1.5", r"baseline\.share=1\.5: expected at most 1"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed(*f"baseline={words}".split())


def test_the_mean_level_and_its_influence_weigh_groups() -> None:
    """Both are linear in the weights: those of one group alone add up to those of all."""
    rng = np.random.default_rng(0)
    x, strata = rng.normal(size=(60, 8)) + 1, rng.integers(0, 3, 60)
    rows, starts = np.arange(60), np.array([0, 4, 10, 30])
    clusters = Clusters("sentence", 20, np.arange(20), rows // 3)
    occurrences = SimpleNamespace(clusters=clusters)
    groups = Groups(["a", "b", "c"], starts, rng.permutation(60)[:30])
    weights = np.array([0.5, 0.2, 0.3])
    alone = [
        strata_baseline(x.__getitem__, occurrences, groups.subset(np.array([i])), rows, strata).influence
        for i in range(3)
    ]
    for given, w in ((weights, weights), (None, np.full(3, 1 / 3))):
        made = strata_baseline(x.__getitem__, occurrences, groups, rows, strata, given)
        np.testing.assert_allclose(made.influence, w @ np.stack(alone), atol=1e-6)
        assert np.abs(made.influence).max() > 1e-3
