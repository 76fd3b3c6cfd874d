"""Sums over rows, from which a metric's numbers follow exactly: added up batch by batch, wherever these are encoded,
and merged by addition, so that no row is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-19  # a shorter row has no direction: its square is none in float32


class Batch:
    """Measured rows of one layer, of whole sentences, in float64 on the device where the model computed them.

    `x` (n, d); `sentence` (n,) ascending, the number of each row's sentence in the batch, below `n_sentences`. A
    sentence without a measured row is not counted.
    """

    def __init__(self, x: Tensor, sentence: Tensor, n_sentences: int) -> None:
        self.x, self.sentence, self.n_sentences = x, sentence, n_sentences

    @cached_property
    def norms(self) -> Tensor:
        """Euclidean lengths, (n,)."""
        return self.x.square().sum(1).sqrt()

    @cached_property
    def has_direction(self) -> Tensor:
        """(n,) 1 for a row with a direction, 0 for one of zeros."""
        return (self.norms >= TINY).to(self.x.dtype)

    @cached_property
    def normalized(self) -> Tensor:
        """Rows at norm 1, (n, d); NaN for a row of zeros."""
        return self.x / self.norms.where(self.has_direction > 0, float("nan"))[:, None]

    def by_sentence(self, values: Tensor) -> Tensor:
        """Values (n, ...) summed over each sentence's rows, (n_sentences, ...)."""
        sums = values.new_zeros((self.n_sentences, *values.shape[1:]))
        return sums.index_add_(0, self.sentence, values)

    @cached_property
    def lengths(self) -> Tensor:
        """Rows of each sentence, (n_sentences,)."""
        return self.by_sentence(self.x.new_ones(len(self.x)))

    @cached_property
    def sentence_sums(self) -> Tensor:
        """The sum of each sentence's rows, (n_sentences, d)."""
        return self.by_sentence(self.x)

    @cached_property
    def normalized_sums(self) -> Tensor:
        """The sum of each sentence's normalized rows, (n_sentences, d); NaN where one has no direction."""
        return self.by_sentence(self.normalized)


class Addends(NamedTuple):
    """The addends of a batch, by name. One name is one quantity, whichever form asks for it: it is summed once."""

    by_word: Mapping[str, Tensor] = {}  # (n, ...) a row each, summed over the rows of each word
    overall: Mapping[str, Tensor] = {}  # (...) of all rows


@dataclass
class Sums:
    """The sums of one layer over all batches, of some words."""

    n: np.ndarray  # (words,) their rows
    by_word: dict[str, np.ndarray] = field(default_factory=dict)  # (words, ...) float64
    overall: dict[str, np.ndarray] = field(default_factory=dict)  # (...) float64

    def subset(self, words: np.ndarray) -> Sums:
        """The sums of some of the words."""
        return Sums(self.n[words], {name: total[words] for name, total in self.by_word.items()}, self.overall)

    def merge(self, part: Sums, words: np.ndarray) -> None:
        """Add the sums of a part, whose words have the numbers `words` here."""
        self.n[words] += part.n
        for name, value in part.by_word.items():
            total = self.by_word.setdefault(name, np.zeros((len(self.n), *value.shape[1:])))
            total[words] += value
        for name, value in part.overall.items():
            self.overall[name] = self.overall.get(name, 0.0) + value


class LayerStatistics(NamedTuple):
    """A layer's statistics by name and, of a measure over words, each word's score (words,), NaN where undefined."""

    statistics: dict[str, float]
    scores: np.ndarray | None = None


class SumForm(ABC):
    """A metric's form in sums. It is pickled to other processes, and keeps no state."""

    @abstractmethod
    def addends(self, batch: Batch) -> Addends:
        """The addends of a batch: operations of torch on its device, in float64."""

    @abstractmethod
    def statistics(self, sums: Sums) -> LayerStatistics:
        """Final statistics computed from the sums; equal to those of a stored run. Statistics that need single rows
        (the median) are omitted."""

    def influence(self, part: Sums, total: Sums) -> np.ndarray | float | None:
        """The influence of a part's rows: summed over them, that on each word's score (words,), or on the mean itself
        (`ctxexp.maths.influence`). `total` are the sums of all parts, of the part's words. None: the statistics have
        no interval."""
        return None


def mean_and_spread(n: float, total: float, squares: float) -> dict[str, float]:
    """raw (mean), sd (ddof 1) and n of n numbers, from their sum and that of their squares; NaN where undefined."""
    mean = total / n if n else float("nan")
    spread = max(squares - n * mean**2, 0.0) / (n - 1) if n > 1 else float("nan")
    return {"raw": mean, "sd": spread**0.5, "n": float(n)}
