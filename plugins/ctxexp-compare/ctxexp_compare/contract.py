"""Contract of a measure of two spaces: each space is prepared once, as a side, and every two sides get a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

Null = Literal["words", "free"]
RowNorm = Literal["unit_norm", "as_is"]


@unique
class ComparisonStream(IntEnum):
    """Streams of random numbers of one seed that differ from those of `ctxexp.maths.resampling.Stream`."""

    PERMUTED = 101
    CONTROL = 102
    SAMPLED = 103
    FOLDS = 104


@dataclass(frozen=True)
class Sample:
    """Occurrences that all spaces have in common: row i of each space is the same occurrence."""

    blocks: np.ndarray  # (n,) int64, the number of each row's resampling unit, such as its sentence
    unit: str = "sentence"  # the name of such a resampling unit
    seed: int = 0
    words: np.ndarray | None = None  # (n,) int64, the number of each row's word form
    strata: np.ndarray | None = None  # (n,) int64, from 0: chance permutes rows of equal number; None: any rows

    def __len__(self) -> int:
        return len(self.blocks)

    def permutation(self, rng: np.random.Generator) -> np.ndarray:
        """Random order of the rows (n,) under which each stays within its stratum."""
        n = len(self)
        if self.strata is None:
            return rng.permutation(n)
        order = np.empty(n, np.int64)
        order[np.argsort(self.strata, kind="stable")] = np.lexsort([rng.random(n), self.strata])
        return order


class ComparisonScore(NamedTuple):
    """Value of a measure, and the influence of each occurrence on it: (n,) float64, None where that isn't known."""

    value: float
    influence: np.ndarray | None = None


class NullDistribution(NamedTuple):
    """Mean and standard deviation of a measure over all permutations of one space's rows (NaN where not known), and the
    influence of each occurrence on the mean: (n,), None where that isn't known."""

    mean: float
    sd: float
    influence: np.ndarray | None = None


class TwoSpaces(ABC):
    """Measure of two spaces over the same occurrences: rows (n, d1) and (n, d2).

    `prepare_side` prepares one space for all its comparisons, `score` compares two sides. `self_score` is the value of
    a space with itself (`self_score_at` where it depends on the number of rows), which `adjusted` maps to 1, and the
    chance level to 0. `chance` draws permutations within `sample.strata`, for which a measure has to define `permute`,
    unless it overrides `chance` with a closed form.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    definition: str = ""
    unit = "share"
    symmetric: ClassVar[bool] = True
    self_score: ClassVar[float] = 1.0
    min_rows: int = 5

    @property
    def label(self) -> str:
        """The name with the arguments that differ from their defaults: `mutual_knn k=30`."""
        return self.name

    @abstractmethod
    def prepare_side(self, x: np.ndarray, sample: Sample) -> Any:
        """Prepare one space for its comparisons.

        Args:
            x: the rows (n, d), float32 or float64.
            sample: the occurrence that each row is.

        Returns:
            Anything that `score` takes; its `nbytes`, where it has any, decide how many are in memory at a time.
        """

    @abstractmethod
    def score(self, a: Any, b: Any) -> ComparisonScore:
        """Compare two sides.

        Args:
            a: the side of one space.
            b: that of the other one, of the same sample.

        Returns:
            The score; its value is NaN where the measure is undefined.
        """

    def self_score_at(self, n: int) -> float:
        """Value of a space of n rows with itself."""
        return self.self_score

    def permute(self, side: Any, order: np.ndarray) -> Any:
        """The side of the same rows in another order (n,); needed unless `chance` is overridden."""
        raise NotImplementedError

    def chance(self, a: Any, b: Any, sample: Sample, permutations: int) -> NullDistribution:
        """Draw the measure's distribution over permutations of b's rows; override it where there is a closed form.

        Args:
            a: the side of one space.
            b: that of the other one, whose rows are permuted.
            sample: the occurrences; rows are permuted within `sample.strata`, freely where that is None.
            permutations: the number of draws.

        Returns:
            Mean, standard deviation (both NaN of fewer than two draws) and influences on the mean.
        """
        rng = np.random.default_rng([sample.seed, ComparisonStream.PERMUTED])
        values, total = [], np.zeros(len(sample))
        for _ in range(permutations):
            order = sample.permutation(rng)
            score = self.score(a, self.permute(b, order))
            values.append(score.value)
            total += np.nan if score.influence is None else score.influence
            np.add.at(
                total, order, 0.0 if score.influence is None else score.influence
            )  # as a row of a, and as one of b
        if len(values) < 2:
            return NullDistribution(float("nan"), float("nan"))
        total /= len(values)
        number = np.zeros(len(sample), np.int64) if sample.strata is None else sample.strata
        total -= (np.bincount(number, total) / np.bincount(number) / 2)[number]  # its stratum's share counts once
        return NullDistribution(float(np.mean(values)), float(np.std(values, ddof=1)), total - total.mean())


DIMENSIONS = 192  # of a random vector per word


def negative_control(measure: TwoSpaces, sample: Sample, choice: RowNorm, permutations: int) -> tuple[float, float]:
    """Raw and adjusted value between two spaces that give each word a random vector; NaN where words are unknown."""
    if sample.strata is None:
        return float("nan"), float("nan")
    rng = np.random.default_rng([sample.seed, ComparisonStream.CONTROL])
    tables = rng.normal(size=(2, int(sample.strata.max()) + 1, DIMENSIONS)).astype(np.float32)
    a, b = (measure.prepare_side((unit_norm(x) if choice == "unit_norm" else x)[sample.strata], sample) for x in tables)
    value = measure.score(a, b).value
    chance = measure.chance(a, b, sample, permutations).mean
    return value, (value - chance) / (measure.self_score_at(len(sample)) - chance)


def unit_norm(x: np.ndarray) -> np.ndarray:
    """Rows (n, d) divided by their norms, float32; rows of norm 0 stay."""
    wide = x.astype(np.float64)
    norm = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, norm, out=wide, where=norm > 0).astype(np.float32)
