"""A text in shards: read once to find its words, and again by the worker that encodes a shard; never held in memory,
but for a digest of each sentence.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np

from ctxexp import Corpus, Engine, Sentence
from ctxexp.command import Progress
from ctxexp.datasets import TextStream
from ctxexp.errors import DataError
from ctxexp_scale.bounded import MemoryShards, hash_text

log = logging.getLogger("ctxexp")


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """Options of a text in shards: their number; the word that a unit counts for (`form`; None: none), which needs
    `min_contexts` distinct sentences; `sample`: so many words, by hash of `seed` (None: all)."""

    shards: int
    form: Callable[[str], str | None]
    min_contexts: int
    sample: int | None = None
    seed: int = 0


def digest(content: bytes) -> str:
    """32 hex digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class Share(NamedTuple):
    """Every `step`-th document of a part of the text, or sentence where documents aren't known, from number `first`."""

    part: int
    first: int
    step: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShardedText(Corpus):
    """A text in shards, of which every sentence counts once, whichever parts it stands in; none is in memory. Measured
    are `words` only, those that may reach enough contexts."""

    text: TextStream
    words: tuple[str, ...]  # sorted
    shards: tuple[tuple[Share, ...], ...]
    copies: Mapping[int, np.ndarray]  # by part: digests of sentences that an earlier part has
    has_documents: bool  # whether shards hold whole documents
    n_distinct: int  # sentences
    text_sentences: int  # as often as they stand there
    text_words: int
    identity: str  # hex digits of the sentences, in whatever order
    layout: str  # hex digits of them in theirs

    @cached_property
    def fingerprint(self) -> str:
        return self.identity

    @cached_property
    def content(self) -> str:
        return digest(f"{self.layout} {self.shards} {self.words}".encode())

    def read(self, shard: int) -> Iterator[Sentence]:
        """The sentences of a shard."""
        for share in self.shards[shard]:
            copies = set(self.copies.get(share.part, np.empty(0, np.uint64)).tolist())
            for one in _number_texts(self.text, self.text.parts[share.part]):
                if one.key not in copies and one.number % share.step == share.first:
                    yield self.text.as_sentence(one.text)
                copies.add(one.key)


class _PartSummary(NamedTuple):
    """The sentences and words of a part, counted."""

    part: int
    digests: np.ndarray  # of its sentences, each once, sorted
    contexts: Counter[str]  # by word, sentences that hold it
    n_sentences: int
    n_words: int
    has_documents: bool
    layout: str


def _read_part(text: TextStream, form: Callable[[str], str | None], part: int) -> _PartSummary:
    contexts: Counter[str] = Counter()
    form_of = cache(lambda unit: form(unit) or "")
    keys: set[int] = set()
    n_sentences, n_words, has_documents, layout = 0, 0, True, hashlib.blake2b(digest_size=16)
    for one in _number_texts(text, text.parts[part]):
        words = text.as_sentence(one.text).words
        n_sentences, n_words, has_documents = n_sentences + 1, n_words + len(words), one.has_document
        layout.update(f"{one.number} {one.key} ".encode())
        if one.key not in keys:
            keys.add(one.key)
            contexts.update({form_of(word) for word in words})
    contexts.pop("", None)
    digests = np.sort(np.fromiter(keys, np.uint64, len(keys)))
    return _PartSummary(part, digests, contexts, n_sentences, n_words, has_documents, layout.hexdigest())


class _NumberedText(NamedTuple):
    """A text of a part, with its document's number."""

    number: int  # of its document in the part; where documents aren't known, its own
    key: int
    text: str | Sentence
    has_document: bool


def _number_texts(text: TextStream, part: object) -> Iterator[_NumberedText]:
    """The texts of a part."""
    number, last = -1, object()
    for document, one in text.texts(part):
        number += document is None or document != last
        last = document
        yield _NumberedText(number, hash_text(one), one, document is not None)


def shard_text(text: Corpus | TextStream, options: ShardOptions, engine: Engine, progress: Progress) -> ShardedText:
    """The text in shards, with the words that may reach enough contexts. Raises DataError for one without a sentence
    or a word."""
    source = MemoryShards(text) if isinstance(text, Corpus) else text
    contexts: Counter[str] = Counter()
    parts: list[_PartSummary] = []
    with progress.stage("read text", total=len(source.parts), unit="parts") as stage:
        make_reader = partial(partial, _read_part, source, options.form)  # each worker calls it once, and gets a reader
        for part in engine.map_unordered(make_reader, range(len(source.parts))):
            contexts.update(part.contexts)
            parts.append(part._replace(contexts=Counter()))
            stage.advance(1)
    parts.sort(key=lambda part: part.part)
    digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in parts)])
    distinct, first = np.unique(digests, return_index=True)  # of equal ones the earliest part's
    is_copy = np.ones(len(digests), bool)
    is_copy[first] = False
    part_of = np.repeat(np.arange(len(parts)), [len(part.digests) for part in parts])
    copies = {part: digests[is_copy & (part_of == part)] for part in np.unique(part_of[is_copy]).tolist()}
    n_words = sum(part.n_words for part in parts)
    if not len(distinct):
        raise DataError(f"{source.name} has no sentence: expected UTF-8 text, a sentence a line")
    if not contexts:  # no model is loaded for it
        raise DataError(
            f"corpus {source.name!r} has no word to measure: all {n_words:,} are left out (words.punctuation=...)"
        )
    log.info("%s: %s sentences once each, in %d shards", source.name, f"{len(distinct):,}", options.shards)
    return ShardedText(
        source.name,
        (),
        choices=dict(source.choices),
        text=source,
        words=_words_to_measure(contexts, options),
        shards=_shares(len(source.parts), options.shards),
        copies=copies,
        has_documents=all(part.has_documents for part in parts),
        n_distinct=len(distinct),
        text_sentences=sum(part.n_sentences for part in parts),
        text_words=n_words,
        identity=digest(distinct.astype("<u8").tobytes()),
        layout=digest(str([part.layout for part in parts]).encode()),
    )


def _words_to_measure(contexts: Counter[str], options: ShardOptions) -> tuple[str, ...]:
    """The words in enough sentences, else a warning. A sentence in several parts counts in each, so that no word is
    lost by mistake."""
    sample, min_contexts = options.sample, options.min_contexts
    words = sorted(word for word, n in contexts.items() if n >= min_contexts)
    if not words and contexts:
        word, n = max(contexts.items(), key=lambda item: (item[1], item[0]))
        log.warning(
            f"no word reaches min_contexts={min_contexts} distinct sentences; the most frequent, {word[:40]!r}, has "
            f"{n:,}: measures over words are undefined (NaN) in every layer"
        )
    if sample is not None and sample < len(words):
        words = sorted(sorted(words, key=lambda word: hash_text(word, options.seed))[:sample])  # those of a bounded run
    return tuple(words)


def _shares(parts: int, shards: int) -> tuple[tuple[Share, ...], ...]:
    """Shards of about equal size: whole parts, or of fewer parts than shards a share of one each."""
    if parts >= shards:
        return tuple(tuple(Share(part, 0, 1) for part in range(k, parts, shards)) for k in range(shards))
    steps = [len(range(part, shards, parts)) for part in range(parts)]
    return tuple((Share(part, k, step),) for part, step in enumerate(steps) for k in range(step))
