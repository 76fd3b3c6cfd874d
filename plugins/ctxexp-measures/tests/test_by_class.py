"""Self-similarity by class of word: means of their words, intervals, classes that are too small."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.by_class import SelfSimilarityByClass

from ctxexp import Corpus, Encoder, Metric, Results, Sentence
from ctxexp.maths.word_mix import WordMix
from ctxexp.results import Key
from tests.planted import PlantedEncoder, measured_in, vector_of
from tests.shipped import SelfSimilarity

Factory = Callable[[], Metric]
STRENGTH = {"n": 1.0, "v": 0.5}  # of the cue in the vectors of nouns and verbs


class Cued(PlantedEncoder):
    """Layer 0 is the word; layer 1 adds the sentence's cue, its first word, more to nouns (n...) than to verbs (v...).
    Words of an even number are one token, the others three."""

    name, n_layers, dim = "cued", 2, 256

    def layers_of(self, sentence: Sentence) -> list[np.ndarray]:
        words = np.stack([vector_of(word, 256) for word in sentence.words])
        cue = np.array([STRENGTH.get(w[0], 1) for w in sentence.words])[:, None] * words[0]
        return [words, words + cue]

    def token_spans(self, sentences: list[Sentence]) -> list[np.ndarray]:  # type: ignore[override]
        sizes = [[1 if int(w[1:]) % 2 == 0 else 3 for w in s.words] for s in sentences]
        return [np.stack([np.cumsum(of) - of, of], axis=1) for of in sizes]


def text(n: int = 160) -> Corpus:
    """Sentences of a cue, four nouns and three verbs; `b1` is a noun under one cue and a verb under the other, `r...`
    are two rare words."""
    rng = np.random.default_rng(0)
    lists = []
    for i in range(n):
        nouns, verbs = (rng.choice([f"{k}{j}" for j in range(12)], m, replace=False) for k, m in (("n", 4), ("v", 3)))
        lists.append([f"c{i % 2}", *nouns, *verbs, *(["r1", "r2"] if i < 8 else []), "b1"])
    tag = {"n": "NOUN", "v": "VERB", "r": "ADV"}
    pos = [["", *(tag.get(w[0], ("NOUN", "VERB")[i % 2]) for w in s[1:])] for i, s in enumerate(lists)]
    return replace(Corpus.of("made", lists), tags={"pos": tuple(map(tuple, pos))})


def run(corpus: Corpus, folder: Path, *words: str, model: Encoder | None = None, **metrics: Factory) -> Results:
    return measured_in(folder, model or Cued(), corpus, *words, metrics=metrics, min_contexts=3)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("told")
    return run(text(), folder, whole=SelfSimilarity, alike=SelfSimilarityByClass)


def value(found: Results, measure: str, statistic: str, task: str, layer: int = 1) -> float:
    return float(found.by_name[str(Key(measure, statistic, task))][layer])


def test_classes_are_means_of_their_words(told: Results) -> None:
    table = told.tables["whole"].set_index("word")
    for layer in (0, 1):
        scores = table[f"raw_{layer}"].dropna()
        for kind, among in (
            ("pos NOUN", [*(w for w in scores.index if w[0] == "n"), "b1"]),  # as often a verb, the noun first
            ("pos VERB", [w for w in scores.index if w[0] == "v"]),
            ("pieces 1", [w for w in scores.index if int(w[1:]) % 2 == 0]),
            ("pieces 3+", [w for w in scores.index if int(w[1:]) % 2]),
        ):
            mixed = WordMix().of(table["count"][among].to_numpy(), told.info.corpus.occurrences)
            weights = mixed.weights(np.ones(len(among), bool))
            mean = np.average(scores[among], weights=weights)
            assert value(told, "alike", "raw", kind, layer) == pytest.approx(mean, abs=1e-6), kind
            assert value(told, "alike", "bands", kind) == mixed.filled.sum() > 0
            assert value(told, "alike", "words", kind) == len(among)
            assert value(told, "alike", "occurrences", kind) == table["count"][among].sum()
    every = [value(told, "alike", "words", kind) for kind in ("pieces 1", "pieces 3+")]
    assert sum(every) == value(told, "whole", "n", "")


def test_intervals_of_one_full_class_are_the_wholes(tmp_path: Path) -> None:
    class Whole(Cued):
        def token_spans(self, sentences: list[Sentence]) -> list[np.ndarray]:  # type: ignore[override]
            return [np.stack([np.arange(len(s)), np.ones(len(s), int)], axis=1) for s in sentences]

    found = run(
        text(), tmp_path, "intervals=these_words", model=Whole(), whole=SelfSimilarity,
        by=lambda: SelfSimilarityByClass(by=["pieces"]),
    )  # fmt: skip
    assert value(found, "by", "raw", "pieces 1") == pytest.approx(value(found, "whole", "raw", ""))
    for end in ("low", "high"):
        mine, whole = found.by_name[f"by/pieces 1/raw_ci_{end}"], found.by_name[f"whole/raw_ci_{end}"]
        np.testing.assert_allclose(mine, whole, atol=2e-3)  # other draws of the sentences
    np.testing.assert_allclose(found.by_name["by/baseline"], found.by_name["whole/baseline"])


def test_small_classes_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ctxexp"):
        found = run(text(60), tmp_path, alike=SelfSimilarityByClass)
    (said,) = [record.message for record in caplog.records if "left out" in record.message]  # once a run
    assert "classes of fewer than 5 words are left out: " in said
    assert "pos ADV (2)" in said
    assert Key("alike", "raw", "pos ADV") not in found.by_key
    assert value(found, "alike", "words", "pos ADV") == 2
    assert value(found, "alike", "occurrences", "pos ADV") == 16
