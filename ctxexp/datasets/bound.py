"""The measured occurrences of a corpus, where only some of a text's words are measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ctxexp.dataset import Corpus


@dataclass(frozen=True, eq=False, repr=False)
class CorpusBound:
    """The occurrences of a corpus that have rows, where only some have: of sentence i the words
    `positions[starts[i]:starts[i + 1]]` as occurrences of their words, and all its words, as a sentence, where it is
    one of the sampled sentences (`is_fully_measured`). `source` is the corpus that they were taken from, where memory
    holds it."""

    max_contexts: int
    starts: np.ndarray  # (n_sentences + 1,) int64
    positions: np.ndarray  # int64, ascending in each sentence
    is_fully_measured: np.ndarray  # (n_sentences,) bool
    text_sentences: int  # of the unbounded text, repetitions included
    text_words: int
    word_counts: Mapping[
        str, int
    ]  # occurrences in the text, repeated sentences counted, of each word with contexts enough
    measured_words: int  # of all words, those that aren't measured left out
    source: Corpus | None = None

    def __repr__(self) -> str:  # a part of `Corpus.content`
        arrays = (self.starts.astype("<i8"), self.positions.astype("<i8"), self.is_fully_measured)
        return hashlib.blake2b(b"".join(each.tobytes() for each in arrays), digest_size=16).hexdigest()

    def of(self, sentence: int) -> np.ndarray:
        """The words of a sentence that are measured as words, (n,) ascending."""
        return self.positions[self.starts[sentence] : self.starts[sentence + 1]]
