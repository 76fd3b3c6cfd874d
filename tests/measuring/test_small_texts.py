"""The smallest texts that can be measured, and what a level brings along."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from ctxexp import Corpus, GroupMean, Occurrences
from ctxexp.maths import Stream, mean_cosine
from ctxexp.results import Key
from tests.engine import Memory, contextual, measure, shelve, world
from tests.shipped import (
    Anisotropy,
    MaxExplainableVariance,
    OnePerSentence,
    SelfSimilarity,
    SizeMatched,
    Uniform,
    WordNorm,
)


@pytest.mark.parametrize("baseline", [OnePerSentence(size=2), Uniform(exact=True)])
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


class LengthOfSample(WordNorm):
    """A measure without scores of groups that has a level of its own making."""

    def baseline_value(self, x: np.ndarray) -> float:
        return float(np.linalg.norm(x, axis=-1).mean())


def test_a_measure_without_groups_scores_is_held_against_the_sample() -> None:
    """Whatever the baseline gives to groups that have scores."""
    store, occurrences, _ = world()
    baseline = SizeMatched(size=40)
    results = measure(store, occurrences, {"length": LengthOfSample, "bare": WordNorm}, baseline, seed=3, bootstrap=0)
    rows = next(iter(baseline.groups(occurrences, np.random.default_rng([3, Stream.BASELINE]))))
    level = np.array([float(np.linalg.norm(layer[rows], axis=-1).mean()) for layer in store.layers])
    raw = results.by_key[Key("length", "raw")].value
    np.testing.assert_allclose(results.by_key[Key("length", "baseline")].value, level, rtol=1e-6)
    np.testing.assert_allclose(results.by_key[Key("length", "adjusted")].value, raw - level, rtol=1e-4)
    assert Key("bare", "baseline") not in results.by_key


class OfMany(GroupMean):
    """How many rows a group has, where that is at least five."""

    over = "word"
    min_rows: ClassVar[int] = 5

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), float(x.shape[-2]))


@pytest.mark.parametrize(("size", "known"), [(4, False), (5, True)])
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
