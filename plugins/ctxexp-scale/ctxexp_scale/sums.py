"""Sums over rows, from which a metric's numbers follow exactly: added up batch by batch, wherever these are encoded,
and merged by addition, so that no row is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-19  # a shorter row has no direction: its square is none in float32


class Batch:
    """Measured rows of one layer, of whole sentences, in float64 on the device where the model computed them.

    `x` (n, d); `sentence` (n,) ascending, the number of each row's sentence in the batch, below `n_sentences`. A
    sentence without a measured row is not counted.

    Example:
        >>> import torch
        >>> batch = Batch(torch.tensor([[3.0, 4.0], [0.0, 1.0], [0.0, 2.0]]), torch.tensor([0, 0, 1]), 2)
        >>> batch.norms.tolist(), batch.by_sentence(batch.norms).tolist()
        ([5.0, 1.0, 2.0], [6.0, 2.0])
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


@dataclass
class Sums:
    """The sums of one layer over all batches, of some words.

    Example:
        >>> total = Sums(np.zeros(3, np.int64))
        >>> total.merge(Sums(np.array([2, 1]), {"x": np.array([[1.0], [2.0]])}, {"norms": np.array(5.0)}), [0, 2])
        >>> total.n.tolist(), total.by_word["x"].ravel().tolist(), float(total.overall["norms"])
        ([2, 0, 1], [1.0, 0.0, 2.0], 5.0)
    """

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


class SumForm:
    """A metric's form in sums: what each batch adds, and the statistics of the total. It is pickled to other processes,
    and keeps no state. A metric gives it by a method `sum_form`.

    One name is one quantity, whichever form asks for it: it is summed once. A form that adds nothing is that of
    anisotropy, whose value is the baseline, which is summed in any case.

    Example:
        >>> class MeanNorm(SumForm):
        ...     def addends(self, batch):
        ...         return {"rows": batch.lengths.sum(), "norms": batch.norms.sum()}
        ...     def statistics(self, sums):
        ...         return {"raw": float(sums.overall["norms"] / sums.overall["rows"])}
        >>> MeanNorm().statistics(Sums(np.array([2]), overall={"rows": np.array(2.0), "norms": np.array(5.0)}))
        {'raw': 2.5}
    """

    @property
    def key(self) -> object:
        """All that tells two forms of a class apart, as text: a part of the key that sums are kept by."""
        return vars(self)

    def addends(self, batch: Batch) -> Mapping[str, Tensor]:
        """A batch's addends to the sums of all rows (`Sums.overall`), by name: operations of torch on its device, in
        float64."""
        return {}

    def word_addends(self, batch: Batch) -> Mapping[str, Tensor]:
        """The addends of each of a batch's rows (n, ...) to the sums of its word (`Sums.by_word`), by name."""
        return {}

    def statistics(self, sums: Sums) -> dict[str, float]:
        """Statistics computed from a layer's sums; equal to those of a stored run. Statistics that need single rows
        (the median) are omitted, and so are those of `scores`."""
        return {}

    def scores(self, sums: Sums) -> np.ndarray | None:
        """Each word's score (words,), NaN where undefined, of a measure over words; else None."""
        return None

    def influence(self, part: Sums, total: Sums) -> np.ndarray | float | None:
        """The influence of a part's rows: summed over them, that on each word's score (words,), or on the mean itself
        . `total` are the sums of all parts, of the part's words. None: the statistics have
         no interval."""
        return None


def mean_and_spread(n: float, total: float, squares: float) -> dict[str, float]:
    """raw (mean), sd (ddof 1) and n of n numbers, from their sum and that of their squares; NaN where undefined."""
    mean = total / n if n else float("nan")
    spread = max(squares - n * mean**2, 0.0) / (n - 1) if n > 1 else float("nan")
    return {"raw": mean, "sd": spread**0.5, "n": float(n)}
