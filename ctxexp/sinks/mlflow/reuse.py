"""What has finished need not run again: finished jobs, on disk and in MLflow, and how a sweep takes them over."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import TrackingError
from ctxexp.files.manifest import damaged
from ctxexp.files.paths import user_path
from ctxexp.results import FILE, Results
from ctxexp.sinks.mlflow.database import client as open_client
from ctxexp.sinks.mlflow.database import experiment as open_experiment
from ctxexp.sinks.mlflow.doctor import close_dead
from ctxexp.sinks.mlflow.failures import failures, redact
from ctxexp.sinks.mlflow.jobs import RUN
from ctxexp.sinks.mlflow.sink import KEY, KIND, LOGGED, SWEEP
from ctxexp.sinks.mlflow.state import STATE, read_json, read_state, write_state
from ctxexp.sinks.mlflow.upload import upload

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger("ctxexp")


def finished_jobs(client: MlflowClient, experiment_id: str) -> dict[str, str]:
    """Job key -> run id of every whole FINISHED run; the newest run of a key."""
    found: dict[str, str] = {}
    query = f"attributes.status = 'FINISHED' AND tags.`{KIND}` = 'job' AND tags.`{LOGGED}` = 'true'"
    token: str | None = None
    with failures(f"cannot list the finished runs of {redact(client.tracking_uri)}"):
        while True:
            page = client.search_runs(
                [experiment_id], query, max_results=1000, order_by=["attributes.start_time DESC"], page_token=token
            )
            for run in page:
                found.setdefault(run.data.tags.get(KEY, ""), run.info.run_id)
            token = page.token
            if not token:
                break
    found.pop("", None)
    return found


def finished_on_disk(store: Path | str, key: str) -> Path | None:
    """The newest folder under `<store>/results` with whole results of a finished job of this `key`."""
    for path in sorted((user_path(store).resolve() / "results").glob(f"*/*/{STATE}"), reverse=True):
        state = read_state(path.parent)
        if state.get("status") == "FINISHED" and state.get("key") == key and (path.parent / FILE).exists():
            if not (what := _unfit(path.parent, key)):
                return path.parent
            _log.warning("warning: results in %s are damaged (%s); they are not used", path.parent, what)
    return None


def reuse(
    store: Path | str,
    uri: str,
    experiment: str,
    *,
    key: str,
    folder: Path,
    sweep: str | None = None,
    overrides: Sequence[str] = (),
) -> Path | None:
    """The folder with the results of a finished job of this `key`, or None: then it has to run.

    Its run takes the tag of the present sweep, so that this sweep's charts and summary are whole; `folder`, where the
    job would have written, notes where the results are. Results that are not on disk, or damaged there, are fetched
    from MLflow into `folder`; results that MLflow lost are uploaded again.
    """
    client = open_client(uri)
    experiment_id = open_experiment(client, experiment, store)
    if not sweep:  # a sweep does it once, before its jobs
        close_dead(client, experiment_id, Path(store))
    held, run_id = finished_on_disk(store, key), finished_jobs(client, experiment_id).get(key)
    if held is None and (run_id is None or not _fetch(client, run_id, key, folder)):
        return None
    held = held or folder
    if run_id is None:
        run_id = upload(held, uri=uri, experiment=experiment, store=store)[0].run_id
    if sweep:
        with failures(f"cannot reuse the finished run of {redact(uri)}"):
            client.set_tag(run_id, SWEEP, sweep)
    name = read_json(held / RUN).get("name")  # not the run's: an earlier sweep's end told it from its namesakes there
    state: dict[str, Any] = {
        "status": "FINISHED",
        "key": key,
        "name": name,
        "run_id": run_id,
        "overrides": list(overrides),
    }
    write_state(folder, **state, measured=True, logged=True, reused=True, results=str(held))
    return held


def _unfit(folder: Path, key: str) -> str | None:
    """Why the results there can't be taken for those of job `key`; None if they can."""
    if what := damaged(folder):
        return what
    if read_json(folder / RUN).get("key") != key:
        return f"{RUN} names another job"
    try:
        Results.load(folder)
    except TrackingError as error:
        return str(error)
    return None


def _fetch(client: MlflowClient, run_id: str, key: str, folder: Path) -> bool:
    """Download the run's files into `folder`; False, with a word on why, if they are gone or damaged there too."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        try:
            with failures(f"cannot fetch the results of run {run_id}"):
                client.download_artifacts(run_id, "", place)
            what = _unfit(Path(place), key)
        except TrackingError as error:
            what = str(error)
        if what:
            _log.warning("warning: run %s is computed again, since its results can't be used: %s", run_id, what)
            return False
        shutil.copytree(place, folder, dirs_exist_ok=True)
    return True
