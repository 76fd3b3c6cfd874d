"""What a metric over sentence pairs must offer: the vectors of gold pairs in, numbers out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from ctxexp.measuring.described import Described


@dataclass(frozen=True)
class Pairs:
    """The pairs of one sub-set in one layer: sentence vectors, gold similarity, texts."""

    x: np.ndarray  # (n, d) float32, the first sentences
    y: np.ndarray  # (n, d) float32, the second sentences
    gold: np.ndarray  # (n,) float64
    texts: Sequence[tuple[str, str]]
    ends: np.ndarray | None = None  # (n, 2) int64, the two sentences' numbers; None: no two pairs share one

    def __len__(self) -> int:
        return len(self.gold)


class PairMetric(Described, ABC):
    """A measure of one layer's sentence vectors on a corpus's gold pairs. One instance serves one layer or layer mix.

    A pair's sub-set is `task/part` (`STS12/MSRpar`) or the task alone. Names of statistics may hold a task too:
    `STS12/all` becomes the curve `<label>/STS12/all`. What it says of itself are the attributes of `Described`.
    """

    over: ClassVar[Literal["pair"]] = "pair"

    @abstractmethod
    def update(self, subset: str, pairs: Pairs) -> None:
        """Take all pairs of one sub-set. The arrays are only lent: copy what must be kept."""

    @abstractmethod
    def compute(self, rng: np.random.Generator, replicates: int) -> dict[str, float]:
        """The layer's statistics by name; undefined is NaN. `rng` is in the same state for every layer, so that
        bootstrap resamples are the same pairs; without replicates (0) intervals are NaN."""

    def replicates(self) -> dict[str, np.ndarray]:
        """After `compute`, its bootstrap replicates (r,) of the statistics that runs are compared by (optional): since
        `rng` draws the same pairs in every layer and run, differences of two runs' have an interval too."""
        return {}

    def rows(self) -> list[dict[str, Any]]:
        """Rows of the measure's table for this layer, such as one a sub-set; the layer is added to them (optional)."""
        return []

    def save(self, folder: Path) -> None:  # optional: most metrics have nothing to write
        """Write files beside the curves (optional)."""
