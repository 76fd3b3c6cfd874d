"""The smallest texts that can be measured, and what a level brings along."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from ctxexp import Baseline, Corpus, GroupMean, Occurrences
from ctxexp.baselines import ScoredGroups, builtin_baseline
from ctxexp.maths import Stream, mean_cosine
from ctxexp.measuring.baseline_levels import BaselineLevels
from ctxexp.results import Key
from tests.engine import Memory, contextual, measure, reader_of, shelve, small, world
from tests.shipped import (
    Anisotropy,
    IntraSentenceSimilarity,
    MaxExplainableVariance,
    OnePerSentence,
    SelfSimilarity,
    SizeMatched,
    Uniform,
    WordNorm,
)


@pytest.mark.parametrize(
    "baseline", [OnePerSentence(size=2), Uniform(size=2), OnePerSentence(exact=True), Uniform(exact=True)]
)
def test_two_occurrences_are_a_corpus(baseline: OnePerSentence | Uniform) -> None:
    """One pair: its cosine is the word's self-similarity, and the level, so that nothing is left of it."""
    corpus = Corpus.of("two", [["bank", "x"], ["bank", "y"]])
    shelf = shelve(corpus)
    store = Memory(shelf, [contextual(shelf, 1.0)])
    occurrences = Occurrences.of(shelf, corpus, min_contexts=2, keep=lambda word: word == "bank")
    cosine = float(mean_cosine(store.layers[0][occurrences.by_word.rows].astype(np.float64)))
    results = measure(
        store, occurrences, {"self_similarity": SelfSimilarity, "anisotropy": Anisotropy}, baseline, bootstrap=0
    )
    assert results.by_key[Key("self_similarity", "raw")].value == pytest.approx([cosine], abs=1e-6)
    assert results.by_key[Key("self_similarity", "baseline")].value == pytest.approx([cosine], abs=1e-6)
    assert results.by_key[Key("anisotropy", "mean_cosine")].value == pytest.approx([cosine], abs=1e-6)


def test_without_frequent_words_no_level_is_computed() -> None:
    """A baseline that gives each group its own level has nothing to give where there is no group."""
    store, occurrences = small(["a", "b"], ["c", "d"], ["e", "f"], min_contexts=2)
    assert not len(occurrences.by_word)
    results = measure(store, occurrences, {"self_similarity": SelfSimilarity}, SizeMatched(), bootstrap=10)
    assert results.by_key[Key("self_similarity", "n")].value.tolist() == [0]
    for statistic in ("raw", "adjusted"):
        assert np.isnan(results.by_key[Key("self_similarity", statistic)].value).all()


def test_a_size_matched_curve_weighs_the_groups_that_have_scores() -> None:
    store, occurrences, _ = world()
    metric = SelfSimilarity()
    baselines = BaselineLevels(occurrences, SizeMatched(), builtin_baseline, {"s": metric}, {"s": None}, seed=0)
    for layer in store.layers:
        reader = reader_of(layer, occurrences, block_bytes=1 << 20)
        baselines.observe_layer(reader, {"s": metric}, influence=False)
    scores, weights = np.ones((len(occurrences.by_word), 2)), np.arange(1.0, len(occurrences.by_word) + 1)
    scores[::3, 0] = np.nan
    values = baselines.values("s", ScoredGroups(scores, weights=weights))[""]
    for i, defined in enumerate(np.isfinite(scores).T):
        expected = np.average(values.by_group[defined, i], weights=weights[defined])
        assert values.curve.value[i] == pytest.approx(expected, rel=1e-9)


class LengthOfSample(WordNorm):
    """A measure without scores of groups that has a level of its own making."""

    def baseline_value(self, x: np.ndarray) -> float:
        return float(np.linalg.norm(x, axis=-1).mean())


@pytest.mark.parametrize("baseline", [OnePerSentence(size=40), SizeMatched(size=40)], ids=lambda b: b.name)
def test_a_measure_without_groups_scores_is_held_against_the_sample(baseline: Baseline) -> None:
    """Whatever the baseline gives to groups that have scores."""
    store, occurrences, _ = world()
    results = measure(store, occurrences, {"length": LengthOfSample, "bare": WordNorm}, baseline, seed=3, bootstrap=0)
    rows = next(iter(baseline.groups(occurrences, np.random.default_rng([3, Stream.BASELINE]))))
    level = np.array([float(np.linalg.norm(layer[rows], axis=-1).mean()) for layer in store.layers])
    raw = results.by_key[Key("length", "raw")].value
    np.testing.assert_allclose(results.by_key[Key("length", "baseline")].value, level, rtol=1e-6)
    np.testing.assert_allclose(results.by_key[Key("length", "adjusted")].value, raw - level, rtol=1e-4)
    assert Key("bare", "baseline") not in results.by_key


@pytest.mark.parametrize(
    ("texts", "idle"), [([["a"], ["b"], ["c"]], True), ([["a"], ["b"], ["c", "d"]], False), ([["a", "b"]] * 2, False)]
)
def test_sentences_of_one_word_are_said(texts: list[list[str]], idle: bool, caplog: pytest.LogCaptureFixture) -> None:
    store, occurrences = small(*texts)
    measure(store, occurrences, {"i": IntraSentenceSimilarity}, Uniform(size=2), bootstrap=0)
    assert bool(caplog.records) == idle


class OfMany(GroupMean):
    """How many rows a group has, where that is at least five."""

    over = "word"
    min_rows: ClassVar[int] = 5

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), float(x.shape[-2]))


@pytest.mark.parametrize(("size", "known"), [(4, False), (5, True), (6, True)])
def test_a_random_group_too_small_is_no_level(size: int, known: bool) -> None:
    store, occurrences, _ = world((1.0,))
    results = measure(store, occurrences, {"m": OfMany}, OnePerSentence(size=size), bootstrap=0)
    assert (Key("m", "baseline") in results.by_key) == known
    assert not known or results.by_key[Key("m", "baseline")].value.tolist() == [size]


def test_rounding_is_no_spread_of_the_smallest_random_group() -> None:
    store, occurrences, _ = world((1.0,))
    steps = np.random.default_rng(0).integers(-1, 2, store.layers[0].shape)
    store.layers[0] = (1 + 2.0**-8 * steps).astype(np.float32)
    metric = partial(MaxExplainableVariance, definition="centred", baselines=("run",))
    for eps, known in ((None, True), (2.0**-8, False)):
        results = measure(
            store, occurrences, {"m": metric}, OnePerSentence(size=metric().min_rows), eps=eps, bootstrap=0
        )
        assert (Key("m", "baseline") in results.by_key) == known
