"""The measured text: sentences as words with their character spans, gold pairs, sense labels. A corpus is checked by
`check_corpus`, not when it is made.
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

import numpy as np

from ctxexp.errors import DataError, is_text
from ctxexp.files import digest
from ctxexp.maths.statistics import components

_NO_TEXT = re.compile("[\\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: the text that a tokenizer reads, and the words that get a vector each.

    `text[start:end] == word` for each word and its span; spans ascend and don't overlap. Characters between
    spans (white space, and nothing else for the built-in word tokenizers) belong to no word.

    Args:
        text: The text.
        words: Its words, in order.
        spans: A (start, end) per word, in characters of the text.

    Raises:
        DataError: Words and spans are not equally many.

    Example:
        >>> sentence = Sentence("a bank.", ("a", "bank", "."), ((0, 1), (2, 6), (6, 7)))
        >>> len(sentence), Sentence.of(["a", "bank"]).text
        (3, 'a bank')
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # one (start, end) per word, in characters of `text`

    def __post_init__(self) -> None:
        if len(self.words) != len(self.spans):
            raise DataError(f"{len(self.words)} words but {len(self.spans)} spans in {self.text[:60]!r}")

    @classmethod
    def of(cls, words: Iterable[str]) -> Sentence:
        """The sentence whose text is these words joined by single spaces.

        Args:
            words: The words, in order.

        Returns:
            The sentence.

        Example:
            >>> Sentence.of(["a", "bank"])
            Sentence(text='a bank', words=('a', 'bank'), spans=((0, 1), (2, 6)))
        """
        words = tuple(words)
        spans: list[tuple[int, int]] = []
        at = 0
        for word in words:
            spans.append((at, at + len(word)))
            at += len(word) + 1
        return cls(" ".join(words), words, tuple(spans))

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences (by index in the corpus) with a gold similarity; `subset` names the part of the set.

    Example:
        >>> Pair(0, 1, gold=4.2, subset="STS12/MSRpar").gold
        4.2
    """

    first: int
    second: int
    gold: float
    subset: str = ""


@dataclass(frozen=True, slots=True)
class Sense:
    """The labelled sense of one occurrence: word `position` of sentence `sentence`.

    Example:
        >>> Sense(sentence=0, position=1, label="river").label
        'river'
    """

    sentence: int
    position: int
    label: str


Tags = tuple[tuple[str, ...], ...]
"""A label for each word of each sentence, "" for none."""


@dataclass(frozen=True)
class Corpus:
    """Sentences of one data set with its gold annotation.

    Data sets may derive from it to hold more; their own fields may point to words by tags, never by numbers.

    Args:
        name: Its name in figures and tables.
        sentences: The sentences.
        pairs: Gold pairs of sentences.
        senses: Labelled senses of occurrences.
        choices: Every choice that shaped the sentences (tokenizer, case, deduplication, ...), logged with each run.
        documents: The document's number of each sentence, or None where unknown: sentences of one document are not
            independent, so that intervals resample whole documents. Without them, sentences that gold pairs link
            are resampled together, and aren't drawn together as unrelated.
        tags: Other annotation of words by kind (`lemma`, `pos`, `period` ...).
        bound: The occurrences that are measured of a corpus with bounded contexts; None: every word.
        origin: What it was read from, for a run's first line: columns, rows, how many are left out; empty: not said.
        left_out: The number of rows that have no text.

    Example:
        >>> corpus = Corpus.of("two", [["a", "bank"], ["the", "bank", "of", "a", "river"]])
        >>> corpus.n_words, corpus.sentences[0].text
        (7, 'a bank')
    """

    name: str
    sentences: tuple[Sentence, ...]
    pairs: tuple[Pair, ...] = ()
    senses: tuple[Sense, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)
    documents: tuple[int, ...] | None = None
    tags: dict[str, Tags] = field(default_factory=dict)
    bound: CorpusBound | None = None  # None: every word is measured
    origin: str = field(default="", compare=False)
    left_out: int = field(default=0, compare=False)

    @classmethod
    def of(cls, name: str, sentences: Iterable[Sequence[str]]) -> Corpus:
        """A corpus of word lists; handy in tests and plugins.

        Args:
            name: Its name.
            sentences: The words of each sentence.

        Returns:
            The corpus, without annotation.

        Example:
            >>> [s.text for s in Corpus.of("two", [["a", "bank"], ["the", "river"]]).sentences]
            ['a bank', 'the river']
        """
        return cls(name, tuple(Sentence.of(words) for words in sentences))

    @property
    def n_words(self) -> int:
        """Words over all sentences, punctuation included."""
        return sum(len(s) for s in self.sentences)

    @cached_property
    def clusters(self) -> tuple[int, ...] | None:
        """The number of the cluster of each sentence: its document or, without documents, the sentences that gold pairs
        link to it, directly or through others, since they are alike; None: itself, or most sentences are linked."""
        if self.documents is not None or not self.pairs:
            return self.documents
        number: dict[Sentence, int] = {}  # equal sentences are one
        place = np.array([number.setdefault(sentence, i) for i, sentence in enumerate(self.sentences)])
        ends = place[[(pair.first, pair.second) for pair in self.pairs]]
        linked = components(ends, len(place))[place]
        return None if np.bincount(linked).max() > len(linked) / 2 else tuple(linked.tolist())

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest (32 digits) of the sentences' texts and spans, and of which words are bounded away: equal iff the
        stored rows are."""
        of_sentences = fingerprint(self.sentences)
        return of_sentences if self.bound is None else digest(f"{of_sentences} {self.bound}".encode())

    @property
    def unbounded(self) -> Corpus:
        """The corpus that a bounded one was taken from, where memory holds it; else itself."""
        return self if self.bound is None or self.bound.source is None else self.bound.source

    @property
    def running(self) -> Sequence[Sentence]:
        """Sentences in which words are as frequent as in the text: all, or the whole ones of a bounded corpus."""
        if (bound := self.unbounded.bound) is None:
            return self.unbounded.sentences
        return [self.sentences[i] for i in np.flatnonzero(bound.is_fully_measured)]

    @cached_property
    def content(self) -> str:
        """Hex digest (32 digits) of all that measures read: sentences, gold pairs, senses, whatever else it holds."""
        others = ("name", "sentences", "choices", "origin", "left_out")
        values = {f.name: vars(self)[f.name] for f in fields(self) if f.name not in others}
        source_digest = "" if self.unbounded is self else self.unbounded.content
        return digest(f"{self.fingerprint} {values}{source_digest}".encode())


class TextStream(ABC):
    """Text that is read part by part whenever it is needed, and never held in memory as a whole: a data set gives one
    in place of a Corpus where that may not fit. Other processes read it too, so it can be pickled.

    `parts` are small, and are read in any order; a document lies in one part. `choices` and `origin` are those of a
    Corpus.

    Example:
        >>> class Lines(TextStream):
        ...     name, choices, parts = "lines", {}, ["a bank", "the river"]
        ...     def texts(self, part):
        ...         yield None, part
        ...     def sentence(self, text):
        ...         return Sentence.of(text.split())
        >>> Lines().corpus(limit=1).sentences[0].words
        ('a', 'bank')
    """

    name: str
    choices: Mapping[str, str]
    parts: Sequence[object]

    @property
    def origin(self) -> str:
        """What is read, for a run's first line; empty: not said."""
        return ""

    @abstractmethod
    def texts(self, part: object) -> Iterator[tuple[int | None, str | Sentence]]:
        """The texts of a part.

        Args:
            part: One of `parts`.

        Returns:
            Pairs of a document's number (None: not known) and a text, or a sentence where words are known already. The
            texts of a document follow each other.
        """

    @abstractmethod
    def sentence(self, text: str) -> Sentence:
        """A text as words.

        Args:
            text: A text that `texts` yielded.

        Returns:
            The sentence.
        """

    def as_sentence(self, text: str | Sentence) -> Sentence:
        """A text, or a sentence, as a sentence.

        Args:
            text: What `texts` yielded.

        Returns:
            The sentence.
        """
        return self.sentence(text) if isinstance(text, str) else text

    def corpus(self, limit: int | None = None) -> Corpus:
        """The stream in memory.

        Args:
            limit: The number of sentences to read; None: all.

        Returns:
            The corpus of these sentences.
        """
        sentences: list[Sentence] = []
        documents: list[int] = []
        number: dict[tuple[int, int | None], int] = {}
        every = ((i, document, text) for i, part in enumerate(self.parts) for document, text in self.texts(part))
        for i, document, text in islice(every, limit):
            sentences.append(self.as_sentence(text))
            documents.append(-1 if document is None else number.setdefault((i, document), len(number)))
        document_numbers = None if -1 in documents else tuple(documents)
        return Corpus(self.name, tuple(sentences), choices=dict(self.choices), documents=document_numbers)


def fingerprint(sentences: Iterable[Sentence]) -> str:
    """Hex digest (32 digits) of texts and spans, in order."""
    hashed = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        text = sentence.text.encode("utf-8", "surrogatepass")
        hashed.update(len(text).to_bytes(4, "little") + text)
        spans = ",".join(f"{a}:{b}" for a, b in sentence.spans).encode()
        hashed.update(len(spans).to_bytes(4, "little") + spans)
    return hashed.hexdigest()


def overlap(text: Corpus, corpus: Corpus) -> float:
    """The share of the corpus's distinct sentences that are in the text, in [0, 1]."""
    corpus_texts = {sentence.text for sentence in corpus.sentences}
    return len(corpus_texts & {sentence.text for sentence in text.sentences}) / len(corpus_texts)


class CorpusBound(Protocol):
    """The occurrences of a corpus that have rows, where only some have: of sentence i the words
    `positions[starts[i]:starts[i + 1]]` as occurrences of their words, and all its words, as a sentence, where it is
    one of the sampled sentences (`is_fully_measured`). `word_counts` are the occurrences in the whole text of each word
    with contexts enough, repeated sentences counted, `measured_words` those of all words that are measured. `source` is
    the corpus that they were taken from, where memory holds it. Its text is a part of `Corpus.content`.
    """

    @property
    def max_contexts(self) -> int: ...
    @property
    def starts(self) -> np.ndarray: ...  # (n_sentences + 1,) int64
    @property
    def positions(self) -> np.ndarray: ...  # int64, ascending in each sentence
    @property
    def is_fully_measured(self) -> np.ndarray: ...  # (n_sentences,) bool
    @property
    def text_sentences(self) -> int: ...  # of the whole text, repetitions included
    @property
    def text_words(self) -> int: ...
    @property
    def word_counts(self) -> Mapping[str, int]: ...
    @property
    def measured_words(self) -> int: ...
    @property
    def source(self) -> Corpus | None: ...
    def of(self, sentence: int) -> np.ndarray: ...  # its words that are measured as words, (n,) ascending


def check_corpus(corpus: Corpus) -> None:
    """Raise `DataError` unless the corpus is as its classes describe it."""
    if not isinstance(corpus.name, str) or not corpus.name.strip() or not is_text(corpus.name):
        raise DataError(f"a corpus's name is {corpus.name!r}; expected a text for charts and tables")
    if not isinstance(corpus.sentences, tuple) or not corpus.sentences:
        raise DataError(f"corpus {corpus.name!r}: expected a tuple of sentences, got {str(corpus.sentences)[:40]}")
    if wrong := {k: v for k, v in corpus.choices.items() if not isinstance(k, str) or not isinstance(v, str)}:
        raise DataError(f"corpus {corpus.name!r}: choices are texts by name, got {str(wrong)[:80]}")
    if corpus.documents is not None and len(corpus.documents) != len(corpus.sentences):
        raise DataError(
            f"corpus {corpus.name!r}: documents of {len(corpus.documents)} sentences, but it has "
            f"{len(corpus.sentences)}; expected one document number a sentence, or none at all"
        )
    check_sentences(corpus)
    check_gold(corpus)
    for kind, tags in corpus.tags.items():
        if list(map(len, tags)) != list(map(len, corpus.sentences)):
            raise DataError(f"corpus {corpus.name!r}: tags {kind!r} are not one a word of each of its sentences")


def check_sentences(corpus: Corpus) -> None:
    """Raise `DataError` unless each word of each sentence is what the text has at its span, and no text is damaged."""
    checked_ids: set[int] = set()
    for i, sentence in enumerate(corpus.sentences):
        if id(sentence) not in checked_ids:
            checked_ids.add(id(sentence))
            if wrong := _wrong(sentence):
                raise DataError(f"corpus {corpus.name!r}, sentence {i}{wrong}")


def _wrong(sentence: object) -> str:
    """An error message on a sentence, to stand after its number; empty if it is valid."""
    if not isinstance(sentence, Sentence):
        return f": expected a ctxexp.Sentence, got {type(sentence).__name__}"
    parts: tuple[object, object, object] = sentence.text, sentence.words, sentence.spans  # annotations hold nobody
    text, words, spans = parts
    if not isinstance(text, str) or not isinstance(words, tuple) or not isinstance(spans, tuple):
        return ": expected a text, a tuple of words and a tuple of spans"
    where = f", {text[:40]!r}"
    if _NO_TEXT.search(text):
        return f"{where}: it holds a NUL or half of a surrogate pair, which no text does; was it decoded as what it is?"
    try:
        slices = tuple(text[a:b] for a, b in spans)
        ends = list(chain.from_iterable(spans))
    except (TypeError, ValueError):
        return f"{where}: a span is a pair of whole numbers, the first and the one after the last character"
    if slices != words:
        k = next(k for k, (a, b) in enumerate(zip(slices, words, strict=True)) if a != b)
        return f"{where}: the span {spans[k]} holds {slices[k]!r}, the word is {words[k]!r}"
    if not all(map(str.strip, words)) or ends != sorted(ends) or (ends and (ends[0] < 0 or ends[-1] > len(text))):
        return f"{where}: spans ascend without overlap within the text, and no word is blank; got {spans[:8]}"
    return ""


def check_gold(corpus: Corpus) -> None:
    """Raise `DataError` unless pairs and senses point to sentences and words that are there, and gold is a number."""
    n = len(corpus.sentences)
    for pair in corpus.pairs:
        if not (0 <= pair.first < n and 0 <= pair.second < n and math.isfinite(pair.gold)):
            raise DataError(
                f"corpus {corpus.name!r}: {pair} points outside the {n} sentences, or its gold is no number"
            )
    for sense in corpus.senses:
        if not 0 <= sense.sentence < n or not 0 <= sense.position < len(corpus.sentences[sense.sentence]):
            raise DataError(f"corpus {corpus.name!r}: {sense} points to no word of the corpus")


def deduplicate(corpus: Corpus) -> Corpus:
    """The corpus with each text once, first occurrences in order; pairs, senses and tags follow their sentence.

    Five copies of a sentence are one context, not five: without this a word can look context-independent because its
    sentences are equal. One with a bound holds none twice.
    """
    if corpus.bound is not None:
        return corpus
    first: dict[Sentence, int] = {}
    position = [first.setdefault(s, len(first)) for s in corpus.sentences]
    pairs = tuple(Pair(position[p.first], position[p.second], p.gold, p.subset) for p in corpus.pairs)
    senses = tuple(dict.fromkeys(Sense(position[s.sentence], s.position, s.label) for s in corpus.senses))
    documents = None
    if corpus.documents is not None:
        document_of = dict(zip(reversed(position), reversed(corpus.documents), strict=True))  # where each first stands
        documents = tuple(document_of[i] for i in range(len(first)))
    return replace(
        corpus,
        sentences=tuple(first),
        pairs=pairs,
        senses=senses,
        choices={**corpus.choices, "deduplicate": "true"},
        documents=documents,
        tags={kind: _once(tags, position, len(first)) for kind, tags in corpus.tags.items()},
    )


def _once(tags: Tags, position: Sequence[int], n: int) -> Tags:
    """The tags of n sentences, of which each may be there several times: the first tag of each word."""
    merged_tags: list[tuple[str, ...]] = [()] * n
    for i, of in zip(position, tags, strict=True):
        merged_tags[i] = tuple(a or b for a, b in zip(merged_tags[i], of, strict=True)) if merged_tags[i] else of
    return tuple(merged_tags)


def is_punctuation(word: str) -> bool:
    """Whether `word` has neither a letter nor a digit (symbols and emoji count as punctuation).

    Example:
        >>> is_punctuation("..."), is_punctuation("3.5")
        (True, False)
    """
    return not any(c.isalnum() for c in word)
