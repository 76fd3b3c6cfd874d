"""Which rows and groups move a mean or its baseline: clusters in intervals, weights, the words of a sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from ctxexp import Baseline, Occurrences
from ctxexp.maths import Resamples
from ctxexp.maths.word_mix import WordMix
from ctxexp.measuring.baseline_levels import SampleBaseline
from ctxexp.results import Key
from tests.measuring_helpers import Lengths, measure, noise, reader_of, rows_by_key, world
from tests.shipped import IntraSentenceSimilarity, SelfSimilarity, SizeMatched


class Halves(Baseline):
    """One word from each of the first half of the sentences; a redraw from each of the second."""

    name = "halves"

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        starts = occurrences.distinct.starts[:-1]
        half = len(starts) // 2
        yield occurrences.distinct.rows[starts[:half]]
        yield occurrences.distinct.rows[starts[half:]]


def test_a_drawn_baseline_is_moved_by_its_own_rows() -> None:
    store, occurrences, _ = world((1.0,))
    sample = SampleBaseline(Halves(), occurrences, np.random.default_rng(0))
    reader = reader_of(store.layers[0], occurrences, block_bytes=1 << 20)
    sample.observe_layer(reader, {"s": SelfSimilarity()}, influence=True)
    (influence,) = sample.curve("s").influence
    clusters, others = (np.unique(occurrences.clusters.of_row[rows]) for rows in sample.samples)
    assert set(np.flatnonzero(influence)) <= set(clusters.tolist())
    assert np.count_nonzero(influence) > 0.9 * len(clusters)
    assert not influence[others].any()
    unasked = SampleBaseline(Halves(), occurrences, np.random.default_rng(0))
    unasked.observe_layer(reader, {"s": SelfSimilarity()}, influence=False)
    assert np.isnan(unasked.curve("s").influence).all()


class Length(Lengths):
    """Of the rows, each by itself."""

    over, min_rows = "occurrence", 1


def test_rows_of_a_sentence_are_drawn_together() -> None:
    store, occurrences, corpus = world((1.0,))
    results = measure(store, occurrences, {"length": Length}, bootstrap=2000)
    low, high = (float(getattr(results.by_key[Key("length", "raw")], end)[0]) for end in ("low", "high"))
    rows = occurrences.by_sentence.rows
    difference = np.linalg.norm(store.layers[0][rows].astype(np.float64), axis=1)
    difference -= difference.mean()
    sentence = np.repeat(np.arange(len(corpus.sentences)), occurrences.by_sentence.counts)
    error = np.sqrt(np.square(np.bincount(sentence, difference)).sum()) / len(rows)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.1)
    assert not results.tables  # of words and sentences only


def test_an_adjusted_interval_is_that_of_the_differences() -> None:
    """In noise a sentence's similarity hangs on its length alone, as its baseline does."""
    store, occurrences = noise()
    metric = partial(IntraSentenceSimilarity, baselines=("size_matched",))
    results = measure(store, occurrences, {"i": metric}, bootstrap=500)
    raw, adjusted = (results.by_key[Key("i", statistic)] for statistic in ("raw", "adjusted"))
    assert adjusted.high[0] - adjusted.low[0] < 0.7 * (raw.high[0] - raw.low[0])


def test_a_sample_of_words_has_its_own_counts() -> None:
    store, occurrences, _ = world((1.0,))
    results = measure(store, occurrences, {"s": partial(SelfSimilarity, sample=7)}, SizeMatched(), bootstrap=0)
    table = results.tables["s"]
    assert len(table) == 7
    count = dict(zip(occurrences.words, occurrences.counts.tolist(), strict=True))
    assert table["count"].tolist() == [count[word] for word in table["word"]]


class WordLengths(Lengths):
    def influence(self, x: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(x.astype(np.float64), axis=-1)
        return (length - length.mean(axis=-1, keepdims=True)) / x.shape[-2]


class SentenceLengths(WordLengths):
    over = "sentence"


def error_of(metric: type[Lengths], rows: np.ndarray, occurrences: Occurrences) -> float:
    """The standard error of the mean over groups: of words their rows are chance, of sentences the groups."""
    chosen = [*rows_by_key(occurrences.groups(metric.over)).values()]
    mixed = occurrences.mixed(metric.over)
    given = mixed and mixed.weights(np.ones(len(chosen), bool))
    weights = np.ones(len(chosen)) if given is None else given
    length = np.linalg.norm(rows.astype(np.float64), axis=1)
    scores = np.array([length[at].mean() for at in chosen])
    moved = np.zeros(occurrences.clusters.n_blocks)
    for at, weight, score in zip(chosen, weights / weights.sum(), scores, strict=True):
        if metric.over == "word":
            np.add.at(moved, occurrences.clusters.of_row[at], weight * (length[at] - score) / len(at))
        else:
            moved[occurrences.clusters.of_row[at[0]]] += weight * (score - np.average(scores, weights=weights))
    return float(np.sqrt(np.square(moved).sum()))


@pytest.mark.parametrize("weights", ["equal", "occurrences", "bands"])
@pytest.mark.parametrize("metric", [WordLengths, SentenceLengths])
def test_an_interval_of_these_words_is_that_of_the_weighted_mean(metric: type[Lengths], weights: Any) -> None:
    store, occurrences, _ = world((1.0,), mix=WordMix(weights=weights, bands=(0.001, 0.02, 1.0)))
    words = {"bootstrap": 2000, "intervals": "these_words"}
    raw = measure(store, occurrences, {"length": metric}, **words).by_key[Key("length", "raw")]  # type: ignore[arg-type]
    error = error_of(metric, store.layers[0], occurrences) * Resamples.student(occurrences.clusters.n)
    assert (raw.high[0] - raw.low[0]) / 2 == pytest.approx(1.96 * error, rel=0.1)
