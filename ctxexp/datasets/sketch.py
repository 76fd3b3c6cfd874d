"""The occurrences of smallest hash of each word, and the sentences of smallest hash, of text that is read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

CHUNK_WORDS = 1 << 18  # words that are hashed at a time
MOST_WORDS = 1 << 22  # distinct words that are followed: of more, those of smallest hash
NOT_MEASURED, NOT_FOLLOWED = -1, -2
_LAST = np.uint64(2**64 - 1)


def digest(text: str, seed: int = 0) -> int:
    """64 bits of a text."""
    raw = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8, salt=seed.to_bytes(8, "little")).digest(), "little")


def splitmix64(x: np.ndarray) -> np.ndarray:
    """Hash 64-bit integers: the finaliser of SplitMix64 (Steele, Lea and Flood 2014), in which each input bit can
    change every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return x


class Limits(NamedTuple):
    """The size of a sample, and its seed."""

    contexts: int  # occurrences of a word
    sentences: int  # that are measured in full
    seed: int
    words: int = MOST_WORDS


class SketchSample(NamedTuple):
    """The sampled occurrences of a text, and its sampled sentences, of which every word is measured."""

    digests: np.ndarray  # (n,) uint64, the sentence of each occurrence
    positions: np.ndarray  # (n,) its word in the sentence
    sentences: np.ndarray  # (m,) uint64, the sampled sentences
    counts: dict[str, int]  # occurrences in the text of each word of the sample


class ContextSketch:
    """Of every measured word the `contexts` occurrences of smallest hash of (seed, word, sentence, place), and the
    `sentences` of smallest hash of (seed, sentence): simple random samples without replacement, whatever the order.

    Equal sentences have equal hashes, so that copies count once and none is remembered. Memory grows with the words:
    at most `limits.words` distinct ones are followed, those of smallest hash of (seed, word), each as if it were alone.
    `form` gives the word that a unit counts for, None where it isn't measured. Sketches of a text's parts, merged in
    any order, are the sketch of the text.
    """

    def __init__(self, limits: Limits, form: Callable[[str], str | None]) -> None:
        self.limits, self.form = limits, form
        self.forms: list[str] = []
        self.codes = _Codes(self)
        self.hashes = np.empty(0, np.uint64)  # (n_forms,)
        self.counts = np.empty(0, np.int64)  # (n_forms,) occurrences, those of repeated sentences too
        self.bound = np.empty(0, np.uint64)  # (n_forms,) an occurrence below it is among the smallest so far
        self.most = int(_LAST)  # the largest hash of a word that is followed
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
        if len(self.codes) > 2 * self.limits.words:  # of words that aren't followed, say
            self.codes = _Codes(self)
        if len(self.code) > 2 * self.n_thinned + 4 * CHUNK_WORDS:
            self.settle()

    def merge(self, other: ContextSketch) -> ContextSketch:
        """Add the sketch of another part of the text, and return self."""
        self.flush()
        other.settle()
        self.most = min(self.most, other.most)
        codes = np.array([self.codes.of(form) for form in other.forms], np.int64)
        code = codes[other.code]
        self._know()
        np.add.at(self.counts, codes[codes >= 0], other.counts[codes >= 0])
        self.n_measured += other.n_measured
        has_code = code >= 0
        self._append(code[has_code], other.hash[has_code], other.sentence[has_code], other.position[has_code])
        self._keep_sentences(other.sentence_sample)
        self.n_sentences, self.n_words = self.n_sentences + other.n_sentences, self.n_words + other.n_words
        self.documents |= other.documents
        self.settle()
        return self

    def settle(self) -> None:
        """Keep the `limits.contexts` smallest hashes of each word; drop duplicates and words beyond `limits.words`."""
        self.flush()
        if len(self.forms) > self.limits.words or (self.hashes > np.uint64(self.most)).any():
            self._forget()
        order = np.lexsort((self.hash, self.code))
        code, hashed = self.code[order], self.hash[order]
        new = np.ones(len(order), bool)
        new[1:] = (code[1:] != code[:-1]) | (hashed[1:] != hashed[:-1])
        order, code = order[new], code[new]
        rank = np.arange(len(code)) - np.searchsorted(code, code)
        is_smallest = rank < self.limits.contexts
        last = rank == self.limits.contexts - 1
        order = order[is_smallest]
        self.bound[code[last]] = self.hash[order[last[is_smallest]]]
        self.code, self.hash = self.code[order], self.hash[order]
        self.sentence, self.position = self.sentence[order], self.position[order]
        self.n_thinned = len(order)

    def sample(self, *, min_contexts: int, sample: int | None) -> SketchSample:
        """The occurrences to measure: of words in at least `min_contexts` distinct sentences the `sample` words of
        smallest hash (None: all). Without any such word, those of the word in most sentences, for the error message."""
        self.settle()
        order = np.lexsort((self.sentence, self.code))
        code, sentence = self.code[order], self.sentence[order]
        new = np.ones(len(code), bool)
        new[1:] = (code[1:] != code[:-1]) | (sentence[1:] != sentence[:-1])
        contexts = np.bincount(code[new], minlength=len(self.forms))
        enough = np.flatnonzero(contexts >= min_contexts)
        if not len(enough):
            enough = np.lexsort((self.hashes, -contexts))[:1]
        elif sample is not None:
            enough = enough[np.argsort(self.hashes[enough], kind="stable")][:sample]
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
        if len(every) > self.limits.sentences:
            seeded = splitmix64(every ^ np.uint64(digest("sentence", self.limits.seed)))
            every = every[np.argsort(seeded, kind="stable")[: self.limits.sentences]]
        self.sentence_sample = every

    def _know(self) -> None:
        """Make room for the words that are new."""
        new = self.forms[len(self.hashes) :]
        if new:
            hashes = np.array([digest(form, self.limits.seed) for form in new], np.uint64)
            self.hashes = np.concatenate([self.hashes, hashes])
            self.bound = np.concatenate([self.bound, np.full(len(new), _LAST)])
            self.counts = np.concatenate([self.counts, np.zeros(len(new), np.int64)])

    def _append(self, code: np.ndarray, hashed: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
        self.code = np.concatenate([self.code, code.astype(np.int32)])
        self.hash = np.concatenate([self.hash, hashed])
        self.sentence = np.concatenate([self.sentence, sentence])
        self.position = np.concatenate([self.position, position.astype(np.int32)])

    def _forget(self) -> None:
        """Follow the words of smallest hash only, from now on."""
        order = np.argsort(self.hashes, kind="stable")[: self.limits.words]
        order = np.sort(order[self.hashes[order] <= np.uint64(self.most)])
        self.most = int(self.hashes[order].max())
        code = np.full(len(self.forms), NOT_FOLLOWED)
        code[order] = np.arange(len(order))
        rows = np.flatnonzero(code[self.code] >= 0)
        self.forms = [self.forms[i] for i in order.tolist()]
        self.hashes, self.bound, self.counts = self.hashes[order], self.bound[order], self.counts[order]
        self.code = code[self.code[rows]].astype(np.int32)
        self.hash, self.sentence, self.position = self.hash[rows], self.sentence[rows], self.position[rows]
        self.codes = _Codes(self)


class _Codes(dict[str, int]):
    """The code of each unit, as it comes up."""

    def __init__(self, sketch: ContextSketch) -> None:
        self.sketch = sketch
        self.number = {form: i for i, form in enumerate(sketch.forms)}

    def __missing__(self, unit: str) -> int:
        form = self.sketch.form(unit)
        self[unit] = code = NOT_MEASURED if form is None else self.of(form)
        return code

    def of(self, form: str) -> int:
        """The code of a word, a new one where it is new."""
        code = self.number.get(form)
        if code is None:
            sketch = self.sketch
            if sketch.most < int(_LAST) and digest(form, sketch.limits.seed) > sketch.most:
                return NOT_FOLLOWED
            code = self.number[form] = len(sketch.forms)
            sketch.forms.append(form)
        return code


def _nothing() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32)
