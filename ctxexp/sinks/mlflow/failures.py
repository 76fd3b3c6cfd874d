"""Errors of MLflow and the layers below it, as one line that says what to do."""

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
def failures(what: str, then: str = "", *, file: Path | None = None) -> Iterator[None]:
    """Turn errors of MLflow, its HTTP client, its database layer, a missing driver or the disk into a TrackingError.

    `file` is the SQLite store's, where it is one: then the message says who locks it, and whether its disk is full.
    """
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, sqlite3.Error, ImportError, OSError) as error:
        inner = sqlite_error(error)
        reason = explain(inner, file) if inner else ""
        raise TrackingError(f"{what}: {reason or _reason(error)}{then}") from error


def _reason(error: BaseException) -> str:
    """The innermost cause in one line, since HTTP errors wrap each other in several."""
    text = mask(str(error)).strip()
    for pattern, words in (
        (r"Connection refused|actively refused", "connection refused"),
        (r"Name or service not known|getaddrinfo failed|nodename nor servname|name resolution", "unknown host"),
        (r"[Tt]imed? ?out", "it did not answer in time"),
        (r"disk is full|No space left on device", f"the disk is full; {MAKE_ROOM}"),  # a server's
        (r"disk I/O error", "the disk fails, or is full"),
    ):
        if re.search(pattern, text):
            return words
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:400]}" if lines else type(error).__name__
