"""Senses and contexts: planted ones are found at equal frequency, labels that mean nothing are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from ctxexp_papers.claims.statistics import matched_difference, partial_ranks
from ctxexp_papers.monosemy import SelfSimilarityBySenses, count_senses, describe_words, rarefied

from ctxexp import Corpus, Results, Sense, Sentence
from ctxexp.maths import mean_cosine
from tests.planted import PlantedEncoder, measured_in, vector_of

WORDS, SENTENCES, DIM = 40, 160, 64
METRIC = "self_similarity_by_senses"


def effect(text: str) -> np.ndarray:
    return vector_of(text, DIM) / DIM**0.5


class Sensed(PlantedEncoder):
    """Layer 0 is the word and noise; layer 1 adds what the word (p...: of two senses) means beside this cue."""

    name, n_layers, dim = "sensed", 2, DIM

    def layers_of(self, sentence: Sentence) -> list[np.ndarray]:
        words = np.stack([effect(word) + 0.3 * effect(sentence.text + word) for word in sentence.words])
        senses = np.stack([effect(word + sentence.words[0]) * (word[0] == "p") for word in sentence.words])
        return [words, words + senses]


def corpus() -> Corpus:
    """Sentences of a cue and ten words; p... have the cue's sense, m... one."""
    rng = np.random.default_rng(0)
    names = [f"{'pm'[i % 2]}{i}" for i in range(WORDS)]
    lists = [[f"c{i % 2}", *rng.choice(names, 10, replace=False)] for i in range(SENTENCES)]
    senses = [
        Sense(i, k, f"{word}.{i % 2 if word[0] == 'p' else 0}")
        for i, words in enumerate(lists) for k, word in enumerate(words) if k
    ]  # fmt: skip
    return replace(Corpus.of("made", lists), senses=tuple(senses))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    metrics = {METRIC: lambda: SelfSimilarityBySenses(least=5)}
    folder = tmp_path_factory.mktemp("senses")
    return measured_in(folder, Sensed(), corpus(), metrics=metrics, min_contexts=3, bootstrap=200)


def test_planted_senses_lower_self_similarity_in_their_layer_alone(results: Results) -> None:
    for name, layer_1 in (("difference", True), ("one_sense_difference", False)):
        (low_0, low_1), (high_0, high_1) = (results.by_name[f"{METRIC}/{name}_ci_{end}"] for end in ("low", "high"))
        assert low_0 < 0 < high_0, name
        assert (low_1 > 0.1) if layer_1 else high_1 < 0.1, name
    rho = results.by_name[f"{METRIC}/rho_senses"]
    assert rho[1] < -0.7 < -0.4 < rho[0]
    assert np.abs(results.by_name[f"{METRIC}/difference_permuted"]).max() < 0.02


def test_the_table_has_each_words_own_numbers(results: Results) -> None:
    table = results.tables[METRIC]
    assert len(table) == 2 * WORDS
    text = corpus()
    row = table[(table["word"] == "p0") & (table["layer"] == 1)].iloc[0]
    vectors = [
        encoded.layers[1, i]
        for sentence, encoded in zip(text.sentences, Sensed().encode(list(text.sentences)), strict=True)
        for i, word in enumerate(sentence.words) if word == "p0"
    ]  # fmt: skip
    assert row["all"] == pytest.approx(float(mean_cosine(np.array(vectors))), abs=1e-6)
    assert (row["senses"], row["contexts"], row["occurrences"]) == (2, len(vectors), len(vectors))
    assert count_senses(text) == {f"{'pm'[i % 2]}{i}": 2 - i % 2 for i in range(WORDS)}


def test_variety_is_that_of_as_many_contexts() -> None:
    sentences = [["a", "x", "y"], ["x", "a"], ["z", "a", "a"], ["z", "w", "b", "a"], ["x", "a"]]
    kinds = [{"x", "y"}, {"x"}, {"z", "a"}, {"z", "w", "b"}]
    naive = np.mean([len(set().union(*pair)) for pair in combinations(kinds, 2)])
    described = describe_words(sentences, {"a", "b"}, drawn=2)
    assert described.loc["a"].tolist() == pytest.approx([4, naive])
    assert np.isnan(described.loc["b", "variety"])
    assert rarefied(np.array([3.0, 1.0]), 3, 3) == pytest.approx(2)
    assert describe_words([["a", *"bcdefghi"]], {"a"}, drawn=1).loc["a", "variety"] == 5  # the window


def test_intervals_at_equal_frequency_cover_the_truth() -> None:
    """Properties that go with frequency, which moves the values: 95% intervals of 200 worlds, standard error 1.5%."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(200):
        frequency, own_senses, own_variety, noise = rng.normal(size=(4, 300))
        senses, variety = frequency + own_senses, frequency + own_variety
        y = frequency**2 - 0.5 * own_variety + noise
        difference = matched_difference(y - (senses > 0) * 0.3, senses > 0, frequency)
        ranks = partial_ranks(y, senses, variety, frequency, rng=rng, resamples=200)
        covered.append(
            (difference.low <= -0.3 <= difference.high, ranks.one.low <= 0 <= ranks.one.high, ranks.other.high < 0)
        )
    assert np.mean(covered, axis=0)[:2] == pytest.approx([0.95, 0.95], abs=0.045)
    assert np.mean(covered, axis=0)[2] > 0.95
