"""Runs whose process is gone are closed: a killed process can't say so itself."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

from ctxexp.files.credentials import redact
from ctxexp.files.process import HOST, PID, STARTED, why_gone
from ctxexp.sinks.mlflow.failures import tracking_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient

CLOSED = "ctxexp.closed"


def mark_killed_runs(client: MlflowClient, experiment_id: str) -> list[str]:
    """Set to KILLED this host's RUNNING runs whose process is gone; their ids. The tag ctxexp.closed says why."""
    closed = []
    with tracking_errors(f"cannot close dead runs in {redact(client.tracking_uri)}"):
        runs = client.search_runs(
            [experiment_id], f"attributes.status = 'RUNNING' AND tags.`{HOST}` = '{platform.node()}'", max_results=1000
        )
        for run in runs:
            tags = run.data.tags
            why = why_gone(tags.get(HOST), tags.get(PID), tags.get(STARTED))
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
