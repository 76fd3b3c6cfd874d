"""Rows of words and sentences, against a plain loop over the corpus; some groups of a block."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from ctxexp_scale.bounded import Bound
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxexp import Block, Corpus, Occurrences
from ctxexp.errors import MetricError
from ctxexp.occurrences import Groups
from ctxexp.testing.transforms import MemoryRowIndex
from tests.measuring_helpers import row_index_of, rows_by_key


def of(sentences: list[list[str]], **choices: object) -> tuple[Occurrences, MemoryRowIndex, Corpus]:
    corpus = Corpus.of("small", sentences)
    index = row_index_of(corpus)
    return Occurrences.of(index, corpus, **choices), index, corpus  # type: ignore[arg-type]


words = st.sampled_from(["a", "A", "b", "c", "d", "."])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=25), st.integers(1, 4))
def test_rows_are_those_of_a_plain_loop(sentences: list[list[str]], min_contexts: int) -> None:
    sentences = [*sentences, ["b"]]
    occurrences, index, corpus = of(sentences, min_contexts=min_contexts, keep=str.isalnum, key=str.lower)
    rows = defaultdict(list)
    contexts = defaultdict(set)
    for stored in index.stored_of.tolist():
        for row in range(index.offsets[stored], index.offsets[stored + 1]):
            unit = index.vocabulary[index.unit_codes[row]]
            if unit.isalnum():
                rows[unit.lower()].append(row)
                contexts[unit.lower()].add(stored)
    expected = {w: r for w, r in rows.items() if len(contexts[w]) >= min_contexts}
    assert rows_by_key(occurrences.by_word) == expected
    assert occurrences.words == sorted(expected, key=lambda w: (len(expected[w]), w))
    assert occurrences.counts.tolist() == [len(expected[w]) for w in occurrences.words]
    assert occurrences.contexts.tolist() == [len(contexts[w]) for w in occurrences.words]
    for key, own in rows_by_key(occurrences.by_sentence).items():
        units = [index.vocabulary[index.unit_codes[r]] for r in own]
        assert units == [w for w in corpus.sentences[key].words if w.isalnum()]
    assert occurrences.n_occurrences == sum(map(len, rows.values()))
    assert len(set(occurrences.distinct.rows.tolist())) == len(occurrences.distinct.rows)


def test_a_sentence_repeated_five_times_yields_no_word() -> None:
    """R04: five occurrences in one sentence are one context; the released code counts them as five."""
    occurrences = of([["the", "bank", "lends"]] * 5, min_contexts=5)[0]
    assert occurrences.words == []
    assert occurrences.n_occurrences == 15
    corpus = Corpus.of("carried", [["the", "bank"]] * 5)  # kept apart, as a store of an encoder with a state does
    apart = MemoryRowIndex(["the", "bank"], np.tile([0, 1], 5), np.arange(0, 12, 2), np.arange(5))
    assert Occurrences.of(apart, corpus).words == []
    assert len(Occurrences.of(apart, corpus).distinct) == 1
    varied = of([["the", "bank", str(i)] for i in range(5)], min_contexts=5)[0]
    assert varied.words == ["bank", "the"]


@pytest.mark.parametrize("most_rows", [1, 7])
def test_blocks_hold_every_group_once(most_rows: int) -> None:
    rng = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in rng.zipf(1.5, size=rng.integers(1, 9)) if i < 20] or ["w0"] for _ in range(80)]
    occurrences = of(sentences, min_contexts=2)[0]
    for kind in ("word", "sentence", "occurrence", "corpus"):
        groups = occurrences.groups(kind)
        seen = {}
        for keys, rows, _ in groups.blocks(most_rows):
            assert rows.shape[0] == len(keys)
            assert rows.size <= most_rows or len(keys) == 1
            seen |= dict(zip(keys, rows.tolist(), strict=True))
        assert list(seen) == list(dict.fromkeys(groups.keys))
        if kind != "occurrence":
            assert [r for rows in seen.values() for r in rows] == groups.rows.tolist()
        assert (np.diff(groups.counts) >= 0).all()


def test_messages() -> None:
    with pytest.raises(MetricError, match=r"corpus 'small' has no unit to measure: all 3 are left out"):
        of([[".", "."], ["!"]], keep=str.isalnum)
    corpus = Corpus.of("small", [["a"], ["b"]])
    with pytest.raises(MetricError, match=r"the store maps 2 sentences but corpus 'other' has 1; open the store with"):
        Occurrences.of(row_index_of(corpus), Corpus.of("other", [["a"]]))
    with pytest.raises(MetricError, match=r"no groups of kind 'sample' in a corpus; expected word, sentence"):
        of([["a"]])[0].groups("sample")


def test_some_groups_keep_their_keys_rows_and_labels() -> None:
    labels = [("x",), ("y", "z"), (), ("x", "y", "z")]
    groups = Groups(["a", "b", "c", "d"], np.array([0, 1, 3, 3, 6]), np.array([7, 5, 9, 2, 4, 8]), labels)
    some = groups.subset(np.array([1, 3]))
    assert some.keys == ["b", "d"]
    assert some.starts.tolist() == [0, 2, 5]
    assert some.rows.tolist() == [5, 9, 2, 4, 8]
    assert list(some.labels) == [labels[1], labels[3]]


def test_rows_that_are_not_measured_are_in_no_group() -> None:
    sentences = [[f"w{i % 7}", f"w{i % 3}", f"s{i}"] for i in range(30)]
    whole, index, corpus = of(sentences, min_contexts=1, keep=lambda unit: unit != "w1")
    units = [index.vocabulary[code] for code in index.unit_codes]
    forms = sorted({*units} - {"w1"})
    assert whole.forms.tolist() == [-1 if unit == "w1" else forms.index(unit) for unit in units]
    measured = np.random.default_rng(0).random(len(index.unit_codes)) < 0.6
    some = Occurrences.of(index, corpus, min_contexts=1, keep=lambda unit: unit != "w1", measured=measured)
    for groups, rest in ((whole.by_word, some.by_word), (whole.by_sentence, some.by_sentence)):
        kept = {key: [row for row in rows if measured[row]] for key, rows in rows_by_key(groups).items()}
        assert rows_by_key(rest) == {key: rows for key, rows in kept.items() if rows}
    assert some.rows.tolist() == np.flatnonzero(measured & (whole.forms >= 0)).tolist()
    np.testing.assert_array_equal(some.forms, np.where(measured, whole.forms, -1))


class Placed(MemoryRowIndex):
    """A store that knows each row's word in its sentence, since some words have no row."""

    positions: np.ndarray


@pytest.mark.parametrize("bounded", [False, True])
def test_bounded_rows_are_those_of_a_plain_loop(bounded: bool) -> None:
    rng = np.random.default_rng(1)
    texts = [[*(f"w{j}" for j in rng.integers(0, 9, rng.integers(1, 8))), f"s{i}"] for i in range(40)]
    having = [np.flatnonzero(rng.random(len(words)) < 0.8) for words in texts]
    chosen = [np.flatnonzero(rng.random(len(words)) < 0.5) for words in texts]
    starts, whole = np.cumsum([0, *map(len, chosen)]), rng.random(40) < 0.5
    bound = Bound(
        4, starts, np.concatenate(chosen), whole, text_sentences=40, text_words=9, word_counts={}, measured_words=0
    )
    corpus = Corpus("bounded", Corpus.of("", texts).sentences, bound=bound if bounded else None)
    vocabulary = sorted({word for words in texts for word in words})
    codes = [vocabulary.index(words[at]) for words, places in zip(texts, having, strict=True) for at in places]
    offsets = np.cumsum([0, *map(len, having)])
    index = Placed(vocabulary, np.array(codes), offsets, np.arange(40))
    index.positions = np.concatenate(having)
    by_word = defaultdict(list)
    by_sentence = {}
    for i, words in enumerate(texts):
        for row, at in zip(range(offsets[i], offsets[i + 1]), having[i], strict=True):
            if not bounded or at in chosen[i]:
                by_word[words[at]].append(row)
            if not bounded or whole[i]:
                by_sentence.setdefault(i, []).append(row)
    occurrences = Occurrences.of(index, corpus, min_contexts=1)
    assert rows_by_key(occurrences.by_word) == by_word
    assert rows_by_key(occurrences.by_sentence) == rows_by_key(occurrences.distinct) == by_sentence
    places = index.positions if bounded else [place for at in having for place in range(len(at))]
    np.testing.assert_array_equal(occurrences.places, places)


X = np.arange(24.0).reshape(3, 2, 4)
ROWS = np.array([[4, 5], [0, 9], [7, 2]])
LABELS = [("p", "q"), ("r", "s"), ("t", "u")]


def test_some_groups_of_a_block_keep_all_they_have() -> None:
    block = Block(["a", "b", "c"], X, ROWS, LABELS, eps=0.5)
    some = block.subset(np.array([0, 2]))
    np.testing.assert_array_equal(some.x, X[[0, 2]])
    assert (some.keys, some.rows.tolist(), some.eps) == (["a", "c"], [[4, 5], [7, 2]], 0.5)
    assert [(group.key, group.labels) for group in some] == [("a", ("p", "q")), ("c", ("t", "u"))]
    bare = Block(["a", "b", "c"], X).subset(np.array([1]))
    assert (bare.rows, [group.labels for group in bare]) == (None, [()])
