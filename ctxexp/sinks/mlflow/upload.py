"""Saved results into a tracking store, once: for when the store was down, or lives elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files.paths import user_path
from ctxexp.results import FILE, Results
from ctxexp.sinks.mlflow import database, sqlite
from ctxexp.sinks.mlflow.failures import failures, redact
from ctxexp.sinks.mlflow.jobs import RUN
from ctxexp.sinks.mlflow.sink import BUNDLE, LOGGED, MlflowSink
from ctxexp.sinks.mlflow.state import read_json, write_state


@dataclass(frozen=True)
class Upload:
    """One folder's run in the store; `already`: it was there, whole, and nothing was sent."""

    folder: Path
    run_id: str
    link: str
    already: bool


def upload(
    folder: Path | str | None, *, uri: str | None = None, experiment: str | None = None, store: Path | str | None = None
) -> list[Upload]:
    """Send a job's folder, or each job of a sweep's folder, to a tracking store; twice makes no second run.

    `uri` and `experiment` default to those of the original run, `store` (where a SQLite store keeps its artifacts) to
    the tracking folder that holds `folder`. A run that was cut short is completed. Raises TrackingError if a folder
    holds no results or the store doesn't answer.
    """
    top = user_path(folder or ".").resolve()
    jobs = (
        [top] if (top / RUN).exists() else sorted(p.parent for p in top.glob(f"*/{RUN}") if (p.parent / FILE).exists())
    )
    if not jobs:
        raise TrackingError(f"{top} holds no results of ctxexp: expected {RUN} and {FILE} there or one folder below")
    return [_upload(one, uri, experiment, Path(store) if store else None) for one in jobs]


def _upload(folder: Path, uri: str | None, experiment: str | None, store: Path | None) -> Upload:
    known, results = read_json(folder / RUN), Results.load(folder)
    try:
        name, tags, params, began = known["name"], known["tags"], known["params"], int(known["began"])
        bundle = tags[BUNDLE]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise TrackingError(f"{folder / RUN} is not a run of ctxexp, or is damaged; run the job again") from None
    store = store or _store_of(folder)
    uri = database.prepare(store, uri or _still_there(known.get("uri")))
    sink = MlflowSink(uri, experiment or known.get("experiment") or "ctxexp", folder, store=store)
    with failures(f"cannot look for the run of {folder} in {redact(uri)}"):
        runs = sink.client.search_runs([sink.experiment_id], f"tags.`{BUNDLE}` = '{bundle}'", max_results=1)
    held = runs[0] if runs else None
    already = held is not None and held.data.tags.get(LOGGED) == "true" and held.info.status == "FINISHED"
    if held is not None:
        sink.reopen(held.info.run_id, began)
    else:
        config = folder / "config.yaml"
        text = config.read_text(encoding="utf-8", errors="replace") if config.exists() else ""
        sink.start(name=name, tags=tags, params=params, config=text, began=began)
    if not already:
        sink.log(results, folder)
        sink.finish("FINISHED")
    write_state(folder, status="FINISHED", error=None, logged=True, run_id=sink.run_id, link=sink.link())
    return Upload(folder, sink.run_id, sink.link(), already)


def _still_there(uri: str | None) -> str | None:
    """The original store's URI, unless it is a file that isn't here: the folder was moved, or copied from elsewhere."""
    if uri and uri.startswith("sqlite") and not sqlite.sqlite_path(uri).exists():
        return None
    return uri or None


def _store_of(folder: Path) -> Path:
    """The tracking folder of `<tracking folder>/results/<sweep>/<job>`."""
    above = folder.parents
    return above[2] if len(above) > 2 and above[1].name == "results" else above[0]
