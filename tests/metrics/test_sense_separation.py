"""Separation of senses: against a double loop, on planted senses, and what labels that mean nothing give."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

import ctxexp
from ctxexp import Corpus, Group, Occurrences, Sense, Sentence
from ctxexp.errors import DataError, MetricError
from ctxexp.metrics.annotated import _influence
from ctxexp.testing.transforms import MemoryRowIndex
from tests.measuring_helpers import computed, row_index_of, rows_by_key
from tests.metric_tester import Case, MetricTester, Statistics, rows
from tests.shipped import SenseSeparation


def loop(x: np.ndarray, labels: tuple[str, ...]) -> tuple[float, float]:
    """Mean cosine of same-sense and of cross-sense pairs, senses of one row left out; NaN without two senses."""
    kept = [i for i, label in enumerate(labels) if labels.count(label) > 1]
    same = []
    cross = []
    for i, j in itertools.permutations(kept, 2):
        cosine = x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j])
        (same if labels[i] == labels[j] else cross).append(cosine)
    return (float(np.mean(same)), float(np.mean(cross))) if same and cross else (np.nan, np.nan)


def of(groups: list[tuple[tuple[str, ...], np.ndarray]], **options: int) -> dict[str, float]:
    metric = SenseSeparation(**options)
    for i, (labels, x) in enumerate(groups):
        metric.update(Group(f"word{i}", x, labels))
    return computed(metric)


LABELS = [
    tuple("aabb"),
    tuple("abcabcca"),
    tuple("aaaabbbbbc"),
    tuple("aab"),
    tuple("aaa"),
    tuple("ab"),
    tuple("abbcc"),
]


def separations(groups: Sequence[Group]) -> Statistics:
    both = np.array([loop(group.x, group.labels) for group in groups])
    known = both[np.isfinite(both).all(axis=1)]
    same, cross = known.mean(0)
    found = {"raw": np.mean(known[:, 0] - known[:, 1]), "same_sense": same, "cross_sense": cross}
    return {**found, "n": len(known), "undefined": len(both) - len(known)}


def word(labels: str, last: float = 1.0) -> list[Group]:
    """A word whose last row is `last` in each column."""
    x = np.random.default_rng(3).normal(size=(len(labels), 4))
    x[-1] = last
    return [Group("word", x, tuple(labels))]


def labelled_rows(rng: np.random.Generator) -> list[Group]:
    return [Group(f"w{i}", rows(rng, len(labels)), labels) for i, labels in enumerate(LABELS)]


class TestFormula(MetricTester):
    cases = (
        Case(
            metric="sense_separation", values=separations, draw=labelled_rows,
            edges={
                **{f"{bad} in a sense": (word("aabbb", bad), {"undefined": 1}) for bad in (np.nan, np.inf, 0.0)},
                **{f"{bad} alone": (word("aabbc", bad), separations(word("aabbc"))) for bad in (np.nan, np.inf, 0.0)},
            },
        ),
        Case(
            metric="sense_separation", options={"permutations": 0},
            values=lambda groups: {**separations(groups), "permuted": np.nan}, draw=labelled_rows,
        ),
    )  # fmt: skip


def test_permuted_labels_give_zero_whatever_the_space() -> None:
    """Over ALL arrangements of the labels the mean is 0 exactly; a sample of them comes near it."""
    x = np.random.default_rng(1).normal(size=(5, 4)) + 2
    every = [np.subtract(*loop(x, labels)) for labels in set(itertools.permutations("aabbb"))]
    assert np.mean(every) == pytest.approx(0, abs=1e-12)
    stats = of([(tuple("aabbb"), x)], permutations=4000)
    assert stats["permuted"] == pytest.approx(0, abs=4 * np.std(every) / np.sqrt(4000))
    assert min(every) - 1e-9 <= stats["permuted_ci_low"] < 0 < stats["permuted_ci_high"] <= max(every) + 1e-9


def test_one_permutation_is_its_own_interval() -> None:
    stats = of([(tuple("aabb"), np.random.default_rng(4).normal(size=(4, 3)))], permutations=1)
    assert stats["permuted"] == stats["permuted_ci_low"] == stats["permuted_ci_high"]
    assert np.isfinite(stats["permuted"])
    none = of([], permutations=5)
    assert {name for name, value in none.items() if np.isfinite(value)} == {"n", "undefined"}
    assert SenseSeparation().score(np.ones((3, 4, 5))).shape == (3,)


@pytest.mark.parametrize("labels", ["aaabb", "aabb", "aaaabbc", "aabbcc"])
def test_a_sense_of_two_occurrences_moves_the_separation(labels: str) -> None:
    """Against the pairs that are left without each row; a sense of one occurrence has no pair of its own and is out."""
    x = np.random.default_rng(1).normal(size=(len(labels), 6)) + 1
    at = [i for i, label in enumerate(labels) if labels.count(label) > 1]
    u = x / np.linalg.norm(x, axis=1, keepdims=True)

    def separation(rows: list[int]) -> float:
        pairs = [(i, j) for i in rows for j in rows if i < j]
        same = [u[i] @ u[j] for i, j in pairs if labels[i] == labels[j]]
        cross = [u[i] @ u[j] for i, j in pairs if labels[i] != labels[j]]
        return float(np.mean(same) - np.mean(cross))

    moved = np.array([separation(at) - separation([i for i in at if i != out]) for out in at])
    got = _influence(tuple(labels), x)
    np.testing.assert_allclose(got[at], (moved - moved.mean()) * np.sqrt((len(at) - 1) / len(at)), atol=1e-12)
    assert (got[at] != 0).all()
    assert not np.delete(got, at).any()


def test_the_interval_of_permutations_holds_95_percent() -> None:
    """Two of eleven rows are a sense in 55 ways, 1.8% each: 2.5% are the highest and a part of the second."""
    x = np.random.default_rng(2).normal(size=(11, 4))
    values = []
    for first in itertools.combinations(range(11), 2):
        same, cross = loop(x, tuple("a" if i in first else "b" for i in range(11)))
        values.append(same - cross)
    stats = of([(tuple("aabbbbbbbbb"), x)], permutations=20_000)
    ordered = np.sort(values)
    assert (stats["permuted_ci_low"], stats["permuted_ci_high"]) == pytest.approx((ordered[1], ordered[-2]), abs=1e-9)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(MetricError, match=r"word 'bank' has 3 rows and 2 labels; expected one a row"):
        SenseSeparation().update(Group("bank", np.ones((3, 3)), ("a", "b")))


# From a corpus's labels to groups.


def labelled(n: int = 120, *, seed: int = 0) -> Corpus:
    """Sentences with punctuation, one of 4 words in each, in two or three senses; some unlabelled."""
    rng = np.random.default_rng(seed)
    sentences, senses = [], []
    for i in range(n):
        words = [f"f{rng.integers(20)}" for _ in range(rng.integers(2, 7))] + [f"s{i}", "."]
        at = int(rng.integers(len(words)))
        words.insert(at, ["bank", "Bank", "spring", "mole", "bat"][i % 5])
        sentences.append(Sentence.of(words))
        if i % 7:
            senses.append(Sense(i, at, f"sense{rng.integers(3)}"))
    return Corpus("labelled", tuple(sentences), senses=tuple(senses))


def test_groups_are_a_word_s_labelled_rows_in_order() -> None:
    corpus = labelled()
    index = row_index_of(corpus)
    groups = Occurrences.of(index, corpus, keep=str.isalnum, key=str.lower).groups("sense")
    expected = {}
    for sense in corpus.senses:
        row = int(index.offsets[index.stored_of[sense.sentence]]) + sense.position
        word = corpus.sentences[sense.sentence].words[sense.position].lower()
        expected.setdefault(word, []).append((row, sense.label))
    assert list(groups.keys) == sorted(expected, key=lambda word: (len(expected[word]), word))
    for (word, own), labels in zip(rows_by_key(groups).items(), groups.labels, strict=True):
        assert list(zip(own, labels, strict=True)) == sorted(expected[word])


def test_missing_and_unmeasured_rows_are_left_out() -> None:
    words = (["a", "bank", "."], ["bank", "b"], ["a", "bank", "."])
    places = ((0, 1, "x"), (1, 0, "y"), (0, 2, "x"), (2, 1, "x"), (1, 5, "x"), (1, 1, "z"))
    corpus = Corpus("few", tuple(map(Sentence.of, words)), senses=tuple(Sense(*place) for place in places))
    index = row_index_of(corpus)
    groups = Occurrences.of(index, corpus, min_contexts=1, keep=str.isalnum).groups("sense")
    assert list(zip(groups.keys, groups.labels, strict=True)) == [
        ("b", ("z",)),
        ("bank", ("y", "x")),
    ]  # the mark and the word beyond the end are out, the repeated row counts once

    class Pieces(MemoryRowIndex):
        positions = np.array([0, 2, 0, 1, 2])  # word 1 of the second sentence has no row: its tokenizer skipped it

    pieces = Pieces(index.vocabulary, index.unit_codes, index.offsets, index.stored_of)
    groups = Occurrences.of(pieces, corpus, min_contexts=1, keep=str.isalnum).groups("sense")
    assert (groups.keys, groups.labels) == (["bank"], [("y", "x")])
    pieces.positions = np.full(5, -1)
    assert not len(Occurrences.of(pieces, corpus, min_contexts=1).groups("sense"))


def test_two_senses_of_one_occurrence_are_refused() -> None:
    corpus = Corpus("torn", (Sentence.of(["bank"]),), senses=(Sense(0, 0, "x"), Sense(0, 0, "y")))
    with pytest.raises(DataError, match=r"corpus 'torn': word 0 of sentence 0 has two senses, 'x' and 'y'"):
        Occurrences.of(row_index_of(corpus), corpus)


def test_a_corpus_without_senses_is_refused() -> None:
    message = (
        r"'sense_separation' compares occurrences by their sense labels, but corpus 'sts' has none; .*dataset=polysemy"
    )
    with pytest.raises(DataError, match=message):
        ctxexp.measure("bert", Corpus.of("sts", [["a"], ["b"]]), metrics="sense_separation")
