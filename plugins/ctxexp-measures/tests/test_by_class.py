"""Measures by class of word: means of their words, planted classes, and labels that mean nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.by_class.metric import (
    SelfSimilarityByClass,
    SenseSeparationByClass,
    VarianceComponentsByClass,
    band,
)
from ctxexp_measures.senses.by_class.table import table

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Metric, Results, Sense, Sentence
from ctxexp.command import registry
from ctxexp.errors import DataError
from ctxexp.maths.word_mix import WordMix
from ctxexp.results import Key

SelfSimilarity = registry().find("metric", "self_similarity").factory
SenseSeparation = registry().find("metric", "sense_separation").factory

Factory = Callable[[], Metric]
STRENGTH = {"n": 1.0, "v": 0.5}  # of the cue in the vectors of nouns and verbs


def effect(text: str) -> np.ndarray:
    """A direction of length 1; two of them are all but orthogonal."""
    x = np.random.default_rng(list(text.encode())).normal(size=1024)
    return x / np.linalg.norm(x)


class Cued(Encoder):
    """Layer 0 is the word; layer 1 adds the sentence's cue, its first word, more to nouns (n...) than to verbs (v...),
    and what a word does by itself. Words of an even number are one token, the others three."""

    name, n_layers, dim = "cued", 2, 1024

    def encode(self, batch: list[Sentence]) -> list[EncodedSentence]:  # type: ignore[override]
        found = []
        for sentence in batch:
            words = np.stack([effect(word) for word in sentence.words])
            cue = np.array([STRENGTH.get(w[0], 1) for w in sentence.words])[:, None] * effect(sentence.words[0])
            own = 0.1 * np.stack([effect(sentence.text + word) for word in sentence.words])
            found.append(EncodedSentence(sentence.words, np.stack([words, words + cue + own]).astype(np.float32)))
        return found

    def token_spans(self, sentences: list[Sentence]) -> list[np.ndarray]:  # type: ignore[override]
        sizes = [[1 if int(w[1:]) % 2 == 0 else 3 for w in s.words] for s in sentences]
        return [np.stack([np.cumsum(of) - of, of], axis=1) for of in sizes]


def text(n: int = 160, *, seed: int = 0, shuffled: bool = False) -> Corpus:
    """Sentences of a cue, four nouns and three verbs, whose senses the cue tells; `both1` is a noun under one cue and a
    verb under the other, `r...` are two rare words."""
    rng = np.random.default_rng(seed)
    lists = []
    for i in range(n):
        nouns, verbs = (rng.choice([f"{k}{j}" for j in range(12)], m, replace=False) for k, m in (("n", 4), ("v", 3)))
        lists.append([f"c{i % 2}", *nouns, *verbs, *(["r1", "r2"] if i < 8 else []), "b1"])
    cues = np.arange(n) % 2
    tag = {"n": "NOUN", "v": "VERB", "r": "ADV"}
    pos = [["", *(tag.get(w[0], ("NOUN", "VERB")[cues[i]]) for w in s[1:])] for i, s in enumerate(lists)]
    told = {w: iter(rng.permutation([cues[i] for i, s in enumerate(lists) if w in s])) for s in lists for w in s}
    senses = [
        Sense(i, k, f"{w}.{next(told[w]) if shuffled else cues[i]}") for i, s in enumerate(lists)
        for k, w in enumerate(s) if k
    ]  # fmt: skip
    corpus = Corpus.of("made", lists)
    return replace(corpus, senses=tuple(senses), tags={"pos": tuple(map(tuple, pos))})


def run(corpus: Corpus, tmp_path: Path, *words: str, model: Encoder | None = None, **metrics: Factory) -> Results:
    return ctxexp.measure(
        model or Cued(), corpus, metrics=metrics, min_contexts=3, folder=tmp_path,
        options=[f"cache.folder={tmp_path}", *words], progress=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(
        text(), tmp_path_factory.mktemp("told"), whole=SelfSimilarity, alike=SelfSimilarityByClass,
        senses=SenseSeparation, apart=SenseSeparationByClass, parts=VarianceComponentsByClass,
    )  # fmt: skip


def value(found: Results, measure: str, statistic: str, task: str, layer: int = 1) -> float:
    return float(found.by_name[str(Key(measure, statistic, task))][layer])


@pytest.mark.parametrize(("whole", "by"), [("whole", "alike"), ("senses", "apart")])
def test_classes_are_means_of_their_words(told: Results, whole: str, by: str) -> None:
    table = told.tables[whole].set_index("word")
    for layer in (0, 1):
        scores = table[f"raw_{layer}"].dropna()
        for kind, among in (
            ("pos NOUN", [w for w in scores.index if w[0] == "n"]),
            ("pos VERB", [w for w in scores.index if w[0] == "v"]),
            ("pieces 1", [w for w in scores.index if int(w[1:]) % 2 == 0]),
            ("pieces 3+", [w for w in scores.index if int(w[1:]) % 2]),
        ):
            if (whole, kind) == ("whole", "pos NOUN"):
                among.append("b1")  # as often a noun as a verb, the noun first
            mixed = WordMix().of(table["count"][among].to_numpy(), told.info.corpus.occurrences)
            weights = mixed.weights(np.ones(len(among), bool))
            mean = np.average(scores[among], weights=weights)
            assert value(told, by, "raw", kind, layer) == pytest.approx(mean, abs=1e-6), kind
            assert value(told, by, "bands", kind) == mixed.filled.sum() > 0
            assert value(told, by, "words", kind) == len(among)
            assert value(told, by, "occurrences", kind) == table["count"][among].sum()
    every = [value(told, by, "words", kind) for kind in ("pieces 1", "pieces 3+")]
    assert sum(every) == value(told, whole, "n", "")


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


def test_planted_separation_returns_by_class_and_vanishes_when_shuffled(told: Results, tmp_path: Path) -> None:
    """With a the cue's strength: same-sense cosine (1 + a^2) / (1 + a^2 + .01), cross-sense 1 / (1 + a^2 + .01)."""
    for kind, a in (("pos NOUN", 1.0), ("pos VERB", 0.5)):
        assert value(told, "apart", "raw", kind) == pytest.approx(a**2 / (1.01 + a**2), abs=0.02)
        assert value(told, "apart", "raw", kind, 0) == pytest.approx(0, abs=1e-6)
    shuffled = run(text(shuffled=True), tmp_path, apart=SenseSeparationByClass, parts=VarianceComponentsByClass)
    for kind in ("pos NOUN", "pos VERB"):
        for measure, statistic in (("apart", "raw"), ("parts", "sense")):
            _, low, high = shuffled.by_key[Key(measure, statistic, kind)]
            assert low[1] < 0 < high[1]
            assert abs(value(shuffled, measure, statistic, kind)) < 0.01
            assert value(told, measure, statistic, kind) > 0.1
        for found, inside in ((told, False), (shuffled, True)):
            _, low, high = found.by_key[Key("apart", "permuted", kind)]
            assert low[1] < 0 < high[1]
            assert (low[1] < value(found, "apart", "raw", kind) < high[1]) == inside


def test_by_part_of_speech_senses_of_one_alone_are_compared(told: Results, tmp_path: Path) -> None:
    """The word that is a noun under one cue and a verb under the other has senses, but none within either."""
    both = told.tables["senses"].set_index("word").loc["b1"]
    assert both["raw_1"] > 0.4
    for kind, words in (("pos NOUN", 12), ("pos VERB", 12)):
        assert value(told, "apart", "words", kind) == words  # without it
    corpus = text()
    mixed = replace(corpus, tags={"pos": tuple(("", *("AB"[i // 2 % 2] for _ in s.words[1:])) for i, s in
                                               enumerate(corpus.sentences))})  # fmt: skip
    found = run(mixed, tmp_path, apart=SenseSeparationByClass)
    for kind in ("pos A", "pos B"):  # every word in both, each with half of its rows
        assert value(found, "apart", "words", kind) >= 25
        assert value(found, "apart", "raw", kind) == pytest.approx(value(told, "apart", "raw", "pieces 1"), abs=0.05)
    whole = sum(value(found, "apart", "occurrences", kind) for kind in ("pieces 1", "pieces 3+"))
    assert sum(value(found, "apart", "occurrences", kind) for kind in ("pos A", "pos B")) == pytest.approx(whole, abs=8)


def test_small_classes_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ctxexp"):
        found = run(text(60), tmp_path, alike=SelfSimilarityByClass, apart=SenseSeparationByClass,
                    parts=VarianceComponentsByClass)  # fmt: skip
    said = [record.message for record in caplog.records if "left out" in record.message]
    assert len(said) == 3  # once a run and measure
    assert sum("classes of fewer than 5 words are left out: " in line and "pos ADV (2)" in line for line in said) == 3
    for measure, statistic in (("alike", "raw"), ("apart", "raw"), ("parts", "context")):
        assert Key(measure, statistic, "pos ADV") not in found.by_key
        assert value(found, measure, "words", "pos ADV") == 2
        assert value(found, measure, "occurrences", "pos ADV") == 16


def test_the_table_says_the_classes_and_their_sizes(told: Results, tmp_path: Path) -> None:
    runs = [("a", told), ("b", told)]
    made = table(runs)
    assert made is not None
    rows = {(row[0], row[2], row[3]): row for row in made.shown}
    noun = rows["a", "sense_separation_by_class", "pos NOUN"]
    assert noun[4] == "12"
    assert noun[6:8] == ["1 of 3 bands", "1"]
    assert noun[8].startswith(f"{value(told, 'apart', 'raw', 'pos NOUN'):.3f} [")
    assert rows["b", "variance_components_by_class", "pos ADV"][8] == "left out"
    assert table([]) is None
    bare = table([("a", run(text(40), tmp_path, "bootstrap=0", by=lambda: SelfSimilarityByClass(by=["pieces"])))])
    assert bare is not None
    assert "[" not in bare.shown[0][8]  # no resamples, no interval


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    for metric in (SelfSimilarityByClass, SenseSeparationByClass, VarianceComponentsByClass):
        with pytest.raises(
            DataError, match=rf"{metric.name}: corpus 'made' has no parts of speech; .*{metric.name}.by"
        ):
            metric().require(replace(text(4), tags={}))
    assert [band(n) for n in (1, 9, 10, 29, 30, 999, 1000)] == [
        "1-9", "1-9", "10-29", "10-29", "30-99", "300-999", "1000+",
    ]  # fmt: skip
