"""A model's embedding tables, as they are: no transform, no baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ctxexp.errors import EncodingError
from ctxexp.groups import Block, Place
from ctxexp.measuring.record import Record
from ctxexp.model import EmbeddingTable
from ctxexp.occurrences import read_only
from ctxexp.progress import Progress
from ctxexp.results.run_info import TableInfo


def measure_tables(tables: Sequence[EmbeddingTable], record: Record, progress: Progress | None = None) -> None:
    """Measure the tables by the metrics of a record that measure such."""
    labels = [label for label, metric in record.prototypes.items() if metric.measures_embedding_tables]
    places = {Place("table", table.name): table for table in tables}
    found = {}
    with Progress.of(progress).stage("measuring embedding tables", len(places), "tables") as stage:
        for place, table in places.items():
            block = Block([table.name], read_only(table.vectors)[None], table=table)
            found[place] = record.measure(place, labels, "table", [block])
            stage.advance(1)
    record.write_statistics({label: {place: found[place][label] for place in places} for label in labels})
    info = {t.name: TableInfo(rows=len(t.tokens), dim=t.vectors.shape[1], note=t.note, tied=t.tied) for t in tables}
    record.state(replace(record.info, tables=info), dict.fromkeys(labels, ""))


def check_table(table: EmbeddingTable, *, encoder: str) -> None:
    """Raise EncodingError, naming the encoder, unless each token has a finite row of floats, and a count where the
    table has counts."""
    who, n, x = f"encoder {encoder!r}, table {table.name!r}", len(table.tokens), table.vectors
    if x.ndim != 2 or len(x) != n or not np.issubdtype(x.dtype, np.floating):
        raise EncodingError(f"{who}: {x.dtype} vectors of shape {x.shape} for {n} tokens; expected floats, a row each")
    if table.counts is not None and table.counts.shape != (n,):
        raise EncodingError(f"{who}: counts of shape {table.counts.shape} for {n} tokens; expected one each, or None")
    if not np.isfinite(x.sum(axis=1, dtype=np.float64)).all():
        raise EncodingError(f"{who} holds NaN or infinite values")
