"""Finished runs: from the results folders of a tracking folder, or from an MLflow store."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.errors import TrackingError
from ctxexp.files.paths import user_path
from ctxexp.results import FILE, Results

if TYPE_CHECKING:
    from mlflow import MlflowClient

Table = dict[str, list[str]]  # column -> cells, as the CSV has them
Found = tuple[Results, str, Callable[[str], Table | None]]  # results, link to the run, how to open a table of it


def on_disk(folder: Path) -> Iterator[Found]:
    """Finished jobs under `<folder>/results`, the newest first; their tables are the CSV files beside."""
    from ctxexp.jobs.state import STATE, read_json

    for state_file in sorted((user_path(folder).resolve() / "results").glob(f"*/*/{STATE}"), reverse=True):
        place, state = state_file.parent, read_json(state_file)
        if state.get("status") == "FINISHED" and (place / FILE).exists():
            try:
                results = Results.load(place)
            except TrackingError as error:
                _leave_out(error)
                continue
            yield results, str(state.get("link") or place), cache(partial(_csv, place))


def in_mlflow(uri: str, experiment: str) -> Iterator[Found]:
    """Finished runs of an MLflow experiment, the newest first; tables are fetched when they are asked for."""
    from ctxexp.jobs.credentials import redact
    from ctxexp.sinks.mlflow import database, sqlite
    from ctxexp.sinks.mlflow.failures import failures
    from ctxexp.sinks.mlflow.links import run_link
    from ctxexp.sinks.mlflow.tags import KIND, LOGGED

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar a file
    if uri.startswith("sqlite") and not sqlite.sqlite_path(uri).exists():
        raise TrackingError(f"no tracking store at {sqlite.sqlite_path(uri)} (uri=)")
    client = database.client(uri)
    query = f"attributes.status = 'FINISHED' AND tags.`{KIND}` = 'job' AND tags.`{LOGGED}` = 'true'"
    with failures(f"cannot read the runs of {redact(uri)}"):
        held = client.get_experiment_by_name(experiment)
        if held is None:
            names = ", ".join(sorted(e.name for e in client.search_experiments()))
            raise TrackingError(f"no experiment {experiment!r} in {redact(uri)}; there are: {names} (experiment=)")
        token = None
        while True:
            page = client.search_runs(
                [held.experiment_id], query, max_results=1000, order_by=["attributes.start_time DESC"], page_token=token
            )
            for run in page:
                try:
                    with tempfile.TemporaryDirectory() as folder, failures(f"cannot fetch run {run.info.run_id}"):
                        client.download_artifacts(run.info.run_id, FILE, folder)
                        results = Results.load(Path(folder))
                except TrackingError as error:
                    _leave_out(error)
                    continue
                tables = cache(partial(_fetched, client, run.info.run_id))
                yield results, run_link(uri, held.experiment_id, run.info.run_id), tables
            token = page.token
            if not token:
                return


def _leave_out(error: TrackingError) -> None:
    """One bad run doesn't cost the report of the others."""
    print(f"warning: left out: {error}", file=sys.stderr)


def _csv(folder: Path, name: str) -> Table | None:
    path = folder / f"{name}.csv"
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {column: [row[i] for row in rows[1:]] for i, column in enumerate(rows[0])} if rows else None


def _fetched(client: MlflowClient, run_id: str, name: str) -> Table | None:
    """A run's table from the store, or None if it has none; raises TrackingError if the store is away."""
    from ctxexp.sinks.mlflow.failures import failures

    with failures(f"cannot fetch {name}.csv of run {run_id}"), tempfile.TemporaryDirectory() as folder:
        if f"{name}.csv" not in {item.path for item in client.list_artifacts(run_id)}:
            return None
        client.download_artifacts(run_id, f"{name}.csv", folder)
        return _csv(Path(folder), name)
