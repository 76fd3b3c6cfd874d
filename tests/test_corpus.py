"""Sentences, fingerprints and deduplication."""

from __future__ import annotations

import pytest

from ctxexp.corpus import Corpus, Pair, Sense, Sentence, deduplicated
from ctxexp.errors import DataError


def test_words_joined_by_spaces_keep_their_spans() -> None:
    sentence = Sentence.of(["a", "bc", "d"])
    assert sentence.text == "a bc d"
    assert [sentence.text[a:b] for a, b in sentence.spans] == ["a", "bc", "d"]


def test_spans_must_match_words() -> None:
    with pytest.raises(DataError, match="2 words but 1 spans in 'a b'"):
        Sentence("a b", ("a", "b"), ((0, 1),))


def test_fingerprint_sees_text_spans_and_order() -> None:
    base = Corpus.of("x", [["a", "b"], ["c"]])
    assert base.fingerprint == Corpus.of("other name", [["a", "b"], ["c"]]).fingerprint
    assert base.fingerprint != Corpus.of("x", [["c"], ["a", "b"]]).fingerprint
    assert base.fingerprint != Corpus.of("x", [["a b"], ["c"]]).fingerprint  # the same text, other words
    assert len(base.fingerprint) == 32


def test_deduplication_moves_pairs_and_senses_to_the_first_copy() -> None:
    corpus = Corpus.of("x", [["a"], ["b"], ["a"], ["c"]])
    corpus = Corpus("x", corpus.sentences, (Pair(2, 3, 1.0), Pair(0, 1, 2.0)), (Sense(0, 0, "s"), Sense(2, 0, "s")))
    once = deduplicated(corpus)
    assert [s.text for s in once.sentences] == ["a", "b", "c"]
    assert once.pairs == (Pair(0, 2, 1.0), Pair(0, 1, 2.0))
    assert once.senses == (Sense(0, 0, "s"),)
    assert once.choices["deduplicate"] == "true"
