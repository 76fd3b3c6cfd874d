"""Uploading: runs on disk that a tracking store lacks, sent by a command of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files import user_path
from ctxexp.files.job_folder import RUN_FILE, read_state
from ctxexp.jobs.sending import send_run, send_sweep
from ctxexp.jobs.sweep import JOBS, report_of
from ctxexp.results import Results
from ctxexp.results.files import RESULTS_FILE
from ctxexp.sinks import Sweep, database, load_run
from ctxexp.sinks.mlflow import MlflowSink

LABEL = "mlflow"


@dataclass(frozen=True)
class Upload:
    """One folder's run in the store; where `is_new` is false it was there, complete, and nothing was sent."""

    folder: Path
    run_id: str
    link: str
    is_new: bool


def upload(folder: Path | str, *, uri: str | None = None, experiment: str | None = None) -> list[Upload]:
    """Send a job's folder, or each job of a sweep's folder and its comparison, to a tracking store; sending twice makes
    no second run.

    `uri` and `experiment` default to those that the runs were meant for. A run that was cut short is completed. Raises
    TrackingError if a folder holds no results or the store doesn't answer.
    """
    top = user_path(folder).resolve()
    jobs = [top] if (top / RUN_FILE).exists() else sorted(p.parent for p in top.glob(f"*/{RUN_FILE}"))
    if not (jobs := [one for one in jobs if one == top or (one / RESULTS_FILE).exists()]):
        raise TrackingError(
            f"{top} holds no results of ctxexp: expected {RUN_FILE} and {RESULTS_FILE} there or one folder below"
        )
    above = jobs[0].parents  # <tracking folder>/results/<sweep>/<job>
    place = above[2] if len(above) > 2 and above[1].name == "results" else above[0]
    state = read_state(jobs[0])
    record = state.get("sinks", {}).get(LABEL) or state.get("meant", {}).get(LABEL, {})
    if not uri and (uri := record.get("uri")) and (path := database.sqlite_file(uri)) and not path.parent.exists():
        uri = None  # the folder was moved, or copied from elsewhere
    sink = MlflowSink(uri=uri, experiment=experiment or record.get("experiment") or None)
    uploads = [_upload(one, sink, place) for one in jobs]
    if top not in jobs and (top / "summary" / JOBS).exists():
        sweep = Sweep(top.name, place, min(load_run(one, place).began_ms for one in jobs) / 1000)
        if problems := send_sweep(sweep, report_of(sweep), {LABEL: sink})[1]:
            raise TrackingError(problems[0])
    return uploads


def _upload(folder: Path, sink: MlflowSink, tracking_folder: Path) -> Upload:
    run = load_run(folder, tracking_folder)
    results = Results.load(folder)
    is_new = sink.stored_run(run) is None
    send_run(folder, LABEL, sink, tracking_folder, run.sweep, results)
    metadata = read_state(folder).get("sinks", {})[LABEL]
    return Upload(folder, metadata["run_id"], metadata["link"], is_new)
