"""A text that is larger than its rows: bounded, with at most so many occurrences of each word, or streamed, where it
measures itself and no row is stored.

One pass over the text samples occurrences by hash, another fetches their sentences. What is left doesn't depend on
the order of the text, on its parts, or on the engine: sentences are ordered by their hashes, documents by the sum of
theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ctxexp.dataset import Corpus, CorpusBound, Sentence, TextStream
from ctxexp.datasets.sketch import ContextSketch, Limits, digest
from ctxexp.engine import Engine
from ctxexp.engines import Local
from ctxexp.errors import DataError
from ctxexp.progress import Progress

if TYPE_CHECKING:
    pass

log = logging.getLogger("ctxexp")
R = TypeVar("R")


class SentenceHit(NamedTuple):
    """A sentence of the sample, and the document that it counts for: if several hold it, the one with the lowest id."""

    document: int  # its id: the sum of its sentences' digests
    text: str | Sentence


@dataclass(frozen=True, kw_only=True)
class BoundOptions:
    """Limits on how much of a text is measured: a random sample of the occurrences of each word, and a random sample of
    sentences, which are measured in full. The corpus holds the sentences of both.

    `max_contexts`: occurrences of a word at most. `max_sentences`: sentences that are measured in full, at most.
    `min_contexts`: distinct sentences that a word needs to be measured. `form`: gives the word that a unit counts for,
    None if it isn't measured. `sample`: number of words that are measured, at random; None: all.
    """

    max_contexts: int
    max_sentences: int
    min_contexts: int
    form: Callable[[str], str | None]
    sample: int | None = None
    seed: int = 0


class MemoryShards(TextStream):
    """A corpus in memory, read as if it were streamed."""

    parts = (0,)

    def __init__(self, corpus: Corpus) -> None:
        self.source, self.name, self.choices = corpus, corpus.name, corpus.choices
        if len({sentence.text for sentence in corpus.sentences}) < len(set(corpus.sentences)):
            raise DataError(f"{corpus.name}: two sentences have one text but other words, which no bound tells apart")

    def texts(self, part: object) -> Iterator[tuple[int | None, Sentence]]:
        sentences, documents = self.source.sentences, self.source.clusters
        if documents is None:
            yield from ((None, sentence) for sentence in sentences)
        else:
            yield from ((documents[i], sentences[i]) for i in np.argsort(documents, kind="stable").tolist())

    def sentence(self, text: str) -> Sentence:
        raise AssertionError("its texts are sentences")


def bound_corpus(
    text: Corpus | TextStream, bounds: BoundOptions, *, engine: Engine | None = None, progress: Progress | None = None
) -> Corpus:
    """The corpus of the sentences that hold a sampled occurrence or are sampled themselves; its `bound` says which
    occurrences and which sentences are measured.

    Senses and tags of a Corpus are kept; its gold pairs are in `bound.source` only. Raises DataError for a text without
    a sentence, or one that changes while it is read.
    """
    shards = MemoryShards(text) if isinstance(text, Corpus) else text
    reading = partial(_each_part, shards, engine or Local(), Progress.of(progress))
    sketch: ContextSketch | None = None
    for part in reading(_SketchPart(shards, bounds), "choose contexts"):
        sketch = part if sketch is None else sketch.merge(part)
    if sketch is None or not sketch.n_sentences:
        raise DataError(f"{shards.name} has no sentence: expected UTF-8 text, a sentence a line")
    sample = sketch.sample(min_contexts=bounds.min_contexts, sample=bounds.sample)
    digests = np.union1d(sample.digests, sample.sentences)
    hits: dict[int, SentenceHit] = {}
    for hits_of_part in reading(_FetchSentences(shards, digests), "fetch sentences"):
        for key, one in hits_of_part.items():
            hits[key] = min(one, hits.get(key, one), key=lambda one: one.document)
    if len(hits) < len(digests):
        raise DataError(
            f"{shards.name}: {len(digests) - len(hits):,} of {len(digests):,} chosen sentences weren't there when it "
            "was read again; does it change?"
        )
    log.info(
        "%s: %s of %s words are measured, in %s of %s sentences",
        shards.name, f"{len(sample.digests):,}", f"{sketch.n_words:,}", f"{len(digests):,}", f"{sketch.n_sentences:,}",
    )  # fmt: skip
    sentences = [hits[key] for key in digests.tolist()]
    corpus = shards.source if isinstance(shards, MemoryShards) else None
    sentence_of = np.searchsorted(digests, sample.digests)
    order = np.lexsort((sample.positions, sentence_of))
    documents = np.unique([one.document for one in sentences], return_inverse=True)[1]
    return replace(
        _keep_annotations(corpus, digests) if corpus else Corpus(shards.name, (), choices=dict(shards.choices)),
        sentences=tuple(shards.words(one.text) for one in sentences),
        documents=tuple(documents.tolist()) if sketch.documents else None,
        bound=CorpusBound(
            max_contexts=bounds.max_contexts,
            starts=np.searchsorted(sentence_of[order], np.arange(len(digests) + 1)),
            positions=sample.positions[order].astype(np.int64),
            is_fully_measured=np.isin(digests, sample.sentences),
            text_sentences=sketch.n_sentences,
            text_words=sketch.n_words,
            word_counts=sample.counts,
            measured_words=sketch.n_measured,
            source=corpus,
        ),
    )


def _each_part(
    shards: TextStream,
    engine: Engine,
    progress: Progress,
    work: Callable[[], Callable[[object], R]],
    title: str,
) -> Iterator[R]:
    """Yield the result of `work` on each part of the text, in any order."""
    with progress.stage(title, total=len(shards.parts), unit="parts") as stage:
        for result in engine.map_unordered(work, shards.parts):
            yield result
            stage.advance(1)


@dataclass(frozen=True)
class _SketchPart:
    """Work of an engine (calling it gives the function of a part): reads a part of the text into a sketch."""

    shards: TextStream
    bounds: BoundOptions

    def __call__(self) -> Callable[[object], ContextSketch]:
        return self.read

    def read(self, part: object) -> ContextSketch:
        b = self.bounds
        sketch = ContextSketch(Limits(b.max_contexts, b.max_sentences, b.seed), b.form)
        for document, text in self.shards.texts(part):
            sketch.add(_digest(text), self.shards.words(text).words)
            sketch.documents = document is not None
        sketch.settle()
        return sketch


@dataclass(frozen=True)
class _FetchSentences:
    """Work of an engine: reads the sentences with these digests from a part of the text."""

    shards: TextStream
    digests: np.ndarray  # uint64

    def __call__(self) -> Callable[[object], dict[int, SentenceHit]]:
        return partial(self.read, frozenset(self.digests.tolist()))

    def read(self, digests: frozenset[int], part: object) -> dict[int, SentenceHit]:
        hits: dict[int, SentenceHit] = {}
        for _, texts in groupby(self.shards.texts(part), key=itemgetter(0)):
            text_by_digest, document = {}, 0
            for _, text in texts:
                key = _digest(text)
                document = (document + key) % 2**63
                if key in digests:
                    text_by_digest[key] = text
            for key, text in text_by_digest.items():
                hits[key] = min(SentenceHit(document, text), hits.get(key, SentenceHit(2**63, text)), key=itemgetter(0))
        return hits


def _digest(text: str | Sentence) -> int:
    """64 bits of a text."""
    return digest(text if isinstance(text, str) else text.text)


def _keep_annotations(corpus: Corpus, digests: np.ndarray) -> Corpus:
    """The corpus with the senses and tags of the remaining sentences, by the new sentence indices, and no pairs."""
    number = {key: i for i, key in enumerate(digests.tolist())}
    new_index = [number.get(_digest(sentence)) for sentence in corpus.sentences]
    senses = (replace(sense, sentence=i) for sense in corpus.senses if (i := new_index[sense.sentence]) is not None)
    old_index = np.full(len(digests), -1)
    for old, new in reversed(list(enumerate(new_index))):
        if new is not None:
            old_index[new] = old
    tags = {kind: tuple(tags[i] for i in old_index.tolist()) for kind, tags in corpus.tags.items()}
    return replace(corpus, pairs=(), senses=tuple(senses), tags=tags)
