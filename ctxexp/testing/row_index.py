"""The row index of a corpus in memory, as a store of its vectors would have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus


@dataclass(frozen=True)
class MemoryRowIndex:
    """The unit of each row: `vocabulary[unit_codes[row]]`; the rows of sentence i lie from `offsets[i]` on."""

    vocabulary: list[str]
    unit_codes: np.ndarray
    offsets: np.ndarray
    stored_of: np.ndarray


def row_index(corpus: Corpus) -> MemoryRowIndex:
    """The index of a store with one row for each word of the corpus, in its order."""
    lists = [sentence.words for sentence in corpus.sentences]
    vocabulary = sorted({w for words in lists for w in words})
    code = {w: i for i, w in enumerate(vocabulary)}
    codes = np.array([code[w] for words in lists for w in words], np.int32)
    return MemoryRowIndex(vocabulary, codes, np.cumsum([0, *map(len, lists)]), np.arange(len(lists)))
