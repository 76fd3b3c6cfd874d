"""Runs and jobs whose process is gone are closed: a killed process can't say so itself."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.files.writing import PART
from ctxexp.sinks.mlflow.failures import failures, redact
from ctxexp.sinks.mlflow.process import HOST, PID, STARTED, is_gone, started
from ctxexp.sinks.mlflow.state import STATE, SUMMARY, read_state, write_state

if TYPE_CHECKING:
    from mlflow import MlflowClient

CLOSED = "ctxexp.closed"


def close_dead(client: MlflowClient, experiment_id: str, store: Path) -> None:
    """Close what this host's killed processes left: their runs in MLflow, and on disk what status.json says of jobs."""
    close_dead_runs(client, experiment_id)
    close_dead_jobs(store)


def close_dead_runs(client: MlflowClient, experiment_id: str) -> list[str]:
    """Set to KILLED this host's RUNNING runs whose process is gone; their ids. The tag ctxexp.closed says why."""
    closed = []
    with failures(f"cannot close dead runs in {redact(client.tracking_uri)}"):
        runs = client.search_runs(
            [experiment_id], f"attributes.status = 'RUNNING' AND tags.`{HOST}` = '{platform.node()}'", max_results=1000
        )
        for run in runs:
            tags = run.data.tags
            why = is_gone(tags.get(HOST), tags.get(PID), tags.get(STARTED))
            # Asked again: a process may have finished its run and ended since the search.
            if why and client.get_run(run.info.run_id).info.status == "RUNNING":
                _close(client, run.info.run_id, why)
                closed.append(run.info.run_id)
    return closed


def _close(client: MlflowClient, run_id: str, why: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.set_tag(run_id, CLOSED, why)
    except MlflowException as error:  # MLflow looks before it inserts: who starts at the same moment said it already
        if not re.search(r"(?i)unique|duplicate", str(error)):
            raise
    client.set_terminated(run_id, "KILLED")


def close_dead_jobs(store: Path) -> list[Path]:
    """Say KILLED in the status.json of jobs under `<store>/results` whose process is gone; their folders.

    What such a process was writing, there or in a sweep's summary, is removed.
    """
    closed: list[Path] = []
    summaries: set[Path] = set()
    with failures(f"cannot close dead jobs in {store}"):
        for path in sorted((store / "results").glob(f"*/*/{STATE}")):
            state = read_state(path.parent)
            tags = state.get("process", {})
            if tags.get(HOST) == platform.node():
                summaries.add(path.parents[1] / SUMMARY)
            why = state.get("status") == "RUNNING" and is_gone(tags.get(HOST), tags.get(PID), tags.get(STARTED))
            if why:
                write_state(path.parent, status="KILLED", error=why)
                closed.append(path.parent)
        for place in (*closed, *summaries):
            for part in place.rglob(f"*{PART}"):
                pid = part.stem.rpartition(".")[2]
                if pid.isdigit() and started(int(pid)) == "":
                    part.unlink()
    return closed
