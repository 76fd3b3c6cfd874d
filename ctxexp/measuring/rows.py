"""Rows to be measured, place by place: words, pairs of sentences, embedding tables; in one shape, for one path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from ctxexp.errors import plugin_call
from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.groups import Block
from ctxexp.measuring.mix import MixedWords
from ctxexp.metric import Metric
from ctxexp.results.run_info import RunInfo

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Place(NamedTuple):
    """Where vectors are read: a layer, a mix of layers or an embedding table."""

    kind: Literal["layer", "mix", "table"]
    name: str
    layer: int | None = None  # of a layer, its number

    @classmethod
    def of(cls, layer: int) -> Place:
        """A layer."""
        return cls("layer", str(layer), layer)

    def __str__(self) -> str:
        return f"layer {self.name}" if self.kind == "layer" else f"{self.kind} {self.name!r}"

    @property
    def folder(self) -> str:
        """The folder of what metrics write of this place."""
        if self.layer is not None:
            return f"layer_{self.layer:02d}"
        return self.name if self.kind == "mix" else f"table_{self.name}"


class Reader(ABC):
    """The rows of one place, in memory."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def blocks(self, kind: str) -> Iterator[Block]:
        """The groups of a kind, those of equal size together; each is valid until the next."""

    left_out: int | None = None  # members of groups that have no vector at this place; None: all have one at any place
    eps: float = 0.0  # machine epsilon of the vectors: rows that differ by less are equal; 0: that of their type

    def call_metric(self, label: str, metric: Metric, where: str, call: Callable[[], T]) -> T:
        """Call a method of a metric and return its result; its errors name the metric, this place and `where`."""
        return call_metric(label, metric, f"{self.place}, {where}", call)


class Rows(ABC):
    """A source of vectors of one kind of thing at each place, and the groups that they form.

    `stage` is the title of the work in progress bars, and the name of its steps. `kinds` are the kinds of groups, in
    the order in which metrics get them; those in one inner tuple are fed from the same blocks: the first kind gets the
    groups, the second each row of them as a group of its own. `units` are the clusters that the bootstrap resamples
    (None: metrics have intervals of their own).
    """

    stage: ClassVar[tuple[str, str]]
    kinds: ClassVar[tuple[tuple[str, ...], ...]]
    places: Sequence[Place]
    units: Units | None = None
    threads: ClassVar[int | None] = None  # of BLAS, at most

    @abstractmethod
    def kind_of(self, metric: Metric) -> str | None:
        """The kind of groups of these rows that the metric gets; None: it gets none."""

    @abstractmethod
    def at(self, place: Place) -> Reader:
        """The rows at a place; valid until the next place is read."""

    def prepare(self, prototypes: Mapping[str, Metric]) -> None:  # noqa: B027  # optional
        """Draw random groups and samples before any place is read; `prototypes` are the metrics by label (optional)."""

    def bind_text(self, metric: Metric) -> None:  # noqa: B027  # optional
        """Give an instance of a metric the text whose vectors it measures (optional)."""

    def measure_baselines(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:  # noqa: B027  # optional
        """Compute the metrics' baselines at the place that was read last; with `influence`, that of each cluster on
        them too (optional)."""

    def group_indices(self, metric: Metric) -> np.ndarray | None:
        """The indices of the groups of its kind that the metric gets, ascending; None: all."""
        return None

    def mixed_words(self, metric: Metric, indices: np.ndarray | None) -> MixedWords | None:
        """The weights of a metric's groups, those with these indices (None: all); None: they aren't words."""
        return None

    def own_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Further result tables by name, beside the metrics' own (`tables`), once every place was read."""
        return {}

    def info(self) -> RunInfo:
        """The metadata that a run records of them."""
        return RunInfo()

    def baseline_source(self, label: str) -> str:
        """The source of a measure's baseline: `exact`, `drawn`, or nothing where it has none to speak of."""
        return ""


def call_metric(label: str, metric: object, where: str, call: Callable[[], T]) -> T:
    """Call a metric's method and return its result; what it raises becomes a MetricError that names the metric and
    `where` (`layer 3, word 'bank'`)."""
    failure = f"({type(metric).__name__}) failed at {where}"
    with plugin_call("metric", label, failure, within=f" at {where}"):
        return call()
