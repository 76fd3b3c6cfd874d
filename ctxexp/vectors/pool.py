"""One vector per sentence, layer by layer: the poolings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ctxexp.errors import ConfigError, near, short
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.model import Encoder
from ctxexp.transform import chunk_rows, chunks
from ctxexp.vectors.layers import Layers
from ctxexp.vectors.mixes import Mix
from ctxexp.vectors.store import Store

WORDS = "mean_words"
POOLINGS = {  # what each means; an encoder's own view may offer others
    WORDS: "mean of the sentence's measured word vectors",
    "mean": "mean over all pieces, special tokens included",
    "mean_text": "mean over the text's pieces, without special tokens",
    "cls": "first piece: the first special token where there is one",
    "last": "last piece: the closing special token where there is one",
    "pooler": "the model's own pooler, last layer only",
}
WHY = {  # why an encoder that has a view of sentences may lack these
    "cls": "a causal model's first piece has seen nothing but itself, unless it is a special token",
    "pooler": "its checkpoint has no weights of a pooler",
}
CHUNK_BYTES = 16 << 20  # word vectors that are averaged at a time


class SentenceVectors(Protocol):
    """Sentence vectors by layer; a sentence without one has NaN."""

    @property
    def n_layers(self) -> int: ...  # of those that are there
    @property
    def layer_numbers(self) -> Sequence[int]: ...  # their numbers in the model
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # by place among those: (n_sentences, dim) float32, the caller's own


class WordMeans:
    """Pooling `mean_words`: the mean of each sentence's measured words, as the word measures see them: punctuation
    counts where it is measured. NaN for a sentence without any."""

    def __init__(self, store: Layers, occurrences: Occurrences, n_sentences: int) -> None:
        self.store, self.n_sentences = store, n_sentences
        self.n_layers, self.layer_numbers, self.dim = store.n_layers, store.layer_numbers, store.dim
        self.groups = occurrences.by_sentence

    def layer(self, i: int) -> np.ndarray:
        vectors = self.store.layer(i)
        out = np.full((self.n_sentences, self.dim), np.nan, np.float32)
        for sentences, rows, _ in self.groups.blocks(max(1, CHUNK_BYTES // (8 * self.dim))):
            out[np.asarray(sentences, np.int64)] = vectors[rows].mean(axis=1, dtype=np.float64)
        return out


class PooledSentences:
    """Sentence vectors by a pooling of the encoder's own: each sentence's row of that name. NaN for a sentence
    without one (no piece to pool), and for `pooler` in all layers but the last."""

    def __init__(self, store: Store, pooling: str) -> None:
        self.store, self.pooling = store, pooling
        self.n_layers, self.layer_numbers, self.dim = store.n_layers, store.layer_numbers, store.dim
        code = store.vocabulary.index(pooling) if pooling in store.vocabulary else -1
        rows = np.flatnonzero(store.unit_codes == code)
        of_stored = np.full(len(store.offsets) - 1, -1, np.int64)
        of_stored[np.searchsorted(store.offsets, rows, side="right") - 1] = rows
        self.rows = of_stored[store.stored_of]  # (n_sentences,) its row, -1 without one

    def layer(self, i: int) -> np.ndarray:
        out = np.full((len(self.rows), self.dim), np.nan, np.float32)
        if self.pooling != "pooler" or i == self.n_layers - 1:
            vectors = self.store.layer(i)
            has = np.flatnonzero(self.rows >= 0)
            for a, b in chunks(len(has), chunk_rows(self.dim)):
                out[has[a:b]] = vectors[self.rows[has[a:b]]]
        return out


def mix_layers(vectors: SentenceVectors, mix: Mix) -> np.ndarray:  # (n_sentences, dim) float32
    """The mix of the layers' sentence vectors, added in float64."""
    total: np.ndarray | None = None
    for i, weight in zip(mix.layers, mix.weights, strict=True):
        part = vectors.layer(i)
        total = np.zeros(part.shape) if total is None else total
        for a, b in chunks(len(part), chunk_rows(vectors.dim)):
            total[a:b] += part[a:b].astype(np.float64) * weight
    assert total is not None  # a mix has a layer
    return total.astype(np.float32)


def finite_rows(x: np.ndarray) -> np.ndarray:
    """Which rows of x (n, d) are finite throughout, that is, which sentences have a vector: (n,) bool."""
    is_finite = np.empty(len(x), bool)
    for a, b in chunks(len(x), chunk_rows(x.shape[1])):
        is_finite[a:b] = np.isfinite(x[a:b]).all(axis=1)
    return is_finite


def sentence_view(encoder: Encoder, pooling: str, *, model: str) -> Encoder | None:
    """The encoder's view of sentences that gives the pooling; None for `mean_words`, which needs none.

    Raises ConfigError naming the poolings that this model has.
    """
    if pooling == WORDS:
        return None
    view = encoder.sentence_encoder()
    offered = [WORDS, *(view.poolings if view else ())]
    if view and pooling in offered:
        return view
    if pooling not in POOLINGS:
        raise ConfigError(f"sentence.pooling={short(pooling)}: no such pooling{near(pooling, offered)}")
    why = f" ({WHY[pooling]})" if view and pooling in WHY else ""
    raise ConfigError(f"model {model!r} has no sentence.pooling={pooling}{why}; it has {', '.join(offered)}")
