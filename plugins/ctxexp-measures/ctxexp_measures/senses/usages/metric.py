"""The vectors of a corpus's tagged usages, collected from the rows of a layer as these pass by."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Corpus, Text
from ctxexp_measures.senses.attributes import TextMetric, tags_of_rows
from ctxexp_measures.senses.corpora.usages import USAGE, Usages, usages_in


class UsageMetric(TextMetric):
    """Base of measures of usages of `corpus`: `x` (usages, d) are their vectors, NaN for a usage without one (a word
    that the model's tokenizer has no piece for, or that a control leaves out); `names` are in x's order."""

    over = "occurrence"
    needs: ClassVar[str]  # what `require` says is missing: "metric wic compares ..."
    dataset: ClassVar[str]  # and where it is to be had

    def __init__(self) -> None:
        self.corpus: Usages | None = None
        self.names: list[str] = []
        self.x = np.empty((0, 0), np.float32)
        self._at = np.empty(0, np.int64)

    def require(self, corpus: Corpus) -> None:
        usages_in(corpus, self.needs, self.dataset)

    def bind_text(self, text: Text) -> None:
        super().bind_text(text)
        self.corpus = usages_in(text.corpus, self.needs, self.dataset)
        rows = np.unique(text.occurrences.by_sentence.rows)
        labels = tags_of_rows(text, USAGE, rows)
        self.names = [label for label in labels if label]
        self._at = np.full(len(text.occurrences.forms), -1, np.int64)
        self._at[rows[[bool(label) for label in labels]]] = np.arange(len(self.names))

    def take(self, text: Text, rows: np.ndarray, x: np.ndarray) -> None:
        x = x.reshape(rows.size, -1)
        if not self.x.shape[1]:
            self.x = np.full((len(self.names), x.shape[1]), np.nan, np.float32)
        at = self._at[rows.ravel()]
        self.x[at[at >= 0]] = x[at >= 0]


def normalized(x: np.ndarray) -> np.ndarray:
    """Rows of x (n, d) at length 1, float64; NaN for a row of zeros."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return wide / np.sqrt(np.vecdot(wide, wide))[:, None]
