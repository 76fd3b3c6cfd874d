"""The vectors of a corpus's tagged usages, collected from the rows of a layer as these pass by."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Block, Corpus, Group, Metric, Text
from ctxexp.errors import MetricError
from ctxexp_measures.senses.attributes import tags_of_rows
from ctxexp_measures.senses.corpora.usages import USAGE, Usages, usages_in


class UsageMetric(Metric):
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
        self.corpus = usages_in(text.corpus, self.needs, self.dataset)
        rows = np.unique(text.occurrences.by_sentence.rows)
        labels = tags_of_rows(text, USAGE, rows)
        self.names = [label for label in labels if label]
        self._at = np.full(len(text.occurrences.forms), -1, np.int64)
        self._at[rows[[bool(label) for label in labels]]] = np.arange(len(self.names))

    def update(self, group: Group) -> None:
        raise MetricError(f"{type(self).__name__}: a row alone doesn't say which usage it is; measure a corpus")

    def update_block(self, block: Block) -> None:
        if self.corpus is None or block.rows is None:
            return super().update_block(block)
        rows = block.rows.ravel()
        x = block.x.reshape(len(rows), -1)
        if not self.x.shape[1]:
            self.x = np.full((len(self.names), x.shape[1]), np.nan, np.float32)
        at = self._at[rows]
        self.x[at[at >= 0]] = x[at >= 0]
        return None


def normalized(x: np.ndarray) -> np.ndarray:
    """Rows of x (n, d) at length 1, float64; NaN for a row of zeros."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return wide / np.sqrt(np.vecdot(wide, wide))[:, None]
