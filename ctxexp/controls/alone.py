"""Each word alone: what a measure still shows isn't context."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ctxexp.control import Control
from ctxexp.dataset import Sentence
from ctxexp.model import EncodedSentence, Encoder


class Alone(Control):
    """Each word is encoded by itself, at its place in the sentence: what a measure of context shows all the same is its
    floor in that layer.

    A transformer sees the word's pieces and no others, at the positions that they have in the sentence; special pieces
    are left out, since what a word takes from them hangs on its position. Models that take no positions (T5, which
    knows distances only, or a recurrent model) see the word's pieces alone; others, such as ELMo, a sentence of one
    word.
    """

    name = "alone"
    label = "each word alone"

    def encoder(self, encoder: Encoder) -> Encoder:
        return WordsAlone(encoder)


class WordsAlone(Encoder):
    """An encoder that gives each word of a sentence the vectors that it has without the others."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        for key in ("n_layers", "dim", "dtype", "title", "details", "positional", "causal", "start", "layers"):
            vars(self)[key] = getattr(encoder, key)
        self.name = f"{encoder.name}, each word alone"

    @property
    def class_code(self) -> str:
        return self._encoder.class_code

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return self._encoder.encode_alone(batch)

    def count_unknown(self, sentences: Sequence[Sentence]) -> tuple[int, int]:
        return self._encoder.count_unknown(sentences)

    def token_spans(self, sentences: Sequence[Sentence]) -> Iterable[np.ndarray]:
        return self._encoder.token_spans(sentences)

    def unit_keys(self, sentences: Sequence[Sentence]) -> Iterable[Sequence[Hashable]]:
        return self._encoder.unit_keys(sentences)
