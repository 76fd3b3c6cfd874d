"""What MLflow and the layers below it raise, as one line that says what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from ctxexp.errors import TrackingError
from ctxexp.files.writing import MAKE_ROOM
from ctxexp.sinks.disk.credentials import mask


@contextlib.contextmanager
def failures(what: str, then: str = "") -> Iterator[None]:
    """Turn what MLflow, its HTTP client, its database layer, a missing driver, the disk raise into a TrackingError."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, ImportError, OSError) as error:
        raise TrackingError(f"{what}: {_reason(error)}{then}") from error


def _reason(error: BaseException) -> str:
    """The innermost cause in one line, since HTTP errors wrap each other in several."""
    text = mask(str(error)).strip()
    for pattern, words in (
        (r"Connection refused|actively refused", "connection refused"),
        (r"Name or service not known|getaddrinfo failed|nodename nor servname|name resolution", "unknown host"),
        (r"[Tt]imed? ?out", "it did not answer in time"),
        (r"disk is full|No space left on device", f"the disk is full; {MAKE_ROOM}"),
        (r"disk I/O error", "the disk fails, or is full"),
    ):
        if re.search(pattern, text):
            return words
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:400]}" if lines else type(error).__name__
