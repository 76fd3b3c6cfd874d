"""Runs whose process is gone are closed: a killed process can't say so itself."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from ctxexp.tracking.failures import failures, redact
from ctxexp.tracking.process import HOST, PID, STARTED, is_gone

if TYPE_CHECKING:
    from mlflow import MlflowClient

CLOSED = "ctxexp.closed"


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
            if why:
                client.set_tag(run.info.run_id, CLOSED, why)
                client.set_terminated(run.info.run_id, "KILLED")
                closed.append(run.info.run_id)
    return closed
