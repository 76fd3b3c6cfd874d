"""What a metric may offer beside complete groups: sums over rows, from which its numbers follow exactly.

Sums are added to by batches, wherever these are encoded, and merged by addition: no row is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-19  # a shorter row has no direction: its square is none in float32


class Batch:
    """Measured rows of one layer, of whole sentences, in float64 on the device where the model computed them.

    `x` (n, d); `sentence` (n,) ascending, which of the batch's `n_sentences` a row is of. A sentence without a measured
    row is none of them.
    """

    def __init__(self, x: Tensor, sentence: Tensor, n_sentences: int) -> None:
        self.x, self.sentence, self.n_sentences = x, sentence, n_sentences

    @cached_property
    def norms(self) -> Tensor:
        """Euclidean lengths, (n,)."""
        return self.x.square().sum(1).sqrt()

    @cached_property
    def directed(self) -> Tensor:
        """(n,) 1 for a row with a direction, 0 for one of zeros."""
        return (self.norms >= TINY).to(self.x.dtype)

    @cached_property
    def unit(self) -> Tensor:
        """Rows at norm 1, (n, d); NaN for a row of zeros."""
        return self.x / self.norms.where(self.directed > 0, float("nan"))[:, None]

    def by_sentence(self, values: Tensor) -> Tensor:
        """Values (n, ...) summed over each sentence's rows, (n_sentences, ...)."""
        sums = values.new_zeros((self.n_sentences, *values.shape[1:]))
        return sums.index_add_(0, self.sentence, values)

    @cached_property
    def lengths(self) -> Tensor:
        """Rows of each sentence, (n_sentences,)."""
        return self.by_sentence(self.x.new_ones(len(self.x)))

    @cached_property
    def rows_of_sentences(self) -> Tensor:
        """The sum of each sentence's rows, (n_sentences, d)."""
        return self.by_sentence(self.x)

    @cached_property
    def units_of_sentences(self) -> Tensor:
        """The sum of each sentence's unit rows, (n_sentences, d); NaN where one has no direction."""
        return self.by_sentence(self.unit)


class Addends(NamedTuple):
    """What a batch adds, by name. One name is one quantity, whoever asks for it: it is summed once."""

    by_word: Mapping[str, Tensor] = {}  # (n, ...) a row each, summed over the rows of each word
    whole: Mapping[str, Tensor] = {}  # (...) of all rows


@dataclass
class Sums:
    """What one layer's batches added up to, over some words."""

    n: np.ndarray  # (words,) their rows
    by_word: dict[str, np.ndarray] = field(default_factory=dict)  # (words, ...) float64
    whole: dict[str, np.ndarray] = field(default_factory=dict)  # (...) float64

    def taken(self, words: np.ndarray) -> Sums:
        """Those of some words."""
        return Sums(self.n[words], {name: total[words] for name, total in self.by_word.items()}, self.whole)

    def merge(self, part: Self, words: np.ndarray) -> None:
        """Add a part whose words are these."""
        self.n[words] += part.n
        for name, value in part.by_word.items():
            total = self.by_word.setdefault(name, np.zeros((len(self.n), *value.shape[1:])))
            total[words] += value
        for name, value in part.whole.items():
            self.whole[name] = self.whole.get(name, 0.0) + value


class Found(NamedTuple):
    """A layer's statistics by name and, of a measure over words, each word's score (words,), NaN where undefined."""

    statistics: dict[str, float]
    scores: np.ndarray | None = None


class Additive(ABC):
    """A measure's form in sums. It is pickled to other processes, and keeps nothing of what it is shown."""

    @abstractmethod
    def addends(self, batch: Batch) -> Addends:
        """What a batch adds: operations of torch on its device, in float64."""

    @abstractmethod
    def found(self, sums: Sums) -> Found:
        """What a run that stored the rows gives; a statistic that sums don't tell, such as a median, is left out."""

    def moved(self, part: Sums, whole: Sums) -> np.ndarray | float | None:
        """How much the rows of a part move the mean: the sum of their influences on each word's score (words,), or on
        the mean itself (`ctxexp.maths.influence`). `whole` are the sums of all parts, of the part's words. None: what
        is found has no interval."""
        return None


class OnePass(ABC):
    """A mark of metrics that offer it, beside `Metric`."""

    @abstractmethod
    def additive(self) -> Additive:
        """The form in sums. Raises MetricError where an option, such as random groups, needs rows."""


def mean_and_spread(n: float, total: float, squares: float) -> dict[str, float]:
    """raw (mean), sd (ddof 1) and n of n numbers, from their sum and that of their squares; NaN where undefined."""
    mean = total / n if n else float("nan")
    spread = max(squares - n * mean**2, 0.0) / (n - 1) if n > 1 else float("nan")
    return {"raw": mean, "sd": spread**0.5, "n": float(n)}
