"""What is drawn anew behind an interval: documents where the corpus has them, else sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus

MOST = 2048  # blocks that units are resampled in: of more units several share one, which loses next to nothing


@dataclass(frozen=True)
class Units:
    """The resampling units of a corpus. Occurrences of one unit are drawn together; units are independent.

    A sentence that the corpus repeats is one unit, and belongs to the document where it first stands.
    """

    name: str  # `document` or `sentence`
    n: int
    of_sentence: np.ndarray  # (n_sentences,) the block of each sentence of the corpus, below n_blocks
    of_row: np.ndarray  # (n_rows,) that of each store row; -1: not measured

    @property
    def n_blocks(self) -> int:
        return min(self.n, MOST)

    def summed(self, blocks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n_blocks,) float64: the sum of the values of each block; NaN counts as 0."""
        return np.bincount(blocks.ravel(), np.nan_to_num(values).ravel(), minlength=self.n_blocks)


def units_of(corpus: Corpus, place: np.ndarray, rows: np.ndarray, sentence: np.ndarray, n_rows: int) -> Units:
    """`place` (n_sentences,): where each sentence first stands; `rows`, `sentence`: of the measured occurrences."""
    documents = corpus.documents
    first = place if documents is None else np.asarray(documents, np.int64)[place]
    known, number = np.unique(first, return_inverse=True)
    of_sentence = number % MOST
    of_row = np.full(n_rows, -1, np.int64)
    of_row[rows[::-1]] = of_sentence[sentence[::-1]]
    return Units("sentence" if documents is None else "document", len(known), of_sentence, of_row)
