"""The linear probe: planted labels are read where they are, control tasks hold the word alone, folds hold clusters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.corpora.tagged import tagged
from ctxexp_measures.senses.probe.metric import Probe, majority, predictions
from ctxexp_measures.senses.probe.task import ProbeTask, control_labels, folds_of, read_lexicon

from benchmarks.probe import LABELS, Planted, coverage, planted_corpus
from ctxexp import Corpus, Encoder, Results, Sense, Sentence
from ctxexp.errors import DataError
from tests.planted import measured_in
from tests.seeds import daily_seed


class Senses(Planted):
    """The first word of a sentence says the sense of the others, in layer 1."""

    name = "planted senses"

    def label_of(self, sentence: Sentence, i: int) -> str:
        return sentence.words[0] if i else "-"


def sense_text() -> Corpus:
    """Of each of six words the sense is the sentence's topic, its first word."""
    rng = np.random.default_rng(0)
    rows = [[f"t{i % 2}", f"x{rng.integers(50)}", f"w{i // 2 % 6}", f"y{i}"] for i in range(120)]
    senses = tuple(Sense(i, 2, f"{row[2]}.{row[0]}") for i, row in enumerate(rows))
    return replace(Corpus.of("senses", rows), senses=senses)


def run(corpus: Corpus, folder: Path, encoder: Encoder | None = None, **options: object) -> Results:
    metrics = {"probe": partial(Probe, **{"controls": 3, **options})}  # type: ignore[arg-type]
    return measured_in(folder, encoder or Planted(), corpus, metrics=metrics, min_contexts=2, bootstrap=200)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(planted_corpus(), tmp_path_factory.mktemp("probe"))


def curve(results: Results, statistic: str) -> np.ndarray:
    return results.by_name[f"probe/{statistic}"]


def test_the_label_is_read_where_it_is(results: Results) -> None:
    """A layer of words alone gives the control task what it gives the labels, and nothing on words held out; a layer of
    labels alone gives both what they are due."""
    raw, control, selectivity = (curve(results, name) for name in ("raw", "baseline", "adjusted"))
    held, chance = curve(results, "held_out_words"), curve(results, "majority")[0]
    assert raw[0] > 0.95
    assert control[0] > 0.95
    assert abs(selectivity[0]) < 0.05
    assert held[0] < chance + 0.15
    assert raw[1] > 0.9
    assert control[1] < chance + 0.15
    assert held[1] > 0.9
    assert raw[2] < chance + 0.1
    assert curve(results, "random") == pytest.approx([curve(results, "random")[0]] * 3)
    assert curve(results, "random")[0] > 0.95
    assert np.allclose(selectivity, raw - control)
    assert curve(results, "n").tolist() == [1600] * 3
    assert curve(results, "labels").tolist() == [3] * 3


def test_intervals_hold_the_values_and_are_as_wide_as_sentences_and_control_tasks_make_them(results: Results) -> None:
    width = {}
    for name in ("raw", "adjusted", "baseline", "held_out_words"):
        low, high = (curve(results, f"{name}_ci_{end}") for end in ("low", "high"))
        assert ((low <= curve(results, name)) & (curve(results, name) <= high)).all()
        width[name] = high[2] - low[2]
    p = curve(results, "raw")[2]
    assert width["raw"] == pytest.approx(2 * 1.96 * np.sqrt(p * (1 - p) / 1600), rel=0.3)
    assert width["adjusted"] > width["raw"]


@pytest.mark.nightly
def test_intervals_of_selectivity_cover(tmp_path: Path) -> None:
    """The small form of `python -m benchmarks.probe`: fewer than 3 of 6 in any layer come in 1 of 1,000 days."""
    found = coverage(6, np.random.default_rng(daily_seed()), tmp_path)
    assert min(one.covers for one in found) >= 0.5


def test_senses_have_a_classifier_a_word(tmp_path: Path) -> None:
    found = run(sense_text(), tmp_path, Senses(), labels="sense")
    assert curve(found, "raw")[1] > 0.95
    assert curve(found, "raw")[0] < 0.65
    assert (curve(found, "baseline") < 0.65).all()
    assert abs(curve(found, "adjusted")[0]) < 0.1  # where a word has one vector, nothing is read
    assert not {"probe/held_out_words", "probe/random"} & {*found.by_name}
    assert curve(found, "labels").tolist() == [12] * 3


def test_predictions_are_scikit_learn_s_own() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 5)), rng.integers(0, 3, 120)
    x[:, 0] += y
    fold = folds_of(y, np.arange(120) // 3, 4, 0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, tol=1e-3))
    expected = cross_val_predict(pipeline, x, y, cv=PredefinedSplit(fold))
    assert np.array_equal(predictions(x, y, fold, np.zeros(120, int), "logistic"), expected)
    assert np.array_equal(
        predictions(x * [1, 7, 0.1, 2, 3] + 5, y, fold, np.zeros(120, int), "logistic"), expected
    )  # the invariances that it declares
    problem = np.arange(120) % 2
    for p in (0, 1):  # each problem by itself, but for the scaling, which all share
        mine = problem == p
        ours = predictions(x, y, fold, problem, "ridge")[mine]
        alone = np.concatenate([
            predictions((x - x[fold != k].mean(0)) / x[fold != k].std(0), y, fold, problem, "ridge")[mine & (fold == k)]
            for k in range(4)
        ])  # fmt: skip
        assert sorted(ours.tolist()) == sorted(alone.tolist())


def test_what_the_other_folds_lack_is_not_guessed() -> None:
    x, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 1])
    fold, problem = np.array([0, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 2, 2])
    for classifier in ("logistic", "ridge"):
        assert predictions(x, y, fold, problem, classifier).tolist() == [0, 0, 0, -1, -1, -1]
    assert majority(y, fold, problem).tolist() == [1, 1, 1, 0, 0, 0]
    assert majority(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), np.zeros(4, int)).tolist() == [0, 1, 0.5, 0.5]


def test_folds_hold_groups_and_labels_are_in_all() -> None:
    rng = np.random.default_rng(1)
    for seed in range(5):
        group, label = rng.integers(0, 60, 300), rng.choice(3, 300, p=[0.8, 0.15, 0.05])
        fold = folds_of(label, group, 5, seed)
        assert all(len(set(fold[group == g].tolist())) == 1 for g in group)
        assert all(set(fold[label == y].tolist()) == {0, 1, 2, 3, 4} for y in range(3))
    assert not np.array_equal(fold, folds_of(label, group, 5, 0))


def test_control_labels_hold_the_word_alone() -> None:
    rng, n = np.random.default_rng(0), 20_000
    word, label = rng.integers(0, 5000, n), rng.choice(3, n, p=[0.7, 0.2, 0.1])
    zeros = np.zeros(n, int)
    task = ProbeTask(zeros, LABELS, label, label, zeros, word, zeros, zeros, zeros)
    control = control_labels(task, rng)
    assert all(len(set(control[word == w].tolist())) == 1 for w in range(50))
    assert np.bincount(control) / n == pytest.approx([0.7, 0.2, 0.1], abs=0.03)
    several = replace(task, problem=word % 7)
    shuffled = control_labels(several, rng)
    assert all(
        np.array_equal(np.bincount(shuffled[word % 7 == p]), np.bincount(label[word % 7 == p])) for p in range(7)
    )
    assert (shuffled != label).mean() > 0.3


def test_a_lexicon_labels_words(tmp_path: Path) -> None:
    file, small = tmp_path / "labels.tsv", planted_corpus(40)
    file.write_text("".join(f"W{i}\t{LABELS[i % 3]}\n" for i in range(60)))
    found = run(replace(small, tags={}), tmp_path / "a", labels=str(file))
    assert np.array_equal(curve(found, "raw"), curve(run(small, tmp_path / "b"), "raw"))
    assert read_lexicon(file)["w7"] == "B"
    (table := file.with_suffix(".csv")).write_text("label,word\nB,NA\n")
    assert read_lexicon(table) == {"na": "B"}
    for content, message in (
        ("a b\n", r"line 1: expected a word, a tab and its label, got \['a b'\]"),
        ("a\tX\nA\tY\n", r"line 2: 'A' has the labels 'X' and 'Y'"),
    ):
        file.write_text(content)
        with pytest.raises(DataError, match=message):
            run(small, tmp_path / "c", labels=str(file))


# --- a text with labels ---------------------------------------------------------------------------------------------


def test_a_tagged_text_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("The\tDET\nbank\tNOUN\n\n\nIt\t_\nran\tVERB\n")
    corpus = tagged(path=str(file))
    assert [s.text for s in corpus.sentences] == ["The bank", "It ran"]
    assert corpus.tags["label"] == (("DET", "NOUN"), ("", "VERB"))
    assert corpus.documents is None


def test_conll_u_is_read(tmp_path: Path) -> None:
    """All that its columns say: ranges of words, empty ones and comments are none, a number is."""
    file = tmp_path / "a.conllu"
    word = "{0}\t{1}\tlemma\t{2}\t_\t_\t0\troot\t_\t_\n"
    file.write_text(
        "\ufeff# newdoc id = a\n# text\t= vámonos\n1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
        + word.format(1, "vamos", "VERB") + word.format(2, "nos", "PRON") + word.format(3, "1990-95", "NUM")
        + "\n# newdoc id = b\n" + word.format(1, "Fin", "NOUN") + "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
        "utf-8",
    )  # fmt: skip
    corpus = tagged(path=str(file))
    assert [s.words for s in corpus.sentences] == [("vamos", "nos", "1990-95"), ("Fin",)]
    assert corpus.tags["label"] == (("VERB", "PRON", "NUM"), ("NOUN",))
    assert corpus.documents == (1, 2)
    assert tagged(path=str(file), word=2, label=3).tags["label"][1] == ("lemma",)


def test_of_a_file_of_words_numbers_and_marks_are_words(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(
        "\ufeff# text =\tIn 1990-95\r\nIn\tADP\r\n1990-95\tNUM\r\n3.5\tNUM\r\n#\tSYM\r\n#tag\tX\r\n", "utf-8"
    )
    assert [s.words for s in tagged(path=str(file)).sentences] == [("In", "1990-95", "3.5", "#", "#tag")]
