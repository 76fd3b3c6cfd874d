"""Errors of MLflow, HTTP and databases as one line that says what to do."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator

from ctxexp.errors import TrackingError
from ctxexp.files.credentials import mask
from ctxexp.files.writing import MAKE_ROOM


@contextlib.contextmanager
def tracking_errors(what: str, advice: str = "") -> Iterator[None]:
    """Turn errors of MLflow, its HTTP client, its database layer, a missing driver or the disk into a TrackingError.

    Its message is `what` ("cannot ..."), a short reason, and `advice`.
    """
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, sqlite3.Error, ImportError, OSError) as error:
        raise TrackingError(f"{what}: {short_reason(error)}{advice}") from error


def short_reason(error: BaseException) -> str:
    """A short reason: a known phrase that the message contains (HTTP errors wrap each other), else its first line."""
    text = mask(str(error)).strip()
    for pattern, phrase in (
        (r"Connection refused|actively refused", "connection refused"),
        (r"Name or service not known|getaddrinfo failed|nodename nor servname|name resolution", "unknown host"),
        (r"[Tt]imed? ?out", "it did not answer in time"),
        (r"disk is full|No space left on device", f"the disk is full; {MAKE_ROOM}"),  # a server's
        (r"disk I/O error", "the disk fails, or is full; the store itself may be whole: leave it where it is"),
        (
            r"(database|table)( \w+)? is locked",
            "another program holds the database; wait until that ends, or end it, and repeat the command; the store "
            "itself is whole: leave it where it is",
        ),
        (
            r"unable to open database|readonly database",
            "the database can't be opened; this user needs to read and write the file and its folder, or choose "
            "another place with tracking.folder=...",
        ),
        (
            r"file is not a database|disk image is malformed|no such table",
            "it is not a whole MLflow database; move it away with the files beside it that end in -wal and -shm, and "
            "a new one is made at the next start",
        ),
    ):
        if re.search(pattern, text):
            return phrase
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:400]}" if lines else type(error).__name__
