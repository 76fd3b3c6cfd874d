"""Where runs are kept beside the disk: MLflow, made safe. SQLite by default; results reach the disk before they are
sent.

Importing this package imports no mlflow and changes nothing; `settle` is called before a store is opened.
"""

from __future__ import annotations

import logging
import os

from ctxexp.plugins import Register, hookimpl

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",  # a bar a file
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",  # seconds; MLflow's own 120 and 7 retries hang a run for minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}


def settle() -> None:
    """Have mlflow send no telemetry and print no URLs, and notice in seconds, not minutes, a server that is down.
    Variables that the user set win."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    log = logging.getLogger("mlflow.store.db.utils")
    log.setLevel(logging.CRITICAL)  # what it logs, with its traceback, it raises too


@hookimpl
def register_sinks(register: Register) -> None:
    register("mlflow", "ctxexp.sinks.mlflow:MlflowSink")
