"""MLflow, made safe. SQLite by default; results reach the disk before they are sent.

Importing this package imports no mlflow; it only settles how mlflow behaves when it is imported later: no
telemetry, no printed URLs, and a server that is down is noticed in seconds, not minutes. Variables that the user
set win.
"""

from __future__ import annotations

import logging
import os

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
