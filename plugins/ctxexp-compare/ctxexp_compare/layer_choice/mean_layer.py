"""A model with one layer more: the mean of its layers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence


class WithMeanLayer(Encoder):
    """The layers of an encoder, and behind the last one the unweighted mean of them all."""

    def __init__(self, base: Encoder) -> None:
        self.base = base
        self.name = f"{base.name} and the mean of its layers"
        self.n_layers, self.dim, self.dtype, self.title = base.n_layers + 1, base.dim, base.dtype, base.title
        self.layers = (*base.layer_numbers, base.n_layers)
        self.details, self.sequential, self.positional = base.details, base.sequential, base.positional
        self.causal, self.start, self.corpus, self.poolings = base.causal, base.start, base.corpus, base.poolings

    @property
    def class_code(self) -> str:
        return self.base.class_code

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for one in self.base.encode(batch):
            mean = one.layers.mean(axis=0, keepdims=True, dtype=np.float64).astype(one.layers.dtype)
            yield EncodedSentence(one.units, np.concatenate([one.layers, mean]))

    def lengths(self, sentences: Sequence[Sentence]) -> Sequence[int]:
        return self.base.lengths(sentences)

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        return self.base.count_unknown(sentences)

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterable[np.ndarray]:
        return self.base.token_spans(sentences)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterable[Sequence[Hashable]]:
        return self.base.unit_keys(sentences)

    def sentence_encoder(self) -> Encoder | None:
        view = self.base.sentence_encoder()
        return None if view is None else WithMeanLayer(view)
