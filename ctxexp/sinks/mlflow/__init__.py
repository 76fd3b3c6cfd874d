"""Where results go: MLflow, made safe. Sqlite by default; results reach the disk before they are sent.

Importing this package imports no mlflow; it only settles how mlflow behaves when it is imported later: no
telemetry, no printed URLs, and a server that is down is noticed in seconds, not minutes. Variables that the user
set win.
"""

from __future__ import annotations

import logging
import os

from ctxexp.sinks.mlflow.closing import Row, SweepReport, close_sweep
from ctxexp.sinks.mlflow.credentials import as_written, redact, whole
from ctxexp.sinks.mlflow.database import experiment, prepare
from ctxexp.sinks.mlflow.doctor import close_dead, close_dead_jobs, close_dead_runs
from ctxexp.sinks.mlflow.environment import environment
from ctxexp.sinks.mlflow.jobs import Job, job, job_folder, new_id
from ctxexp.sinks.mlflow.reuse import finished_jobs, finished_on_disk, reuse
from ctxexp.sinks.mlflow.sink import MemorySink, MlflowSink, Sink
from ctxexp.sinks.mlflow.sweep import Sweep, SweepCallback, current_sweep
from ctxexp.sinks.mlflow.ui import last_sweep_link, serve, sweep_link
from ctxexp.sinks.mlflow.upload import upload

__all__ = [
    "Job",
    "MemorySink",
    "MlflowSink",
    "Row",
    "Sink",
    "Sweep",
    "SweepCallback",
    "SweepReport",
    "as_written",
    "close_dead",
    "close_dead_jobs",
    "close_dead_runs",
    "close_sweep",
    "current_sweep",
    "environment",
    "experiment",
    "finished_jobs",
    "finished_on_disk",
    "job",
    "job_folder",
    "last_sweep_link",
    "new_id",
    "prepare",
    "redact",
    "reuse",
    "serve",
    "sweep_link",
    "upload",
    "whole",
]

for _name, _value in {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",  # a bar a file
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",  # seconds; MLflow's own 120 and 7 retries hang a run for minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}.items():
    os.environ.setdefault(_name, _value)

logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # what it logs, with its traceback, it raises too
