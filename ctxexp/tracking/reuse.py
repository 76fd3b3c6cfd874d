"""What has finished need not run again: finished jobs, on disk and in MLflow, and how a sweep takes them over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.paths import user_path
from ctxexp.results import FILE
from ctxexp.tracking.database import client as open_client
from ctxexp.tracking.database import experiment as open_experiment
from ctxexp.tracking.failures import failures, redact
from ctxexp.tracking.jobs import read_json, write_state
from ctxexp.tracking.sink import KEY, KIND, LOGGED, STATE, SWEEP
from ctxexp.tracking.upload import upload

if TYPE_CHECKING:
    from mlflow import MlflowClient


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


def finished_on_disk(folder: Path | str) -> dict[str, Path]:
    """Job key -> folder of every finished job under `<folder>/results`; the newest folder of a key."""
    found = {}
    for path in sorted((user_path(folder).resolve() / "results").glob(f"*/*/{STATE}")):
        state = read_json(path)
        if state.get("status") == "FINISHED" and state.get("key") and (path.parent / FILE).exists():
            found[str(state["key"])] = path.parent
    return found


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
    job would have written, notes where the results are. Results that only MLflow still has are fetched into `folder`;
    results that MLflow lost are uploaded again.
    """
    client = open_client(uri)
    experiment_id = open_experiment(client, experiment, store)
    held, run_id = finished_on_disk(store).get(key), finished_jobs(client, experiment_id).get(key)
    if held is None and run_id is None:
        return None
    with failures(f"cannot reuse the finished run of {redact(uri)}"):
        if run_id is None:
            run_id = upload(held, uri=uri, experiment=experiment, store=store)[0].run_id
        elif held is None:
            folder.mkdir(parents=True, exist_ok=True)
            client.download_artifacts(run_id, FILE, str(folder))
            held = folder
        if sweep:
            client.set_tag(run_id, SWEEP, sweep)
        name = client.get_run(run_id).info.run_name
    state = {"status": "FINISHED", "key": key, "name": name, "run_id": run_id, "overrides": list(overrides)}
    write_state(folder, **state, measured=True, logged=True, reused=True, results=str(held))
    return held
