"""Word vectors for the benchmarks, looked up by word: cased or lower-cased, within a shared vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from ctxexp.datasets import text_lines
from ctxexp.errors import DataError

OutOfVocabulary = Literal["skip", "mean"]


@dataclass(frozen=True)
class WordSpace:
    """Distinct words with a vector each, the most frequent first (of a file: in its order).

    `lower`: words are stored and looked up in lower case.
    """

    words: list[str]
    vectors: np.ndarray  # (len(words), dim) float32, none of them zero
    lower: bool

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        vectors: np.ndarray,
        *,
        lower: bool = True,
        shared: Iterable[str] | None = None,
    ) -> WordSpace:
        """The space of these words, in this order; those whose vector is zero or not finite are left out.

        With `lower`, several cased forms of a word (Apple, apple) become one: the first of them, which is the most
        frequent where words stand by frequency. `shared` keeps those words only, compared in lower case with `lower`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.square(vectors, dtype=np.float64).sum(-1)
        usable = np.isfinite(squares) & (squares > 0)
        allowed = None if shared is None else {word.lower() if lower else word for word in shared}
        first: dict[str, int] = {}
        for i, word in enumerate(words):
            form = word.lower() if lower else word
            if usable[i] and (allowed is None or form in allowed):
                first.setdefault(form, i)
        return cls(list(first), np.asarray(vectors[np.array(list(first.values()), np.int64)], np.float32), lower)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Word -> its row in `vectors`."""
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def mean_direction(self) -> np.ndarray:
        """(dim,) float64: the mean of the vectors (not normalized ones), scaled to norm 1; zero if they cancel."""
        total = self.vectors.mean(0, dtype=np.float64) if len(self) else np.zeros(self.vectors.shape[1])
        length = np.sqrt(np.square(total).sum())
        return np.asarray(total / length if length > 0 else total)

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """Row numbers (n,) int64 of words; -1 for a word that has no vector."""
        row_of = self.row_of
        return np.array([row_of.get(word.lower() if self.lower else word, -1) for word in words], np.int64)

    def normalized(self, rows: np.ndarray) -> np.ndarray:
        """(len(rows), dim) float64: the vectors of these rows divided by their length; `mean_direction` for -1."""
        if not len(self):
            return np.zeros((len(rows), self.vectors.shape[1]))
        x = self.vectors[rows].astype(np.float64)
        x /= np.sqrt(np.square(x).sum(-1, keepdims=True))
        x[rows < 0] = self.mean_direction
        return np.asarray(x)


def word_list(path: Path) -> list[str]:
    """The words of a shared vocabulary: a UTF-8 file with one word per line; a tab and what follows it are ignored."""
    words = [line.split("\t")[0].strip() for _, line in text_lines(path)]
    if not any(words):
        raise DataError(f"{path} (shared_vocabulary) has no word: expected a word a line")
    return [word for word in words if word]
