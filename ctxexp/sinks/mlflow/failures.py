"""Errors of MLflow, HTTP and databases as one line that says what to do."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files.writing import MAKE_ROOM
from ctxexp.jobs.credentials import mask
from ctxexp.sinks.mlflow.sqlite_errors import explain, sqlite_error


@contextlib.contextmanager
def tracking_errors(what: str, advice: str = "", *, file: Path | None = None) -> Iterator[None]:
    """Turn errors of MLflow, its HTTP client, its database layer, a missing driver or the disk into a TrackingError.

    Its message is `what` ("cannot ..."), a short reason, and `advice`. With `file`, that of a SQLite store, it says who
    locks the file, and whether its disk is full.
    """
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, sqlite3.Error, ImportError, OSError) as error:
        inner = sqlite_error(error)
        reason = explain(inner, file) if inner else ""
        raise TrackingError(f"{what}: {reason or _short_reason(error)}{advice}") from error


def _short_reason(error: BaseException) -> str:
    """A short reason: a known phrase that the message contains (HTTP errors wrap each other), else its first line."""
    text = mask(str(error)).strip()
    for pattern, phrase in (
        (r"Connection refused|actively refused", "connection refused"),
        (r"Name or service not known|getaddrinfo failed|nodename nor servname|name resolution", "unknown host"),
        (r"[Tt]imed? ?out", "it did not answer in time"),
        (r"disk is full|No space left on device", f"the disk is full; {MAKE_ROOM}"),  # a server's
        (r"disk I/O error", "the disk fails, or is full"),
    ):
        if re.search(pattern, text):
            return phrase
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:400]}" if lines else type(error).__name__
