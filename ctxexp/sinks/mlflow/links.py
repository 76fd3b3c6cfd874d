"""Addresses in MLflow's web interface."""

from __future__ import annotations

from urllib.parse import urlencode

from ctxexp.sinks.disk.credentials import redact
from ctxexp.sinks.mlflow.tags import KIND, SWEEP


def base(uri: str) -> str:
    """The UI's address: the server itself, or where `ctxexp ui` serves a local store."""
    return redact(uri).rstrip("/") if uri.startswith("http") else "http://127.0.0.1:5000"


def run_link(uri: str, experiment_id: str, run_id: str, tab: str = "") -> str:
    """A run's page, or the page of one of its tabs (`model-metrics`: the curves, `artifacts`: the files)."""
    page = f"{run_id}/{tab}" if tab else run_id
    return f"{base(uri)}/#/experiments/{experiment_id}/runs/{page}?workflowType=machine_learning"


def sweep_link(uri: str, experiment_id: str, sweep: str) -> str:
    """The page where MLflow overlays the curves of a sweep's jobs; `uri` is the store's or the UI's address.

    MLflow's front page and its Compare button show no curves: this is the experiment's run list with charts.
    """
    query = {
        "searchFilter": f"tags.`{SWEEP}` = '{sweep}' AND tags.`{KIND}` = 'job'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": "true",
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "workflowType": "machine_learning",
        "compareRunsMode": "CHART",
    }
    return f"{base(uri)}/#/experiments/{experiment_id}/runs?{urlencode(query)}"
