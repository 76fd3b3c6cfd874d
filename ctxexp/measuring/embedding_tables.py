"""Embedding tables as rows, beside the layers: measured as they are, without transforms and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ctxexp.errors import EncodingError
from ctxexp.measuring.groups import Block
from ctxexp.measuring.rows import Place, Reader, Rows
from ctxexp.metric import Metric
from ctxexp.model import EmbeddingTable
from ctxexp.results.run_info import RunInfo, TableInfo
from ctxexp.vectors.layers import read_only


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
