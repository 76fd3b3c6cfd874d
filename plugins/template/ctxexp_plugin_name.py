"""A model and a metric for ctxexp. Keep what you need, and replace the arithmetic with yours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

import ctxexp
from ctxexp import Register


class PluginNameModel(ctxexp.Encoder):
    """Random but fixed word vectors, mixed with their neighbours' from layer to layer.

    layers: layers after the input layer.
    dim: width of the vectors.
    """

    def __init__(self, *, layers: int = 2, dim: int = 16) -> None:
        self.n_layers, self.dim = layers + 1, dim
        self.name = f"plugin-name layers={layers} dim={dim}"  # keys the vector cache: whatever changes the vectors

    def encode(self, batch: Sequence[ctxexp.Sentence]) -> Iterator[ctxexp.EncodedSentence]:
        """One array (n_layers, words, dim) float32 a sentence; layer 0 is the input layer."""
        for sentence in batch:
            layers = [np.array([self._vector(word) for word in sentence.words]).reshape(-1, self.dim)]
            for _ in range(self.n_layers - 1):
                shifted = np.roll(layers[-1], 1, axis=0)
                layers.append((2 * layers[-1] + shifted) / 3)
            yield ctxexp.EncodedSentence(sentence.words, np.stack(layers).astype(np.float32))

    def _vector(self, word: str) -> np.ndarray:
        return np.random.default_rng(crc32(word.encode())).normal(size=self.dim)


class PluginNameSpread(ctxexp.GroupMean):
    """Mean over words of the coefficient of variation of a word's vector lengths, >= 0.

    sample: so many random words only.
    """

    over = "word"
    title = "Spread of word vectors' lengths"
    reading = ctxexp.Reading(unit="ratio")
    definition = "standard deviation over mean of a word's vector lengths"
    invariances = frozenset({"rotation", "scale", "permutation"})  # what doesn't change it; the tests try them

    def __init__(self, *, sample: int | None = None) -> None:
        super().__init__(sample=sample)

    def score(self, x: np.ndarray) -> np.ndarray:
        """Scores (...,) of groups (..., n, d); NaN where undefined. The framework averages them, with intervals."""
        lengths = np.linalg.norm(x.astype(np.float64), axis=-1)
        with np.errstate(invalid="ignore"):
            return lengths.std(axis=-1) / lengths.mean(axis=-1)


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("plugin_name", PluginNameModel)


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("plugin_name_spread", PluginNameSpread)
