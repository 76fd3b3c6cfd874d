"""Sentences, fingerprints and deduplication."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxexp import Corpus, Pair, Register, Sense, Sentence, hookimpl
from ctxexp.command import Built
from ctxexp.datasets.checks import check_corpus, check_gold, check_sentences, deduplicate
from ctxexp.errors import DataError
from ctxexp.plugins import build_registry
from tests.composed import composed


def test_words_joined_by_spaces_keep_their_spans() -> None:
    sentence = Sentence.of(["a", "bc", "d"])
    assert sentence.text == "a bc d"
    assert [sentence.text[a:b] for a, b in sentence.spans] == ["a", "bc", "d"]


def test_spans_must_match_words() -> None:
    with pytest.raises(DataError, match="2 words but 1 spans in 'a b'"):
        Sentence("a b", ("a", "b"), ((0, 1),))


NAMED = r"^corpus 'c', sentence 0"


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (
            Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5))),
            r".*: the span \(1, 5\) holds ' ban', the word is 'bank'",
        ),
        (Sentence("a bank", ("bank", "a"), ((2, 6), (0, 1))), r".*: spans ascend without overlap within the text"),
        (Sentence("aa", ("aa", "a"), ((0, 2), (1, 2))), r".*: spans ascend without overlap"),
        (Sentence("a", ("a",), ((-1, 1),)), r".*: the span \(-1, 1\) holds 'a', the word is 'a'|.*: spans ascend"),
        (Sentence("a", ("a",), ((0, 9),)), r".*: spans ascend without overlap within the text"),
        (Sentence("a b", ("a", " "), ((0, 1), (1, 2))), r".* no word is blank"),
        (Sentence("a", ("a",), ((0.0, 1.0),)), r", 'a': a span is a pair of whole numbers"),  # type: ignore[arg-type]
        (Sentence("a", ("a",), ((0, 1, 2),)), r", 'a': a span is a pair of whole numbers"),  # type: ignore[arg-type]
        (Sentence("a", ["a"], ((0, 1),)), r": expected a text, a tuple of words"),  # type: ignore[arg-type]
        (Sentence("a\0b", ("a\0b",), ((0, 3),)), r".*: it holds a NUL or half of a surrogate pair, which no text does"),
        (Sentence("\ud800", ("\ud800",), ((0, 1),)), r".*: it holds a NUL or half of a surrogate pair"),
        ("a bank", r": expected a ctxexp\.Sentence, got str"),
    ],
)
def test_sentences_that_contradict_themselves_are_refused(sentence: Sentence, message: str) -> None:
    with pytest.raises(DataError, match=NAMED + message):
        check_sentences(Corpus("c", (sentence, sentence)))


def test_whole_sentences_pass() -> None:
    spaced = Sentence(" a  b", ("a", "b"), ((1, 2), (4, 5)))
    check_sentences(Corpus("c", (Sentence("", (), ()), spaced, Sentence.of("漢字"))))


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus("c", [Sentence.of("a")]), r"^corpus 'c': expected a tuple of sentences, got \[Sentence"),  # type: ignore[arg-type]
        (Corpus("c", ()), r"^corpus 'c': expected a tuple of sentences, got \(\)"),
        (Corpus(7, (Sentence.of("a"),)), r"^a corpus's name is 7; expected a text for charts and tables"),  # type: ignore[arg-type]
        (Corpus("c", (Sentence.of("a"),), choices={"n": 3}), r"^corpus 'c': choices are texts by name, got \{'n': 3\}"),  # type: ignore[dict-item]
        (Corpus("c", (Sentence("a", ("b",), ((0, 1),)),)), "the word is 'b'"),
        (Corpus("c", (Sentence.of("a"),), (Pair(0, 1, 1.0),)), "points outside the 1 sentences"),
    ],
)
def test_a_corpus_is_what_its_class_says(corpus: Corpus, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_corpus(corpus)


def test_gold_that_points_nowhere_is_refused() -> None:
    one = (Sentence.of("ab"),)
    check_gold(Corpus("c", one, (Pair(0, 0, 1.0),), (Sense(0, 1, "s"),)))
    for pair in (Pair(0, 1, 1.0), Pair(-1, 0, 1.0), Pair(0, 0, float("nan"))):
        with pytest.raises(DataError, match=r"^corpus 'c': Pair.* points outside the 1 sentences, or its gold"):
            check_gold(Corpus("c", one, (pair,)))
    with pytest.raises(DataError, match=r"^corpus 'c': Sense.* points to no word of the corpus"):
        check_gold(Corpus("c", one, (), (Sense(0, 2, "s"),)))


def test_a_strangers_corpus_is_checked_where_it_comes_in() -> None:
    wrong = Corpus("c", (Sentence("a bank", ("a", "bank"), ((0, 1), (1, 5))),))

    class Mine:
        @staticmethod
        @hookimpl
        def register_datasets(register: Register) -> None:
            register("mine", lambda: wrong)

    registry = build_registry([("mine", Mine)], installed=False)
    config = composed(registry=registry, dataset={"name": "mine"})
    with pytest.raises(DataError, match=r"sentence 0, 'a bank': the span .* \[dataset 'mine' is of "):
        _ = Built(config).corpus


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
