"""A random vector a word, wherever it stands: what a measure gives of words that know no context (a control)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ModelError
from ctxexp.model import EncodedSentence, Encoder


class RandomWordsEncoder(Encoder):
    """An encoder of one layer: each word form has a direction of its own, of norm 1, drawn evenly from all.

    A word's vector depends on its spelling, the seed and the size alone, never on the text around it or on other words.

    Args:
        dim: Components of a vector, 1 or more.
        seed: Another seed draws every word anew.
    """

    n_layers = 1
    positional = False

    def __init__(self, dim: int, seed: int) -> None:
        if dim < 1:
            raise ModelError(f"model.dim={dim}: expected 1 or more, the components of a random vector")
        self.dim = dim
        self.name = f"random_words:{dim}:{seed}"
        self.details = {"architecture": "a random vector a word", "dim": dim}
        self._seed = seed
        self._drawn: dict[str, np.ndarray] = {}

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            rows = np.empty((1, len(sentence), self.dim), np.float32)
            for i, word in enumerate(sentence.words):
                rows[0, i] = self._vector(word)
            yield EncodedSentence(tuple(sentence.words), rows)

    def _vector(self, word: str) -> np.ndarray:
        if word not in self._drawn:
            digest = hashlib.sha256(f"{self._seed} {word}".encode()).digest()
            vector = np.random.default_rng(list(digest)).standard_normal(self.dim)
            self._drawn[word] = (vector / np.linalg.norm(vector)).astype(np.float32)
        return self._drawn[word]


def random_words(*, dim: int = 768, seed: int = 0) -> RandomWordsEncoder:
    """A random vector of norm 1 for each word, wherever it stands (layer 0): a control for any sweep of models.

    `dim`: components of a vector. `seed`: another one draws every word anew.
    """
    return RandomWordsEncoder(dim, seed)
