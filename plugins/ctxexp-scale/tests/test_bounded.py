"""Measures of bounded contexts: those of all contexts where nothing is left out, and fair where most is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ctxexp_scale.bounded import BoundOptions, bound_corpus
from scipy.stats import chisquare

import ctxexp
from ctxexp import Corpus, Encoder, Pair, Results, Sense, Sentence
from ctxexp.command import Experiment
from ctxexp.errors import ConfigError
from tests.composed import composed, of, with_part
from tests.measuring_helpers import Hashed
from tests.shipped import sts

METRICS = "metric=[self_similarity,intra_sentence_similarity,max_explainable_variance,anisotropy,word_norm]"


def corpus(n: int = 400) -> Corpus:
    """Sentences of a vocabulary with few frequent and many rare words; documents of three sentences."""
    rng = np.random.default_rng(1)
    lines = [[f"w{min(i, 60)}" for i in rng.zipf(1.4, rng.integers(3, 12))] + [str(j)] for j in range(n)]
    sentences = tuple(Sentence.of(line) for line in lines)
    return Corpus("zipf", sentences, documents=tuple(i // 3 for i in range(n)))


def measured(folder: Path, text: Corpus, *words: str, encoder: Encoder | None = None) -> Results:
    metrics = [METRICS] if not any(word.startswith("metric=") for word in words) else []
    config = composed(*metrics, "bootstrap=200", f"cache.folder={folder}", *words)
    made = encoder or Hashed()
    return Experiment(with_part(of(config, text), "model", "hashed", lambda: made)).run(folder)


def test_a_bound_that_binds_nothing_changes_nothing(tmp_path: Path) -> None:
    """Values that nothing is drawn for; what is drawn is drawn of sentences in another order."""
    text = corpus()
    whole = measured(tmp_path, text)
    found = measured(tmp_path, text, "words.max_contexts=10000", "words.max_sentences=10000")
    key = ["measure", "statistic", "layer"]
    both = whole.frame.merge(found.frame, on=key, suffixes=("", "_b"))
    both = both[both.statistic.isin(["raw", "median", "n", "undefined"]) | (both.measure == "self_similarity")]
    assert len(both) == 40
    np.testing.assert_allclose(both.value, both.value_b, rtol=0, atol=2e-7)
    assert found.info.corpus.max_contexts == 10000
    assert found.info.corpus.text_words == text.n_words


def test_only_what_is_chosen_is_encoded_and_stored(tmp_path: Path) -> None:
    text = corpus()
    found = measured(tmp_path, text, "words.max_contexts=6", "words.max_sentences=20")
    limits = BoundOptions(max_contexts=6, max_sentences=20, min_contexts=5, form=str)
    chosen = bound_corpus(text, limits)
    assert found.info.encoded == len(chosen.sentences) < len(text.sentences)
    rows = sum(
        len(s) if whole else len(chosen.bound.of(i))
        for i, (s, whole) in enumerate(zip(chosen.sentences, chosen.bound.is_fully_measured, strict=True))
    )
    (layer,) = tmp_path.glob("*/layer_00.npy")
    assert len(np.load(layer)) == rows
    table = found.tables["self_similarity"]
    assert table["count"].max() == 6
    assert found.info.corpus.words == len(table) > 20


def test_the_sample_is_fair_to_words_and_sentences() -> None:
    """Over seeds each occurrence of a word is as likely to be chosen as any other, and whole sentences are any."""
    text, chosen, whole = corpus(), Counter[tuple[str, int]](), Counter[str]()
    for seed in range(40):
        limits = BoundOptions(max_contexts=8, max_sentences=10, min_contexts=5, form=str, sample=None, seed=seed)
        one = bound_corpus(text, limits)
        places = ((s, p) for i, s in enumerate(one.sentences) for p in one.bound.of(i))
        chosen.update((s.text, p) for s, p in places if s.words[p] == "w9")
        whole.update(s.text for s, is_whole in zip(one.sentences, one.bound.is_fully_measured, strict=True) if is_whole)
    every = [(s.text, i) for s in text.sentences for i, word in enumerate(s.words) if word == "w9"]
    assert len(every) > 30
    assert chisquare([chosen[at] for at in every]).pvalue > 0.01
    assert chisquare([whole[s.text] for s in text.sentences]).pvalue > 0.01


@pytest.mark.nightly
def test_curves_of_sts_are_those_of_all_contexts(tmp_path: Path, shared: Path) -> None:
    """R92 on real text."""
    text = sts(path=str(shared / "data" / "sts"), tasks=["STS14", "STS15"])
    words = ("min_contexts=5", "transform=center")
    whole, found = measured(tmp_path, text, *words), measured(tmp_path, text, *words, "words.max_contexts=128")
    both = whole.frame.merge(found.frame, on=["measure", "statistic", "layer"], suffixes=("", "_b"))
    closed = both[(both.statistic == "raw") | ((both.statistic == "adjusted") & (both.measure == "self_similarity"))]
    closed = closed[closed.measure.isin(["self_similarity", "intra_sentence_similarity", "max_explainable_variance"])]
    assert len(closed) == 8
    assert (closed.value - closed.value_b).abs().max() < 0.005
    inside = (closed.value > closed.low_b - 1e-6) & (closed.value < closed.high_b + 1e-6)  # layer 0 has no spread
    assert inside.all(), closed


def test_pairs_are_never_bounded_and_senses_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sentences = tuple(Sentence.of(["bank", *(f"w{i}" for i in rng.integers(0, 30, 5))]) for _ in range(60))
    pairs = tuple(Pair(i, i + 1, float(rng.uniform(0, 5)), "all") for i in range(0, 60, 2))
    senses = tuple(Sense(i, 0, f"s{i % 2}") for i in range(60))
    text = Corpus("both", sentences, pairs, senses)
    words = ("metric=[sts,sense_separation]", "min_contexts=2")
    whole, found = (measured(tmp_path, text, *words, *more) for more in ((), ("words.max_contexts=9",)))
    sts = [r.frame[(r.frame.measure == "sts") & (r.frame.statistic == "all")].value.to_numpy() for r in (whole, found)]
    np.testing.assert_array_equal(*sts)
    assert int(found.tables["sense_separation"]["count"].max()) == 9
    assert int(whole.tables["sense_separation"]["count"].max()) == 60


def test_pieces_and_frequencies_are_not_bounded(tmp_path: Path) -> None:
    pieces = Hashed()
    pieces.details = {"pooling": "pieces"}
    with pytest.raises(ConfigError, match=r"model\.pooling=pieces measures the model's pieces"):
        measured(tmp_path, corpus(40), "words.max_contexts=8", encoder=pieces)


def test_streams_need_a_bound_and_no_control_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three\n" * 3)
    words = ("dataset=text", f"dataset.path={tmp_path}/a.txt", "dataset.stream=true")
    for more, message in ((), "needs words.max_contexts"), (("words.max_contexts=9", "control=shuffled"), "changes"):
        config = composed(METRICS, *words, *more, f"cache.folder={tmp_path}")
        with pytest.raises(ConfigError, match=f"dataset 'text' streams a text: .*{message}"):
            Experiment(with_part(config, "model", "hashed", Hashed)).run(tmp_path)


def test_a_word_that_is_too_rare_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = Corpus.of("rare", [["a", "b", str(i)] if i < 3 else ["c", str(i), str(-i)] for i in range(6)])
    measured(tmp_path, text, "words.max_contexts=9", "baseline=uniform")
    assert "no word reaches min_contexts=5 distinct sentences; the most frequent" in caplog.text


def test_the_face_takes_a_stream(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(" ".join(s.words) for s in corpus().sentences))
    options = ["words.max_contexts=16", "words.tokenizer=whitespace", f"cache.folder={tmp_path}", "bootstrap=0"]
    found = ctxexp.measure(Hashed(), tmp_path / "a.txt", options=options, progress=False)
    assert found.info.corpus.text_sentences == 400
