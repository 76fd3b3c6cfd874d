"""Unrelated pairs: sentences of one domain drawn at random, and words of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

WORDS = "words"
PAIRS = 40_000  # of all domains


class Pairs(NamedTuple):
    """Pairs of rows, `first` and `second` (m,), each of the domain `domain` (m,)."""

    first: np.ndarray
    second: np.ndarray
    domain: np.ndarray


def cosines_of(vectors: np.ndarray, first: np.ndarray, second: np.ndarray, step: int = 10_000) -> np.ndarray:
    """(m,) of the rows `first` and `second` (m,) of vectors (n, dim); NaN for a vector of zeros."""
    x = vectors.astype(np.float64)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    x /= np.where(length > 0, length, np.nan)
    ends = [(first[at : at + step], second[at : at + step]) for at in range(0, len(first), step)]
    return np.concatenate([np.empty(0), *(np.einsum("ij,ij->i", x[a], x[b]) for a, b in ends)])


@dataclass(frozen=True)
class Rows:
    """Vectors (layers, n, dim) of sentences by one pooling, or of words, with each row's sentence, domain, and, for
    words, the word's number."""

    vectors: np.ndarray
    sentence: np.ndarray
    domain: np.ndarray
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
        return cosines_of(self.vectors[layer], pairs.first, pairs.second)
