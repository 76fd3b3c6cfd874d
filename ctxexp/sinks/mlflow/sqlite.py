"""The SQLite store: made once and whole, checked before MLflow touches it, moved where that is asked; and errors of
MLflow, HTTP and databases as one line that says what to do.

(MLflow makes its tables in the place itself: two processes at once, or one that is killed, leave half a store.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from ctxexp.errors import TrackingError
from ctxexp.files.credentials import mask
from ctxexp.files.process import defer_signals
from ctxexp.files.writing import MAKE_ROOM, user_path
from ctxexp.sinks.mlflow.values import KIND

LOCK_TIMEOUT = 180.0  # seconds; making a store takes 4 to 10
BUSY_TIMEOUT = 20.0  # seconds; as long as MLflow waits for a locked database


def sqlite_uri(path: Path) -> str:
    """The absolute SQLAlchemy URI of a SQLite file."""
    return f"sqlite:///{path.as_posix()}"


def sqlite_path(uri: str) -> Path:
    """The absolute file of a SQLite URI."""
    path = re.sub(r"^sqlite[^:]*:/{2,3}", "", uri)
    if not path or path.startswith(":memory:") or "?" in path:
        raise TrackingError(
            f"tracking uri {uri!r} does not name a SQLite file that outlives the process; expected "
            "sqlite:////absolute/path.db"
        )
    return user_path(path).resolve()


def sqlite_file(uri: str) -> Path | None:
    """The file of a store that is a SQLite file; None of any other."""
    return sqlite_path(uri) if uri.startswith("sqlite") else None


def artifact_root(folder: Path) -> str:
    """The folder in which runs of a local store keep their artifacts: `<folder>/artifacts` as a file URI."""
    return (user_path(folder).resolve() / "artifacts").as_uri()


def is_intact(path: Path) -> bool:
    """Whether a database is there; an empty file, which a killed program may leave, is none."""
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError as error:
        raise TrackingError(
            f"cannot look for the tracking store {path}: {error.strerror}; choose another place with "
            "tracking.folder=..."
        ) from error


def make(path: Path, folder: Path) -> None:
    """Build a store beside `path` and rename it into place, one process at a time."""
    from filelock import FileLock, Timeout

    lock = path.with_name(f".{path.name}.lock")
    part = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=LOCK_TIMEOUT):
            if is_intact(path):
                return
            for stale in path.parent.glob(f".{path.name}.*.tmp*"):  # an interrupted start; the lock says nobody works
                stale.unlink()
            try:
                # Python drops an interrupt that meets a weak reference's callback, of which SQLAlchemy has many
                with (
                    defer_signals(),
                    tracking_errors(f"cannot make the tracking store {path}"),
                    _quiet_migrations(),
                ):
                    _migrate(part, artifact_root(folder))
                part.replace(path)
            finally:
                for rest in path.parent.glob(f"{part.name}*"):
                    rest.unlink()
    except Timeout:
        raise TrackingError(
            f"another process has been making the tracking store for {LOCK_TIMEOUT:.0f} s; if none is running, delete "
            f"{lock} and start again"
        ) from None
    except OSError as error:
        raise TrackingError(
            f"cannot make the tracking store {path}: {error.strerror or error}; choose a writable place with "
            "tracking.folder=..."
        ) from error


def _migrate(path: Path, root: str) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    make: Any = SqlAlchemyStore  # MLflow leaves it untyped
    make(sqlite_uri(path), root).engine.dispose()
    with contextlib.suppress(AttributeError):
        make._engine_map.pop(sqlite_uri(path), None)  # MLflow keeps engines since 3.6
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")  # stays in the file: readers and writers don't block each other


@contextlib.contextmanager
def _quiet_migrations() -> Iterator[None]:
    """Without the sixty lines that say which migration of a new, empty database runs."""
    levels = {name: logging.getLogger(name).level for name in ("alembic", "mlflow.store.db.utils")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def check_schema(uri: str) -> None:
    """Refuse a file of another MLflow version, or one that can't be read, before MLflow touches it."""
    from mlflow.store.db import utils

    path, migrations = sqlite_path(uri), cast(Any, utils)  # MLflow leaves it untyped
    with tracking_errors(f"cannot read the tracking store {path}"):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT)) as connection:
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        version, expected = rows[0][0] if rows else None, migrations._get_latest_schema_revision()
    if version != expected:
        raise TrackingError(
            f"{path} was made by another MLflow (schema {version}, this one has {expected}); if that was a newer one, "
            "install it (pip install -U mlflow); if an older one, copy the file, then run: "
            f"{shlex.quote(sys.executable)} -m mlflow db upgrade {shlex.quote(uri)}"
        )


def moved_runs(path: Path, folder: Path) -> list[tuple[str, str, int]]:
    """Runs of ctxexp's own whose files lie under the tracking folder, while the store says that they lie elsewhere,
    since MLflow stores absolute places: id, place and experiment of each."""
    root = artifact_root(folder)
    query = "SELECT run_uuid, artifact_uri, experiment_id FROM runs JOIN tags USING (run_uuid) WHERE key = ?"
    with tracking_errors(f"cannot look where {path} keeps files"), _connection(path) as connection:
        rows = connection.execute(query, (KIND,)).fetchall()
    elsewhere = [row for row in rows if row[1] != f"{root}/{row[0]}/artifacts"]
    return [row for row in elsewhere if (user_path(folder) / "artifacts" / row[0] / "artifacts").is_dir()]


def point_to(path: Path, folder: Path) -> int:
    """Point the moved runs to their files under the tracking folder, and their experiments, where their files lay
    beside theirs; returns the number of runs. Nobody else's run is touched."""
    root, rows = artifact_root(folder), moved_runs(path, folder)
    with tracking_errors(f"cannot point {path} to {root}"), _connection(path) as connection:
        for run, place, experiment in rows:
            old = place.removesuffix(f"/{run}/artifacts")
            change = "UPDATE {0} SET {1} = ? || substr({1}, ?) WHERE {2} = ? AND substr({1}, 1, ?) = ?"
            for of in (("runs", "artifact_uri", "run_uuid"), ("logged_models", "artifact_location", "source_run_id")):
                connection.execute(change.format(*of), (f"{root}/", len(old) + 2, run, len(old) + 1, f"{old}/"))
            connection.execute(
                "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ? AND artifact_location = ?",
                (root, experiment, old),
            )
    return len(rows)


@contextlib.contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose changes are kept where the block succeeds."""
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT)) as connection, connection:
        yield connection


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
