"""Rows to be measured, place by place, in one shape for one path: the words of a layer, gathered into one buffer block
by block; pairs of sentences; embedding tables, as they are, without transforms and baselines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from ctxexp.errors import EncodingError, plugin_call
from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.groups import Block
from ctxexp.measuring.mix import MixedWords
from ctxexp.measuring.occurrences import Groups, Occurrences
from ctxexp.metric import Metric
from ctxexp.model import EmbeddingTable
from ctxexp.results.run_info import RunInfo, TableInfo
from ctxexp.vectors.layers import read_only

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
BLOCK_BYTES = 2**20  # vectors that are measured at a time: about a core's second-level cache


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


class Gather:
    """Copies rows out of a layer into one float32 buffer that is used again and again."""

    def __init__(self, dim: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.dim = dim
        self.most_rows = max(1, block_bytes // (4 * dim))
        self.buffer = np.empty(self.most_rows * dim, np.float32)

    def __call__(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        if rows.size * self.dim > self.buffer.size:
            self.buffer = np.empty(rows.size * self.dim, np.float32)
        x = self.buffer[: rows.size * self.dim].reshape(rows.size, self.dim)
        if vectors.dtype == np.float32:
            np.take(vectors, rows.ravel(), axis=0, out=x, mode="clip")  # "clip" skips a copy; rows are the store's own
        else:
            x[...] = vectors[rows.ravel()]
        return read_only(x.reshape(*rows.shape, self.dim))


class WordReader(Reader):
    """One layer's occurrences; `samples` are the baseline's random groups."""

    def __init__(
        self,
        place: Place,
        vectors: np.ndarray,
        occurrences: Occurrences,
        buffer: Gather,
        *,
        samples: Sequence[np.ndarray] = (),
        eps: float = 0.0,
    ) -> None:
        super().__init__(place)
        self.vectors, self.occurrences, self.samples, self._buffer = vectors, occurrences, samples, buffer
        self.eps = max(eps, float(np.finfo(vectors.dtype).eps))

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        return self._buffer(self.vectors, rows)

    def blocks_of(self, groups: Groups) -> Iterator[Block]:
        """All groups, those of equal size together."""
        for keys, rows, labels in groups.blocks(self._buffer.most_rows):
            yield Block(keys, self.gather(rows), rows, labels, eps=self.eps)

    def blocks(self, kind: str) -> Iterator[Block]:
        if kind != "sample":
            yield from self.blocks_of(self.occurrences.groups(kind))
            return
        for i, rows in enumerate(self.samples):
            yield Block([i], self.gather(rows[None]), rows[None], eps=self.eps)


class TableReader(Reader):
    """One embedding table."""

    def __init__(self, place: Place, table: EmbeddingTable) -> None:
        super().__init__(place)
        self.table = table

    def blocks(self, kind: str) -> Iterator[Block]:
        yield Block([self.table.name], read_only(self.table.vectors)[None], table=self.table)


class TableRows(Rows):
    """The embedding tables of a model, for metrics that measure embedding tables."""

    stage: ClassVar[tuple[str, str]] = ("measuring embedding tables", "tables")
    kinds = (("table",),)

    def __init__(self, tables: Sequence[EmbeddingTable], *, encoder: str) -> None:
        """Raises EncodingError for a malformed table, naming the `encoder`."""
        for table in tables:
            _check(f"encoder {encoder!r}, table {table.name!r}", table)
        self.tables = {table.name: table for table in tables}
        self.places = [Place("table", name) for name in self.tables]

    def kind_of(self, metric: Metric) -> str | None:
        return "table" if metric.measures_embedding_tables else None

    def at(self, place: Place) -> TableReader:
        return TableReader(place, self.tables[place.name])

    def info(self) -> RunInfo:
        tables = self.tables.values()
        info = {t.name: TableInfo(rows=len(t.tokens), dim=t.vectors.shape[1], note=t.note, tied=t.tied) for t in tables}
        return RunInfo(tables=info)


def _check(who: str, table: EmbeddingTable) -> None:
    """Raise EncodingError unless each token has a finite row of floats, and a count where the table has counts."""
    n, x = len(table.tokens), table.vectors
    if x.ndim != 2 or len(x) != n or not np.issubdtype(x.dtype, np.floating):
        raise EncodingError(f"{who}: {x.dtype} vectors of shape {x.shape} for {n} tokens; expected floats, a row each")
    if table.counts is not None and table.counts.shape != (n,):
        raise EncodingError(f"{who}: counts of shape {table.counts.shape} for {n} tokens; expected one each, or None")
    if not np.isfinite(x.sum(axis=1, dtype=np.float64)).all():
        raise EncodingError(f"{who} holds NaN or infinite values")
