"""A text of which at most so many occurrences of each word are measured, so that it may be larger than memory.

One pass over the text samples occurrences by hash (the smallest of each word's, and the sentences of smallest hash),
another fetches their sentences. What is left doesn't depend on the order of the text, on its parts, or on the engine:
sentences are ordered by their hashes, documents by the sum of theirs.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from ctxexp import Corpus, Engine, Sentence, TextReader
from ctxexp.command import Progress
from ctxexp.datasets import TextStream
from ctxexp.errors import DataError

log = logging.getLogger("ctxexp")
R = TypeVar("R")
CHUNK_WORDS = 1 << 18  # words that are hashed at a time
NOT_MEASURED = -1
_LAST = np.uint64(2**64 - 1)


def hash_text(text: str | Sentence, seed: int = 0) -> int:
    """64 bits of a text, or of a sentence's, and a seed."""
    raw = (text if isinstance(text, str) else text.text).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8, salt=seed.to_bytes(8, "little")).digest(), "little")


def splitmix64(x: np.ndarray) -> np.ndarray:
    """Hash 64-bit integers: the finaliser of SplitMix64 (Steele, Lea and Flood 2014), in which each input bit can
    change every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return x


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


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """The occurrences of a corpus that have rows (`ctxexp.dataset.CorpusBound`): of sentence i the words
    `positions[starts[i]:starts[i + 1]]` as occurrences of their words, and all its words, as a sentence, where it is
    one of the sampled sentences (`is_fully_measured`). `source` is the corpus that they were taken from, where memory
    holds it."""

    max_contexts: int
    starts: np.ndarray  # (n_sentences + 1,) int64
    positions: np.ndarray  # int64, ascending in each sentence
    is_fully_measured: np.ndarray  # (n_sentences,) bool
    text_sentences: int  # of the whole text, repetitions included
    text_words: int
    word_counts: Mapping[str, int]  # of each word with contexts enough, in the text, repeated sentences counted
    measured_words: int  # of all words, those that aren't measured left out
    source: Corpus | None = None

    def __repr__(self) -> str:  # a part of `Corpus.content`
        arrays = (self.starts.astype("<i8"), self.positions.astype("<i8"), self.is_fully_measured)
        return hashlib.blake2b(b"".join(each.tobytes() for each in arrays), digest_size=16).hexdigest()

    def of(self, sentence: int) -> np.ndarray:
        """The words of a sentence that are measured as words, (n,) ascending."""
        return self.positions[self.starts[sentence] : self.starts[sentence + 1]]


class BoundedContexts(TextReader):
    """At most `max_contexts` occurrences of each word and `max_sentences` whole sentences, chosen by hash; `sample`: of
    so many words (None: all)."""

    def __init__(self, *, max_contexts: int, max_sentences: int, sample: int | None = None) -> None:
        self.choices = {"max_contexts": max_contexts, "max_sentences": max_sentences, "sample": sample}

    def corpus(
        self,
        text: Corpus | TextStream,
        *,
        form: Callable[[str], str | None],
        min_contexts: int,
        seed: int,
        engine: Engine,
        progress: Progress,
    ) -> Corpus:
        bounds = BoundOptions(**self.choices, min_contexts=min_contexts, form=form, seed=seed)  # type: ignore[arg-type]
        return bound_corpus(text, bounds, engine=engine, progress=progress)


class SketchSample(NamedTuple):
    """The sampled occurrences of a text, and its sampled sentences, of which every word is measured."""

    digests: np.ndarray  # (n,) uint64, the sentence of each occurrence
    positions: np.ndarray  # (n,) its word in the sentence
    sentences: np.ndarray  # (m,) uint64, the sampled sentences
    counts: dict[str, int]  # occurrences in the text of each word of the sample


class ContextSketch:
    """Of every measured word the `max_contexts` occurrences of smallest hash of (seed, word, sentence, place), and the
    `max_sentences` of smallest hash of (seed, sentence): simple random samples without replacement, whatever the order.

    Equal sentences have equal hashes, so that copies count once and none is remembered. Memory grows with the distinct
    words. `form` gives the word that a unit counts for, None where it isn't measured. Sketches of a text's parts,
    merged in any order, are the sketch of the text.
    """

    def __init__(self, bounds: BoundOptions) -> None:
        self.bounds = bounds
        self.forms: list[str] = []
        self.codes = _Codes(self)
        self.hashes = np.empty(0, np.uint64)  # (n_forms,)
        self.counts = np.empty(0, np.int64)  # (n_forms,) occurrences, those of repeated sentences too
        self.bound = np.empty(0, np.uint64)  # (n_forms,) an occurrence below it is among the smallest so far
        self.code, self.hash, self.sentence, self.position = _nothing()  # of the occurrences, (n,) each
        self.sentence_sample = np.empty(0, np.uint64)  # digests of the sentences of smallest hash
        self.n_sentences = self.n_words = self.n_measured = self.n_thinned = 0
        self.documents = False  # whether they are known
        self._chunk: list[tuple[int, list[int]]] = []
        self._waiting = 0

    def add(self, sentence: int, words: Sequence[str]) -> None:
        """Add a sentence, by its digest, and its words."""
        self._chunk.append((sentence, list(map(self.codes.__getitem__, words))))
        self._waiting += len(words)
        if self._waiting >= CHUNK_WORDS:
            self.flush()

    def flush(self) -> None:
        """Hash the sentences that wait, and keep the occurrences of small hash."""
        if not self._chunk:
            return
        sentences = np.array([sentence for sentence, _ in self._chunk], np.uint64)
        lengths = np.array([len(codes) for _, codes in self._chunk], np.int64)
        codes = np.fromiter((code for _, codes in self._chunk for code in codes), np.int64, int(lengths.sum()))
        self._chunk, self._waiting = [], 0
        self.n_sentences, self.n_words = self.n_sentences + len(sentences), self.n_words + len(codes)
        of = np.repeat(np.arange(len(lengths)), lengths)
        self._keep_sentences(sentences[np.unique(of[codes != NOT_MEASURED])])
        self._know()
        place = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.n_measured += int((codes != NOT_MEASURED).sum())
        at = np.flatnonzero(codes >= 0)
        self.counts += np.bincount(codes[at], minlength=len(self.counts))
        code, sentence, position = codes[at], sentences[of[at]], place[at]
        hashed = splitmix64(
            self.hashes[code] ^ splitmix64(sentence + position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        )
        low = hashed <= self.bound[code]
        self._append(code[low], hashed[low], sentence[low], position[low])
        if len(self.code) > 2 * self.n_thinned + 4 * CHUNK_WORDS:
            self.settle()

    def merge(self, other: ContextSketch) -> ContextSketch:
        """Add the sketch of another part of the text, and return self."""
        self.flush()
        other.settle()
        codes = np.array([self.codes.of(form) for form in other.forms], np.int64)
        code = codes[other.code]
        self._know()
        np.add.at(self.counts, codes, other.counts)
        self.n_measured += other.n_measured
        self._append(code, other.hash, other.sentence, other.position)
        self._keep_sentences(other.sentence_sample)
        self.n_sentences, self.n_words = self.n_sentences + other.n_sentences, self.n_words + other.n_words
        self.documents |= other.documents
        self.settle()
        return self

    def settle(self) -> None:
        """Keep the `max_contexts` smallest hashes of each word; drop duplicates."""
        self.flush()
        order = np.lexsort((self.hash, self.code))
        code, hashed = self.code[order], self.hash[order]
        new = np.ones(len(order), bool)
        new[1:] = (code[1:] != code[:-1]) | (hashed[1:] != hashed[:-1])
        order, code = order[new], code[new]
        rank = np.arange(len(code)) - np.searchsorted(code, code)
        is_smallest = rank < self.bounds.max_contexts
        last = rank == self.bounds.max_contexts - 1
        order = order[is_smallest]
        self.bound[code[last]] = self.hash[order[last[is_smallest]]]
        self.code, self.hash = self.code[order], self.hash[order]
        self.sentence, self.position = self.sentence[order], self.position[order]
        self.n_thinned = len(order)

    def sample(self) -> SketchSample:
        """The occurrences to measure: of words in at least `min_contexts` distinct sentences the `sample` words of
        smallest hash (None: all). Without any such word, those of the word in most sentences, for the error message."""
        self.settle()
        order = np.lexsort((self.sentence, self.code))
        code, sentence = self.code[order], self.sentence[order]
        new = np.ones(len(code), bool)
        new[1:] = (code[1:] != code[:-1]) | (sentence[1:] != sentence[:-1])
        contexts = np.bincount(code[new], minlength=len(self.forms))
        enough = np.flatnonzero(contexts >= self.bounds.min_contexts)
        if not len(enough):
            enough = np.lexsort((self.hashes, -contexts))[:1]
        elif self.bounds.sample is not None:
            enough = enough[np.argsort(self.hashes[enough], kind="stable")][: self.bounds.sample]
        in_sample = np.isin(self.code, enough)
        counts = {self.forms[i]: int(self.counts[i]) for i in enough.tolist()}
        return SketchSample(self.sentence[in_sample], self.position[in_sample], self.sentence_sample, counts)

    def __getstate__(self) -> dict[str, object]:
        self.settle()
        return {key: value for key, value in vars(self).items() if key != "codes"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.bound, self.counts = self.bound.copy(), self.counts.copy()  # what another process gave may be read-only
        self.codes = _Codes(self)

    def _keep_sentences(self, sentences: np.ndarray) -> None:
        every = np.union1d(self.sentence_sample, sentences)
        if len(every) > self.bounds.max_sentences:
            seeded = splitmix64(every ^ np.uint64(hash_text("sentence", self.bounds.seed)))
            every = every[np.argsort(seeded, kind="stable")[: self.bounds.max_sentences]]
        self.sentence_sample = every

    def _know(self) -> None:
        """Make room for the words that are new."""
        new = self.forms[len(self.hashes) :]
        if new:
            hashes = np.array([hash_text(form, self.bounds.seed) for form in new], np.uint64)
            self.hashes = np.concatenate([self.hashes, hashes])
            self.bound = np.concatenate([self.bound, np.full(len(new), _LAST)])
            self.counts = np.concatenate([self.counts, np.zeros(len(new), np.int64)])

    def _append(self, code: np.ndarray, hashed: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
        self.code = np.concatenate([self.code, code.astype(np.int32)])
        self.hash = np.concatenate([self.hash, hashed])
        self.sentence = np.concatenate([self.sentence, sentence])
        self.position = np.concatenate([self.position, position.astype(np.int32)])


class _Codes(dict[str, int]):
    """The code of each unit, as it comes up."""

    def __init__(self, sketch: ContextSketch) -> None:
        self.sketch = sketch
        self.number = {form: i for i, form in enumerate(sketch.forms)}

    def __missing__(self, unit: str) -> int:
        form = self.sketch.bounds.form(unit)
        self[unit] = code = NOT_MEASURED if form is None else self.of(form)
        return code

    def of(self, form: str) -> int:
        """The code of a word, a new one where it is new."""
        code = self.number.get(form)
        if code is None:
            code = self.number[form] = len(self.sketch.forms)
            self.sketch.forms.append(form)
        return code


def _nothing() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32)


class SentenceHit(NamedTuple):
    """A sentence of the sample, and the document that it counts for: if several hold it, the one with the lowest id."""

    document: int  # its id: the sum of its sentences' digests
    text: str | Sentence


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
    reading = partial(_each_part, shards, engine, Progress.of(progress))
    sketch: ContextSketch | None = None
    for part in reading(partial(partial, _sketch_part, shards, bounds), "choose contexts"):
        sketch = part if sketch is None else sketch.merge(part)
    if sketch is None or not sketch.n_sentences:
        raise DataError(f"{shards.name} has no sentence: expected UTF-8 text, a sentence a line")
    sample = sketch.sample()
    digests = np.union1d(sample.digests, sample.sentences)
    hits: dict[int, SentenceHit] = {}
    for hits_of_part in reading(
        partial(partial, _fetch_sentences, shards, frozenset(digests.tolist())), "fetch sentences"
    ):
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
        sentences=tuple(shards.as_sentence(one.text) for one in sentences),
        documents=tuple(documents.tolist()) if sketch.documents else None,
        bound=Bound(
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
    engine: Engine | None,
    progress: Progress,
    work: Callable[[], Callable[[object], R]],
    title: str,
) -> Iterator[R]:
    """Yield the result of `work` on each part of the text, in any order; without an engine by this process."""
    with progress.stage(title, total=len(shards.parts), unit="parts") as stage:
        for result in engine.map_unordered(work, shards.parts) if engine else map(work(), shards.parts):
            yield result
            stage.advance(1)


def _sketch_part(shards: TextStream, bounds: BoundOptions, part: object) -> ContextSketch:
    sketch = ContextSketch(bounds)
    for document, text in shards.texts(part):
        sketch.add(hash_text(text), shards.as_sentence(text).words)
        sketch.documents = document is not None
    sketch.settle()
    return sketch


def _fetch_sentences(shards: TextStream, digests: frozenset[int], part: object) -> dict[int, SentenceHit]:
    """The sentences with these digests in a part of the text."""
    hits: dict[int, SentenceHit] = {}
    for _, texts in groupby(shards.texts(part), key=itemgetter(0)):
        text_by_digest, document = {}, 0
        for _, text in texts:
            key = hash_text(text)
            document = (document + key) % 2**63
            if key in digests:
                text_by_digest[key] = text
        for key, text in text_by_digest.items():
            hits[key] = min(SentenceHit(document, text), hits.get(key, SentenceHit(2**63, text)), key=itemgetter(0))
    return hits


def _keep_annotations(corpus: Corpus, digests: np.ndarray) -> Corpus:
    """The corpus with the senses and tags of the remaining sentences, by the new sentence indices, and no pairs."""
    number = {key: i for i, key in enumerate(digests.tolist())}
    new_index = [number.get(hash_text(sentence)) for sentence in corpus.sentences]
    senses = (replace(sense, sentence=i) for sense in corpus.senses if (i := new_index[sense.sentence]) is not None)
    old_index = np.full(len(digests), -1)
    for old, new in reversed(list(enumerate(new_index))):
        if new is not None:
            old_index[new] = old
    tags = {kind: tuple(tags[i] for i in old_index.tolist()) for kind, tags in corpus.tags.items()}
    return replace(corpus, pairs=(), senses=tuple(senses), tags=tags)
