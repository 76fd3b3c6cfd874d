"""Sentences, fingerprints and deduplication."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxexp import Corpus, Pair, Register, Sense, Sentence, hookimpl
from ctxexp.command import Experiment
from ctxexp.dataset import check_corpus, deduplicate
from ctxexp.errors import DataError
from tests.composed import composed, registry_of


def test_a_strangers_corpus_is_checked_where_it_comes_in() -> None:
    wrong = Corpus("c", (Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5))),))

    class Mine:
        @staticmethod
        @hookimpl
        def register_datasets(register: Register) -> None:
            register("mine", lambda: wrong)

    registry = registry_of([("mine", Mine)])
    config = composed(registry=registry, dataset={"name": "mine"})
    with pytest.raises(DataError, match=r"sentence 0, 'a bank': the span .* \[dataset 'mine' is of "):
        _ = Experiment(config).corpus


def test_fingerprint_sees_text_spans_and_order() -> None:
    base = Corpus.of("x", [["a", "b"], ["c"]])
    assert base.fingerprint == Corpus.of("other name", [["a", "b"], ["c"]]).fingerprint
    assert base.fingerprint != Corpus.of("x", [["c"], ["a", "b"]]).fingerprint
    assert base.fingerprint != Corpus.of("x", [["a b"], ["c"]]).fingerprint  # the same text, other words
    assert len(base.fingerprint) == 32


def test_deduplication_moves_pairs_and_senses_to_the_first_copy() -> None:
    corpus = Corpus.of("x", [["a"], ["b"], ["a"], ["c"]])
    corpus = Corpus("x", corpus.sentences, (Pair(2, 3, 1.0), Pair(0, 1, 2.0)), (Sense(0, 0, "s"), Sense(2, 0, "s")))
    once = deduplicate(corpus)
    assert [s.text for s in once.sentences] == ["a", "b", "c"]
    assert once.pairs == (Pair(0, 2, 1.0), Pair(0, 1, 2.0))
    assert once.senses == (Sense(0, 0, "s"),)
    assert once.choices["deduplicate"] == "true"


def test_a_sentence_belongs_to_the_document_where_it_first_stands() -> None:
    sentences = Corpus.of("x", [["a"], ["b"], ["a"], ["c"], ["b"]]).sentences
    corpus = Corpus("x", sentences, documents=(0, 0, 1, 1, 2))
    assert deduplicate(corpus).documents == (0, 0, 1)
    assert deduplicate(Corpus("x", sentences)).documents is None
    with pytest.raises(DataError, match=r"corpus 'x': documents of 2 sentences, but it has 5; expected one document"):
        check_corpus(Corpus("x", sentences, documents=(0, 1)))


def test_tags_stay_with_their_words() -> None:
    """Copies of a sentence fill each other's gaps; what a data set holds beside stays."""

    class Dated(Corpus):
        pass

    corpus = Dated("x", Corpus.of("x", [["a", "b"], ["c"], ["a", "b"]]).sentences)
    tags = (("", "N"), ("V",), ("D", "X"))
    corpus = replace(corpus, tags={"pos": tags})
    check_corpus(corpus)
    once = deduplicate(corpus)
    assert isinstance(once, Dated)
    assert once.tags == {"pos": (("D", "N"), ("V",))}
    with pytest.raises(DataError, match=r"corpus 'x': tags 'pos' are not one a word of each of its sentences"):
        check_corpus(replace(corpus, tags={"pos": tags[:2]}))
    with pytest.raises(DataError, match="tags 'pos' are not one a word"):
        check_corpus(replace(corpus, tags={"pos": (("", "N"), (), ("D", "X"))}))
