"""What a measure of two spaces must offer: a side is made of each space once, and every two sides have a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

Null = Literal["words", "free"]
RowChoice = Literal["unit_norm", "as_is"]


@unique
class Stream(IntEnum):
    """Streams of random numbers of one seed, apart from the engine's; see `ctxexp.measuring.streams.Stream`."""

    PERMUTED = 101
    CONTROL = 102
    SAMPLED = 103
    FOLDS = 104


@dataclass(frozen=True)
class Sample:
    """The occurrences that all spaces have in common: row i of each space is one and the same occurrence."""

    blocks: np.ndarray  # (n,) int64, the number of each row's resampling unit, such as its sentence
    unit: str = "sentence"  # what these are
    seed: int = 0
    words: np.ndarray | None = None  # (n,) int64, the number of each row's word form
    strata: np.ndarray | None = None  # (n,) int64, 0 to the most: chance permutes rows of equal number; None: any

    def __len__(self) -> int:
        return len(self.blocks)

    def permutation(self, rng: np.random.Generator) -> np.ndarray:
        """(n,) a random order of the rows under which each stays within its stratum."""
        n = len(self)
        if self.strata is None:
            return rng.permutation(n)
        order = np.empty(n, np.int64)
        order[np.argsort(self.strata, kind="stable")] = np.lexsort([rng.random(n), self.strata])
        return order


class Score(NamedTuple):
    """A measure's value, and how much each occurrence moves it: (n,) float64, None where that isn't known."""

    value: float
    moved: np.ndarray | None = None


class Chance(NamedTuple):
    """The value where one space's rows are permuted: its mean and standard deviation over all permutations (NaN where
    that isn't known), and how much each occurrence moves the mean: (n,), None where that isn't known."""

    mean: float
    sd: float
    moved: np.ndarray | None = None


class TwoSpaces(ABC):
    """A measure of two spaces over the same occurrences: rows (n, d1) and (n, d2).

    `side` makes of one space what every comparison of it needs, `score` compares two sides. `itself` is the value of a
    space with itself (`limit` where it hangs on the rows), which `adjusted` takes to 1 and the chance level to 0.
    `chance` has a closed form where there is one, and is drawn by permutations otherwise, within `sample.strata` where
    it has any: of these a measure says how a side is `shuffled`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    definition: str = ""
    unit: ClassVar[str] = "share"
    symmetric: ClassVar[bool] = True
    itself: ClassVar[float] = 1.0
    least: int = 5  # rows that it needs

    @property
    def label(self) -> str:
        """Its name with what it was given, where that isn't the default's: `mutual_knn k=30`."""
        return self.name

    @abstractmethod
    def side(self, x: np.ndarray, sample: Sample) -> Any:
        """What is needed of one space x (n, d), float32 or float64."""

    @abstractmethod
    def score(self, a: Any, b: Any) -> Score:
        """The two sides' score; NaN where undefined."""

    def limit(self, n: int) -> float:
        """The value of a space of n rows with itself."""
        return self.itself

    def shuffled(self, side: Any, order: np.ndarray) -> Any:
        """The side of the same rows in another order (n,)."""
        raise NotImplementedError

    def chance(self, a: Any, b: Any, sample: Sample, permutations: int) -> Chance:
        """Mean and sd over so many permutations of b's rows, within `sample.strata` where it has any; override where
        there is a closed form."""
        rng = np.random.default_rng([sample.seed, Stream.PERMUTED])
        drawn, moved = [], np.zeros(len(sample))
        for _ in range(permutations):
            order = sample.permutation(rng)
            found = self.score(a, self.shuffled(b, order))
            drawn.append(found.value)
            moved += np.nan if found.moved is None else found.moved
            np.add.at(moved, order, 0.0 if found.moved is None else found.moved)  # as a row of a, and as one of b
        if len(drawn) < 2:
            return Chance(float("nan"), float("nan"))
        moved /= len(drawn)
        number = np.zeros(len(sample), np.int64) if sample.strata is None else sample.strata
        moved -= (np.bincount(number, moved) / np.bincount(number) / 2)[number]  # its stratum's share counts once
        return Chance(float(np.mean(drawn)), float(np.std(drawn, ddof=1)), moved - moved.mean())
