"""Embedding tables beside the layers: measured once each, by the metrics that can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import CtxexpError, EncodingError, MetricError, said, stranger
from ctxexp.metric import Metric
from ctxexp.model import EmbeddingTable, Encoder
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.run_info import RunInfo, TableInfo
from ctxexp.values import Values
from ctxexp.vectors.layers import lent


def measure_tables(
    encoder: Encoder,
    corpus: Corpus,
    metrics: Mapping[str, Callable[[], Any]],
    folder: Path,
    progress: Progress,
    *,
    title: str,
    model: AbstractContextManager[Any],
) -> Results:
    """What the metrics that have a method `table` say of each table that the encoder offers; then they may finish.

    `table(EmbeddingTable) -> dict[str, float]` is called on a fresh instance for each table; its values become
    scalars whose place is the table, and its `save` writes under `<label>/table_<name>`. Then a metric that has
    `finish(folder, n_layers=..., title=...)` is called once on another instance, with its own folder: what it draws
    of several layers or tables. Tables are measured as they are: transforms and baselines don't reach them. Raises
    EncodingError for a malformed table (within the context `model`), MetricError naming metric and table.
    """
    built = {label: factory() for label, factory in metrics.items()}
    users = [label for label, metric in built.items() if hasattr(metric, "table")]
    tables: list[EmbeddingTable] = []
    values = Values()
    if users:
        with model:
            tables = list(encoder.tables(corpus.sentences))
            for table in tables:
                _check(encoder, table)
    if tables:
        with progress.stage("measuring embedding tables", len(tables), "tables") as stage:
            for table in tables:
                shown = replace(table, vectors=lent(table.vectors))
                for label in users:
                    found = _measure(label, metrics[label](), shown, folder / label / f"table_{table.name}")
                    values.add_all(label, found, table.name)
                stage.advance(1)
    for label, metric in built.items():
        finish = getattr(metric, "finish", None)
        if finish is not None and (folder / label).is_dir():
            call = {"n_layers": encoder.n_layers, "title": title}
            _guard(label, "finish()", lambda f=finish, p=folder / label, c=call: f(p, **c))  # type: ignore[misc]
    told = {t.name: TableInfo(rows=len(t.tokens), dim=t.vectors.shape[1], note=t.note, tied=t.tied) for t in tables}
    return Results.of(values, info=RunInfo(tables=told))


def _measure(label: str, metric: Any, table: EmbeddingTable, place: Path) -> dict[str, float]:
    values = _guard(label, f"table {table.name!r}", lambda: metric.table(table))
    if not isinstance(values, dict):
        raise _named(label, f"metric {label!r}: table() gave a {type(values).__name__}; expected numbers by name")
    if type(metric).save is not Metric.save:
        place.mkdir(parents=True, exist_ok=True)
        _guard(label, f"save() of table {table.name!r}", lambda: metric.save(place))
    return {name: float(value) for name, value in values.items()}


def _guard(label: str, where: str, call: Callable[[], Any]) -> Any:
    try:
        with stranger():
            return call()
    except CtxexpError as error:
        raise _named(label, f"metric {label!r}, {where}: {error}") from error
    except Exception as error:  # a stranger's metric may raise anything
        raise _named(label, f"metric {label!r} failed, {where}: {said(error)}") from error


def _named(label: str, message: str) -> MetricError:
    error = MetricError(message)
    error.of = "metric", label
    return error


def _check(encoder: Encoder, table: EmbeddingTable) -> None:
    """Raise EncodingError unless the table has a finite float row, and a count if it has counts, for each token."""
    who = f"encoder {encoder.name!r}, table {table.name!r}"
    n, x = len(table.tokens), table.vectors
    if x.ndim != 2 or len(x) != n or not np.issubdtype(x.dtype, np.floating):
        raise EncodingError(f"{who}: {x.dtype} vectors of shape {x.shape} for {n} tokens; expected floats, a row each")
    if table.counts is not None and table.counts.shape != (n,):
        raise EncodingError(f"{who}: counts of shape {table.counts.shape} for {n} tokens; expected one each, or None")
    if not np.isfinite(x.sum(axis=1, dtype=np.float64)).all():
        raise EncodingError(f"{who} holds NaN or infinite values")
