"""What is measured: sentences as words with their character spans, gold pairs, sense labels."""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice

import numpy as np

from ctxexp.datasets.bound import Bound
from ctxexp.errors import DataError, is_text


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: the text that a tokenizer reads, and the words that get a vector each.

    `text[start:end] == word` for each word and its span; spans ascend and don't overlap. Characters between
    spans (white space, and nothing else for the built-in word tokenizers) belong to no word.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # one (start, end) per word, in characters of `text`

    def __post_init__(self) -> None:
        if len(self.words) != len(self.spans):
            raise DataError(f"{len(self.words)} words but {len(self.spans)} spans in {self.text[:60]!r}")

    @classmethod
    def of(cls, words: Iterable[str]) -> Sentence:
        """The sentence whose text is `words` joined by single spaces."""
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
    """Two sentences (by index in the corpus) with a gold similarity; `subset` names the part of the set."""

    first: int
    second: int
    gold: float
    subset: str = ""


@dataclass(frozen=True, slots=True)
class Sense:
    """The labelled sense of one occurrence: word `position` of sentence `sentence`."""

    sentence: int
    position: int
    label: str


Tags = tuple[tuple[str, ...], ...]
"""A label for each word of each sentence, "" for none."""


@dataclass(frozen=True)
class Corpus:
    """Sentences of one data set, with whatever gold annotation it brings.

    `choices` names every choice that shaped the sentences (tokenizer, case, deduplication, ...): they are
    logged with each run. `documents` numbers the document of each sentence, where it is known: sentences of one are not
    independent, so that intervals draw whole documents. `tags` are what else is known of words, by kind (`lemma`,
    `pos`, `period` ...). Data sets may derive from it to hold more; what they hold may point to words by their tags,
    which follow them, never by numbers.
    """

    name: str
    sentences: tuple[Sentence, ...]
    pairs: tuple[Pair, ...] = ()
    senses: tuple[Sense, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)
    documents: tuple[int, ...] | None = None
    tags: dict[str, Tags] = field(default_factory=dict)
    bound: Bound | None = None  # None: every word is measured

    @classmethod
    def of(cls, name: str, sentences: Iterable[Sequence[str]]) -> Corpus:
        """A corpus of word lists; handy in tests and plugins."""
        return cls(name, tuple(Sentence.of(words) for words in sentences))

    @property
    def n_words(self) -> int:
        """Words over all sentences, punctuation included."""
        return sum(len(s) for s in self.sentences)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest (32 digits) of the sentences' texts and spans, and of which words are bounded away: equal iff the
        stored rows are."""
        digest = fingerprint(self.sentences)
        return (
            digest
            if self.bound is None
            else hashlib.blake2b(f"{digest} {self.bound}".encode(), digest_size=16).hexdigest()
        )

    @property
    def entire(self) -> Corpus:
        """The corpus that a bounded one was taken from, where memory holds it; else itself."""
        return self if self.bound is None or self.bound.entire is None else self.bound.entire

    @property
    def running(self) -> Sequence[Sentence]:
        """Sentences in which words are as frequent as in the text: all, or the whole ones of a bounded corpus."""
        bound = self.entire.bound
        return self.entire.sentences if bound is None else [self.sentences[i] for i in np.flatnonzero(bound.whole)]

    @cached_property
    def content(self) -> str:
        """Hex digest (32 digits) of all that measures read: sentences, gold pairs, senses, whatever else it holds."""
        held = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("name", "sentences", "choices")}
        whole = "" if self.entire is self else self.entire.content
        return hashlib.blake2b(f"{self.fingerprint} {held}{whole}".encode(), digest_size=16).hexdigest()


class Shards(ABC):
    """Text that is read again whenever it is needed, part by part, and never held whole: what a data set gives in
    place of a Corpus where that may not fit the memory. It is pickled to be read by other processes.

    `parts` are small, and are read in any order; a document lies in one part. `choices` are those of a Corpus.
    """

    name: str
    choices: Mapping[str, str]
    parts: Sequence[object]

    @abstractmethod
    def texts(self, part: object) -> Iterator[tuple[int | None, str | Sentence]]:
        """The texts of a part, or sentences where words are known, each after its document's number; None: documents
        aren't known. A document's texts follow each other."""

    @abstractmethod
    def sentence(self, text: str) -> Sentence:
        """A text as words."""

    def words(self, text: str | Sentence) -> Sentence:
        """What `texts` gave, as words."""
        return self.sentence(text) if isinstance(text, str) else text

    def corpus(self, limit: int | None = None) -> Corpus:
        """All of it in memory, or its first sentences."""
        sentences: list[Sentence] = []
        documents: list[int] = []
        number: dict[tuple[int, int | None], int] = {}
        every = ((i, document, text) for i, part in enumerate(self.parts) for document, text in self.texts(part))
        for i, document, text in islice(every, limit):
            sentences.append(self.words(text))
            documents.append(-1 if document is None else number.setdefault((i, document), len(number)))
        known = None if -1 in documents else tuple(documents)
        return Corpus(self.name, tuple(sentences), choices=dict(self.choices), documents=known)


def fingerprint(sentences: Iterable[Sentence]) -> str:
    """Hex digest (32 digits) of texts and spans, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        text = sentence.text.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(4, "little") + text)
        spans = ",".join(f"{a}:{b}" for a, b in sentence.spans).encode()
        digest.update(len(spans).to_bytes(4, "little") + spans)
    return digest.hexdigest()


def deduplicated(corpus: Corpus) -> Corpus:
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
        kept = dict(zip(reversed(position), reversed(corpus.documents), strict=True))  # where each first stands
        documents = tuple(kept[i] for i in range(len(first)))
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
    held: list[tuple[str, ...]] = [()] * n
    for i, of in zip(position, tags, strict=True):
        held[i] = tuple(a or b for a, b in zip(held[i], of, strict=True)) if held[i] else of
    return tuple(held)


def check_corpus(corpus: Corpus) -> None:
    """Raise `DataError` unless the corpus keeps what the classes above say; they themselves trust who makes them."""
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
    seen: set[int] = set()
    for i, sentence in enumerate(corpus.sentences):
        if id(sentence) not in seen:
            seen.add(id(sentence))
            if wrong := _wrong(sentence):
                raise DataError(f"corpus {corpus.name!r}, sentence {i}{wrong}")


_NO_TEXT = re.compile("[\\0\ud800-\udfff]")


def _wrong(sentence: object) -> str:
    """What is wrong with a sentence, to stand after its number; empty if nothing is."""
    if not isinstance(sentence, Sentence):
        return f": expected a ctxexp.Sentence, got {type(sentence).__name__}"
    parts: tuple[object, object, object] = (
        sentence.text,
        sentence.words,
        sentence.spans,
    )  # annotations hold nobody to them
    text, words, spans = parts
    if not isinstance(text, str) or not isinstance(words, tuple) or not isinstance(spans, tuple):
        return ": expected a text, a tuple of words and a tuple of spans"
    where = f", {text[:40]!r}"
    if _NO_TEXT.search(text):
        return f"{where}: it holds a NUL or half of a surrogate pair, which no text does; was it decoded as what it is?"
    try:
        held = tuple(text[a:b] for a, b in spans)
        ends = list(chain.from_iterable(spans))
    except (TypeError, ValueError):
        return f"{where}: a span is a pair of whole numbers, the first and the one after the last character"
    if held != words:
        k = next(k for k, (a, b) in enumerate(zip(held, words, strict=True)) if a != b)
        return f"{where}: the span {spans[k]} holds {held[k]!r}, the word is {words[k]!r}"
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


def overlap(text: Corpus, corpus: Corpus) -> float:
    """The share of the corpus's distinct sentences that are in the text, in [0, 1]."""
    measured = {sentence.text for sentence in corpus.sentences}
    return len(measured & {sentence.text for sentence in text.sentences}) / len(measured)
