"""Rows to be measured, place by place: words, pairs of sentences, embedding tables; in one shape, for one path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from ctxexp.errors import plugin_call
from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.groups import Block
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
    """One place's rows in memory."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def blocks(self, kind: str) -> Iterator[Block]:
        """The groups of a kind, those of equal size together; each is valid until the next."""

    left_out: int | None = None  # members of groups that have no vector here; None where that can't be
    eps: float = 0.0  # machine epsilon of the vectors, where rows that differ by less are equal; 0: their type's own

    def guard(self, label: str, metric: Metric, where: str, call: Callable[[], T]) -> T:
        """The call's result; what it raises is named as the metric's, with this place and where in it."""
        return guard(label, metric, f"{self.place}, {where}", call)


class Rows(ABC):
    """Vectors of one kind of thing, at each place, and which of them belong together.

    `stage` is what progress calls the work, and its steps. `kinds` are those of groups, in the order in which metrics
    get them; what one gather serves stands together, the second kind's groups being the first's rows one by one.
    `units` is what is drawn anew behind intervals (None: metrics have intervals of their own).
    """

    stage: ClassVar[tuple[str, str]]
    kinds: ClassVar[tuple[tuple[str, ...], ...]]
    places: Sequence[Place]
    units: Units | None = None
    threads: ClassVar[int | None] = None  # of BLAS, at most

    @abstractmethod
    def kind_of(self, metric: Metric) -> str | None:
        """Which groups of these rows the metric gets; None: none."""

    @abstractmethod
    def at(self, place: Place) -> Reader:
        """The rows at a place; valid until the next place is read."""

    def prepare(self, probes: Mapping[str, Metric]) -> None:  # noqa: B027  # optional
        """Draw what is drawn, before any place is read; `probes` are the metrics to come, by label (optional)."""

    def bind_text(self, metric: Metric) -> None:  # noqa: B027  # optional
        """Tell a place's instance of a metric what is measured (optional)."""

    def observe_layer(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:  # noqa: B027  # optional
        """Take the metrics' chance levels at the place that was read last; with `influence`, how much units move them
        too (optional)."""

    def group_indices(self, metric: Metric) -> np.ndarray | None:
        """The indices of the groups of its kind that the metric gets, ascending; None: all."""
        return None

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """What they have to tell beside the measures', once every place was read."""
        return {}

    def info(self) -> RunInfo:
        """The metadata that a run records of them."""
        return RunInfo()

    def baseline_source(self, label: str) -> str:
        """The source of a measure's baseline: `exact`, `drawn`, or nothing where it has none to speak of."""
        return ""


def guard(label: str, metric: object, where: str, call: Callable[[], T]) -> T:
    """The call's result; what it raises is a MetricError that names the metric and where (`layer 3, word 'bank'`)."""
    failure = f"({type(metric).__name__}) failed at {where}"
    with plugin_call("metric", label, failure, within=f" at {where}"):
        return call()
