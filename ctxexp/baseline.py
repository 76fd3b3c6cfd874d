"""What a baseline must offer: random groups of occurrences, and the level that they give each measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from ctxexp.measuring.bootstrap import Curve
from ctxexp.measuring.levels import Among
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.reader import WordReader
from ctxexp.metric import GroupMean, Metric, Over


class Levels(NamedTuple):
    """A measure's chance level in every layer."""

    of_group: np.ndarray  # (n_groups, n_layers) each group's own, or (n_layers,) where all have one
    curve: Curve  # its mean over the groups that have a score


class Subject(NamedTuple):
    """A measure in one layer, and which of its kind's groups it takes (None: all)."""

    metric: GroupMean
    chosen: np.ndarray | None


class Chance(ABC):
    """The chance level of measures over one kind of groups: it looks at each layer, then tells the levels."""

    @abstractmethod
    def look(self, reader: WordReader, subjects: Mapping[str, Subject], *, influence: bool) -> None:
        """Take one layer's levels of the measures, by label; with `influence`, how much units move them too."""

    @abstractmethod
    def levels(self, label: str, scores: np.ndarray, chosen: np.ndarray | None) -> Levels:
        """The levels of the measure whose groups have these scores (n_groups, n_layers)."""

    def words(self, metric: Metric) -> str:
        """How the measure's level came about: `exact`, `drawn`, `size-matched`, or nothing where it has none to speak
        of."""
        return "drawn"


class Baseline(ABC):
    """Random groups of occurrences, the same rows in every layer.

    The first is the reported baseline; the others, redraws of it, are for metrics over samples that tell their spread.
    A measure's level is its value on the first (`null`), unless `chance` gives groups levels of their own. `closed`:
    over what random occurrences are drawn, where the mean cosine's expectation takes the place of the draw.
    """

    name: ClassVar[str] = ""
    matched: ClassVar[bool] = False  # whether groups have levels of their own
    closed: Among | None = None

    @abstractmethod
    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Arrays of row numbers, each without repetition: no occurrence is compared with itself."""

    def chance(self, occurrences: Occurrences, over: Over, seed: int) -> Chance | None:
        """What gives the groups of a kind levels of their own (optional); None: all have that of the first group."""
        return None
