"""A corpus with at most so many occurrences of each word: chosen by hash in one pass over the text, fetched in another.

What is left doesn't depend on the order of the text, on its parts, or on who reads them: sentences stand in the order
of their hashes, documents in that of the sum of theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from ctxexp.dataset import Corpus, Sentence, Shards
from ctxexp.datasets.bound import Bound
from ctxexp.datasets.sketch import Limits, Sketch, digest
from ctxexp.engine import Engine
from ctxexp.engines.local import Local
from ctxexp.errors import DataError
from ctxexp.progress import Progress, Silent

log = logging.getLogger("ctxexp")

R = TypeVar("R")


class Found(NamedTuple):
    """A sentence that is taken, and the document that it counts for: of several the smallest."""

    document: int  # the sum of its sentences' digests
    text: str | Sentence


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How much of a text is measured, and which of its units are words."""

    max_contexts: int
    max_sentences: int
    min_contexts: int
    form: Callable[[str], str | None]
    sample: int | None = None
    seed: int = 0


class Held(Shards):
    """A corpus in memory, read as if it were streamed."""

    parts = (0,)

    def __init__(self, corpus: Corpus) -> None:
        self.held, self.name, self.choices = corpus, corpus.name, corpus.choices
        if len({sentence.text for sentence in corpus.sentences}) < len(set(corpus.sentences)):
            raise DataError(f"{corpus.name}: two sentences have one text but other words, which no bound tells apart")

    def texts(self, part: object) -> Iterator[tuple[int | None, Sentence]]:
        sentences, documents = self.held.sentences, self.held.documents
        if documents is None:
            yield from ((None, sentence) for sentence in sentences)
        else:
            yield from ((documents[i], sentences[i]) for i in np.argsort(documents, kind="stable").tolist())

    def sentence(self, text: str) -> Sentence:
        raise AssertionError("its texts are sentences")


def bounded(
    text: Corpus | Shards, bounds: Bounds, *, engine: Engine | None = None, progress: Progress | None = None
) -> Corpus:
    """The corpus of the text's sentences that hold a chosen occurrence, and of the whole sentences, with its `bound`.

    Of a Corpus senses are kept, gold pairs in `entire` alone. Raises DataError for a text without a sentence, or one
    that changes while it is read.
    """
    shards = Held(text) if isinstance(text, Corpus) else text
    reading = partial(_each, shards, engine or Local(), progress or Silent())
    sketch: Sketch | None = None
    for part in reading(_Planning(shards, bounds), "choose contexts"):
        sketch = part if sketch is None else sketch.merged(part)
    if sketch is None or not sketch.n_sentences:
        raise DataError(f"{shards.name} has no sentence: expected UTF-8 text, a sentence a line")
    taken = sketch.taken(min_contexts=bounds.min_contexts, sample=bounds.sample)
    wanted = np.union1d(taken.digests, taken.whole)
    found: dict[int, Found] = {}
    for some in reading(_Fetching(shards, wanted), "fetch sentences"):
        for key, one in some.items():
            found[key] = min(one, found.get(key, one), key=lambda one: one.document)
    if len(found) < len(wanted):
        raise DataError(
            f"{shards.name}: {len(wanted) - len(found):,} of {len(wanted):,} chosen sentences weren't there when it "
            "was read again; does it change?"
        )
    log.info(
        "%s: %s of %s words are measured, in %s of %s sentences",
        shards.name, f"{len(taken.digests):,}", f"{sketch.n_words:,}", f"{len(wanted):,}", f"{sketch.n_sentences:,}",
    )  # fmt: skip
    sentences = [found[key] for key in wanted.tolist()]
    held = shards.held if isinstance(shards, Held) else None
    of = np.searchsorted(wanted, taken.digests)
    order = np.lexsort((taken.positions, of))
    documents = np.unique([one.document for one in sentences], return_inverse=True)[1]
    return replace(
        _annotated(held, wanted) if held else Corpus(shards.name, (), choices=dict(shards.choices)),
        sentences=tuple(shards.words(one.text) for one in sentences),
        documents=tuple(documents.tolist()) if sketch.documents else None,
        bound=Bound(
            max_contexts=bounds.max_contexts,
            starts=np.searchsorted(of[order], np.arange(len(wanted) + 1)),
            positions=taken.positions[order].astype(np.int64),
            whole=np.isin(wanted, taken.whole),
            text_sentences=sketch.n_sentences,
            text_words=sketch.n_words,
            entire=held,
        ),
    )


def _each(
    shards: Shards,
    engine: Engine,
    progress: Progress,
    work: Callable[[], Callable[[object], R]],
    title: str,
) -> Iterator[R]:
    """What the work makes of each part of the text, in whatever order."""
    with progress.stage(title, total=len(shards.parts), unit="parts") as stage:
        for result in engine.each(work, shards.parts):
            yield result
            stage.advance(1)


@dataclass(frozen=True)
class _Planning:
    """What reads a part into a sketch."""

    shards: Shards
    bounds: Bounds

    def __call__(self) -> Callable[[object], Sketch]:
        return self.read

    def read(self, part: object) -> Sketch:
        b = self.bounds
        sketch = Sketch(Limits(b.max_contexts, b.max_sentences, b.seed), b.form)
        for document, text in self.shards.texts(part):
            sketch.add(_digest(text), self.shards.words(text).words)
            sketch.documents = document is not None
        sketch.settle()
        return sketch


@dataclass(frozen=True)
class _Fetching:
    """What reads the wanted sentences of a part, by their digests."""

    shards: Shards
    wanted: np.ndarray  # uint64

    def __call__(self) -> Callable[[object], dict[int, Found]]:
        return partial(self.read, frozenset(self.wanted.tolist()))

    def read(self, wanted: frozenset[int], part: object) -> dict[int, Found]:
        found: dict[int, Found] = {}
        for _, texts in groupby(self.shards.texts(part), key=itemgetter(0)):
            held, document = {}, 0
            for _, text in texts:
                key = _digest(text)
                document = (document + key) % 2**63
                if key in wanted:
                    held[key] = text
            for key, text in held.items():
                found[key] = min(Found(document, text), found.get(key, Found(2**63, text)), key=itemgetter(0))
        return found


def _digest(text: str | Sentence) -> int:
    """64 bits of a text."""
    return digest(text if isinstance(text, str) else text.text)


def _annotated(corpus: Corpus, wanted: np.ndarray) -> Corpus:
    """The corpus with the senses and tags of the sentences that are left, by their numbers there, and no pairs."""
    number = {key: i for i, key in enumerate(wanted.tolist())}
    place = [number.get(_digest(sentence)) for sentence in corpus.sentences]
    senses = (replace(sense, sentence=i) for sense in corpus.senses if (i := place[sense.sentence]) is not None)
    of = np.full(len(wanted), -1)
    for old, new in reversed(list(enumerate(place))):
        if new is not None:
            of[new] = old
    tags = {kind: tuple(tags[i] for i in of.tolist()) for kind, tags in corpus.tags.items()}
    return replace(corpus, pairs=(), senses=tuple(senses), tags=tags)
