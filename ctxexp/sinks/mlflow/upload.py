"""Saved results into a tracking store, once: for when the store was down, or lives elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files.paths import user_path
from ctxexp.jobs.job import load_run
from ctxexp.jobs.state import RUN, read_state, write_state
from ctxexp.results import RESULTS_FILE
from ctxexp.sinks.mlflow import sqlite
from ctxexp.sinks.mlflow.sink import MlflowSink


@dataclass(frozen=True)
class Upload:
    """One folder's run in the store; where `is_new` is false it was there, complete, and nothing was sent."""

    folder: Path
    run_id: str
    link: str
    is_new: bool


def upload(
    folder: Path | str | None, *, uri: str | None = None, experiment: str | None = None, store: Path | str | None = None
) -> list[Upload]:
    """Send a job's folder, or each job of a sweep's folder, to a tracking store; sending twice makes no second run.

    `uri` and `experiment` default to those of the original run, `store` (where a SQLite store keeps its artifacts) to
    the tracking folder that holds `folder`. A run that was cut short is completed. Raises TrackingError if a folder
    holds no results or the store doesn't answer.
    """
    top = user_path(folder or ".").resolve()
    jobs = (
        [top]
        if (top / RUN).exists()
        else sorted(p.parent for p in top.glob(f"*/{RUN}") if (p.parent / RESULTS_FILE).exists())
    )
    if not jobs:
        raise TrackingError(
            f"{top} holds no results of ctxexp: expected {RUN} and {RESULTS_FILE} there or one folder below"
        )
    return [_upload(one, uri, experiment, Path(store) if store else None) for one in jobs]


def _upload(folder: Path, uri: str | None, experiment: str | None, store: Path | None) -> Upload:
    run, descriptions = load_run(folder, store or _store_of(folder)), read_state(folder).get("sinks", {})
    record = descriptions.get("mlflow", {})
    uri, experiment = uri or _still_there(record.get("uri")), experiment or record.get("experiment")
    sink = MlflowSink(uri=uri, experiment=experiment)
    is_new = sink.send_once(run)
    metadata = sink.metadata()
    descriptions = {**descriptions, "mlflow": dict(metadata)}
    write_state(folder, status="FINISHED", error=None, logged=True, sinks=descriptions, link=metadata["link"])
    return Upload(folder, metadata["run_id"], metadata["link"], is_new)


def _still_there(uri: str | None) -> str | None:
    """The original store's URI, unless it is a file that isn't here: the folder was moved, or copied from elsewhere."""
    if uri and uri.startswith("sqlite") and not sqlite.sqlite_path(uri).exists():
        return None
    return uri or None


def _store_of(folder: Path) -> Path:
    """The tracking folder of `<tracking folder>/results/<sweep>/<job>`."""
    above = folder.parents
    return above[2] if len(above) > 2 and above[1].name == "results" else above[0]
