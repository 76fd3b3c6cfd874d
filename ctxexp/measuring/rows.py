"""Rows to be measured, place by place, in one shape for one path: the words of a layer, gathered into one buffer block
by block; pairs of sentences; embedding tables, as they are, without transforms and baselines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ctxexp.errors import EncodingError
from ctxexp.groups import Block, Place, Reader
from ctxexp.maths.mix import MixedWords
from ctxexp.maths.resampling import Units
from ctxexp.metric import Metric
from ctxexp.model import EmbeddingTable
from ctxexp.occurrences import read_only
from ctxexp.results.run_info import RunInfo, TableInfo

if TYPE_CHECKING:
    import pandas as pd


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
