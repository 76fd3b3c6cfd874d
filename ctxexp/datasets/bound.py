"""Which words of a text are measured, where these aren't all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ctxexp.dataset import Corpus


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """Which occurrences of a corpus have rows, where these aren't all: of sentence i the words
    `positions[starts[i]:starts[i + 1]]` as occurrences of their words, and all its words where it is `whole`, as a
    sentence. `entire` is the corpus that they were taken from, where memory holds it."""

    max_contexts: int
    starts: np.ndarray  # (n_sentences + 1,) int64
    positions: np.ndarray  # int64, ascending in each sentence
    whole: np.ndarray  # (n_sentences,) bool
    text_sentences: int  # of the whole text, as often as they stand there
    text_words: int
    entire: Corpus | None = None

    def __repr__(self) -> str:  # a part of `Corpus.content`
        held = (self.starts.astype("<i8"), self.positions.astype("<i8"), self.whole)
        return hashlib.blake2b(b"".join(each.tobytes() for each in held), digest_size=16).hexdigest()

    def of(self, sentence: int) -> np.ndarray:
        """The words of a sentence that are measured as words, (n,) ascending."""
        return self.positions[self.starts[sentence] : self.starts[sentence + 1]]
