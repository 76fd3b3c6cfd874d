"""Addresses in MLflow's web interface."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from ctxexp.files.credentials import redact
from ctxexp.files.paths import no_device
from ctxexp.sinks.mlflow.sqlite import sqlite_path
from ctxexp.sinks.mlflow.tags import KIND, SWEEP, VIEW

CHARTS = {"compareRunsMode": "CHART", "workflowType": "machine_learning"}  # else the page is about traces


def base(uri: str) -> str:
    """The UI's address: the server itself, or where `ctxexp ui` serves a local store, or would."""
    return redact(uri).rstrip("/") if uri.startswith("http") else ui_address(uri) or "http://127.0.0.1:5000"


def address_file(uri: str) -> Path:
    """The file in which `ctxexp ui` notes the address at which it serves a SQLite store."""
    return sqlite_path(uri).with_suffix(".ui")


def ui_address(uri: str) -> str | None:
    """The address at which a UI serves this local store now; None if none answers."""
    if not uri.startswith("sqlite"):
        return None
    try:
        address = no_device(address_file(uri)).read_text(encoding="utf-8")
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=1).close()
    except (OSError, ValueError, OverflowError):
        return None
    return address


def ui_hint(uri: str) -> str:
    """What serves a store that nothing serves yet, so that its links lead nowhere; empty where something does."""
    if uri.startswith("http") or ui_address(uri):
        return ""
    return "after `ctxexp ui`, which serves it"


def run_link(uri: str, experiment_id: str, run_id: str, tab: str = "") -> str:
    """A run's page, or the page of one of its tabs (`model-metrics`: the curves, `artifacts`: the files)."""
    page = f"{run_id}/{tab}" if tab else run_id
    return f"{base(uri)}/#/experiments/{experiment_id}/runs/{page}?workflowType=machine_learning"


def jobs_filter(sweep: str) -> str:
    """The search filter that selects the jobs of a sweep among an experiment's runs."""
    return f"tags.`{SWEEP}` = '{sweep}' AND tags.`{KIND}` = 'job'"


def run_filter(run_id: str) -> str:
    """The search filter that selects one run."""
    return f"attributes.run_id = '{run_id}'"


def sweep_link(uri: str, experiment_id: str, sweep: str, tags: Mapping[str, str]) -> str:
    """The page where MLflow overlays the curves of a sweep's jobs, or of a run with a view of its own; `uri` is the
    store's or the UI's address.

    With the view, if the experiment's `tags` hold one; else the run list with all charts. MLflow's front page and its
    Compare button show no curves.
    """
    query = {"viewStateShareKey": sweep}
    if f"{VIEW}{sweep}" not in tags:  # beside a filter the page ignores a view
        order = {"orderByKey": "attributes.start_time", "orderByAsc": "true", "startTime": "ALL"}
        query = {"searchFilter": jobs_filter(sweep), **order, "lifecycleFilter": "Active"}
    return f"{base(uri)}/#/experiments/{experiment_id}/runs?{urlencode(query | CHARTS)}"
