"""Encoders whose vectors are made for a test, and corpora measured by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Results, Sentence


class PlantedEncoder(Encoder):
    """Encodes a sentence by the layers that its subclass makes of it."""

    def layers_of(self, sentence: Sentence) -> Sequence[np.ndarray]:
        """A layer's vectors of the sentence's words (words, dim), layer by layer."""
        raise NotImplementedError

    def encode(self, batch: Sequence[Sentence]) -> list[EncodedSentence]:
        return [EncodedSentence(one.words, np.stack(self.layers_of(one)).astype(np.float32)) for one in batch]


def vector_of(text: str, dim: int) -> np.ndarray:
    """A normal vector (dim,) that is the text's own; those of two texts are all but orthogonal in many dimensions."""
    return np.random.default_rng(list(text.encode())).normal(size=dim)


def measured_in(folder: Path, encoder: Encoder, corpus: Corpus, *options: str, **choices: Any) -> Results:
    """Results of a corpus, whose files and vectors are kept in the folder."""
    options = (f"cache.folder={folder}", *options)
    return ctxexp.measure(encoder, corpus, folder=folder, options=options, progress=False, **choices)
