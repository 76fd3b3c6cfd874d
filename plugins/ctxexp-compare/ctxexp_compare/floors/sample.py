"""Unrelated pairs: sentences of one domain drawn at random, and words of two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.errors import DataError
from ctxexp_compare.pins.encoding import encode

WORDS = "words"
PAIRS = 40_000  # of all domains
PER_SENTENCE = 3  # words
FEWEST = 40  # sentences of a domain: 780 pairs
CHUNK = 64  # sentences encoded at a time


class Pairs(NamedTuple):
    """Pairs of rows, `first` and `second` (m,), each of the domain `domain` (m,)."""

    first: np.ndarray
    second: np.ndarray
    domain: np.ndarray


@dataclass(frozen=True)
class Rows:
    """Vectors (layers, n, dim) of sentences by one pooling, or of words, with each row's sentence, domain, length in
    words, and, for words, the word's number."""

    vectors: np.ndarray
    sentence: np.ndarray
    domain: np.ndarray
    length: np.ndarray
    word: np.ndarray

    def pairs(self, rng: np.random.Generator, most: int = PAIRS, *, across: bool = False) -> Pairs:
        """Distinct pairs of two sentences of one domain and two words, as many a domain; all where they are few. With
        `across` the two are of two domains, and the pair counts to that of the first."""
        numbers = np.zeros(1, np.int64) if across else np.unique(self.domain)
        parts = []
        for number in numbers.tolist():
            rows = np.arange(len(self.domain)) if across else np.nonzero(self.domain == number)[0]
            wanted = most // len(numbers)
            if len(rows) * (len(rows) - 1) // 2 <= wanted:
                i, j = np.triu_indices(len(rows), 1)
            else:
                i, j = rng.integers(0, len(rows), size=(2, 2 * wanted))
            a, b = rows[np.minimum(i, j)], rows[np.maximum(i, j)]
            keep = (self.sentence[a] != self.sentence[b]) & ((self.word[a] != self.word[b]) | (self.word[a] < 0))
            keep &= (self.domain[a] != self.domain[b]) == across
            a, b = np.unique(np.stack([a[keep], b[keep]]), axis=1)
            chosen = rng.permutation(len(a))[:wanted]
            parts.append((a[chosen], b[chosen], self.domain[a[chosen]]))
        return Pairs(*(np.concatenate(own) for own in zip(*parts, strict=True)))

    def cosines(self, layer: int, pairs: Pairs) -> np.ndarray:
        """(m,) in one layer; NaN for a vector of zeros."""
        x = self.vectors[layer].astype(np.float64)
        length = np.linalg.norm(x, axis=1, keepdims=True)
        x /= np.where(length > 0, length, np.nan)
        return np.concatenate(
            [
                np.einsum("ij,ij->i", x[pairs.first[at : at + 10_000]], x[pairs.second[at : at + 10_000]])
                for at in range(0, len(pairs.first), 10_000)
            ]
        )

    def lengths(self, pairs: Pairs) -> np.ndarray:
        """(m, 2) words of the two sentences."""
        return np.stack([self.length[pairs.first], self.length[pairs.second]], axis=1)


def is_word(unit: str) -> bool:
    """Whether it has a letter or a digit."""
    return any(c.isalnum() for c in unit)


def collect(
    encoder: Encoder, domains: Mapping[str, Sequence[Sentence]], poolings: Sequence[str], rng: np.random.Generator
) -> dict[str, Rows]:
    """The rows of each pooling, and of `words`."""
    pooled = encoder.sentence_encoder() if poolings else None
    parts: dict[str, list[tuple[np.ndarray, int, int, int, int]]] = {name: [] for name in (WORDS, *poolings)}
    vocabulary: dict[str, int] = {}
    number = 0
    for at, sentences in enumerate(domains.values()):
        for begin in range(0, len(sentences), CHUNK):
            chunk = sentences[begin : begin + CHUNK]
            given, pooled_given = encode(encoder, pooled, chunk)
            views = pooled_given if pooled is not None else [None] * len(chunk)
            for sentence, one, view in zip(chunk, given, views, strict=True):
                number += 1
                length = sum(is_word(word) for word in sentence.words)
                spoken = [i for i, unit in enumerate(one.units) if is_word(unit)]
                for i in rng.permutation(spoken)[:PER_SENTENCE].tolist():
                    word = vocabulary.setdefault(one.units[i].casefold(), len(vocabulary))
                    parts[WORDS].append((one.layers[:, i].copy(), number, at, length, word))
                if view is None or not length:
                    continue
                for name in poolings:
                    if name in view.units:
                        parts[name].append((view.layers[:, view.units.index(name)].copy(), number, at, length, -1))
    return {name: _rows(own) for name, own in parts.items() if len(own) > 1}


def _rows(parts: Sequence[tuple[np.ndarray, int, int, int, int]]) -> Rows:
    vectors, *columns = zip(*parts, strict=True)
    return Rows(np.stack(vectors, axis=1), *(np.array(column) for column in columns))


def sampled(domains: Mapping[str, Sequence[Sentence]], most: int, seed: int) -> dict[str, list[Sentence]]:
    """At most so many distinct sentences, domains alike in number. Raises DataError for a domain of few."""
    result = {}
    for name, sentences in domains.items():
        distinct = [one for one in dict.fromkeys(sentences) if any(map(is_word, one.words))]
        if len(distinct) < FEWEST:
            raise DataError(
                f"{name} has {len(distinct)} distinct sentences: expected {FEWEST} or more, of fewer unrelated pairs "
                "say little"
            )
        order = np.random.default_rng(seed).permutation(len(distinct))[: max(FEWEST, most // len(domains))]
        result[name] = [distinct[i] for i in sorted(order.tolist())]
    return result
