"""The tracking store: which one, made how, and whether it answers; errors of MLflow, HTTP and databases as one line.
SQLite's is made once and whole.

(MLflow makes its tables in the place itself: two processes at once, or one that is killed, leave half a store.)
"""

from __future__ import annotations

import logging
import os
import random
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ctxexp.errors import TrackingError
from ctxexp.files import disk_error_message, is_disk_full, user_path
from ctxexp.files.credentials import VARIABLE, mask, redact, secrets_in
from ctxexp.files.process import defer_signals

if TYPE_CHECKING:
    from mlflow import MlflowClient

DATABASE = "mlflow.db"
EXPERIMENT_KIND = {
    "mlflow.experimentKind": "custom_model_development"
}  # else its page is about traces, in versions that ask it
# Tags by which a run is found: `kind` is job or summary; `key` names what was computed, for resume; `bundle` names the
# folder on disk, so that sending it twice makes one run; `logged` is set last: whoever sees it sees a whole run.
SWEEP, KEY, KIND, BUNDLE, LOGGED, ERROR = (f"ctxexp.{n}" for n in ("sweep", "job", "kind", "bundle", "logged", "error"))
LOCK_TIMEOUT = 180.0  # seconds; making a store takes 4 to 10
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",  # a bar a file
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",  # seconds; MLflow's own 120 and 7 retries hang a run for minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}


def configure_mlflow() -> None:
    """Have mlflow send no telemetry and print no URLs, and notice in seconds, not minutes, a server that is down.
    Variables that the user set win."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    log = logging.getLogger("mlflow.store.db.utils")
    log.setLevel(logging.CRITICAL)  # what it logs, with its traceback, it raises too


def prepare_store(folder: Path | str, uri: str | None = None) -> str:
    """The absolute URI of a tracking store that is there and answers; makes the default one if need be.

    `uri` None means the variable MLFLOW_TRACKING_URI if set, else the SQLite file `<folder>/mlflow.db`. A SQLite file
    is made once, whoever asks first: under a lock, in a temporary file, renamed into place, so that neither an
    interruption nor a simultaneous start leaves a broken one. Raises TrackingError, which says what to do, for a
    folder store, and for a store that doesn't answer.
    """
    configure_mlflow()
    folder = user_path(folder).resolve()
    uri = checked_uri(folder, uri)
    advice = f"; start it, or set sink.mlflow.uri to another (null with {VARIABLE} unset: a SQLite file, no server)"
    if path := sqlite_file(uri):
        advice = ""
        if not has_database(path):
            make_store(path, folder)
    with tracking_errors(f"the tracking store {redact(uri)} does not answer", advice):
        client(uri).search_experiments(max_results=1)
    return uri


def checked_uri(folder: Path, uri: str | None) -> str:
    """The URI of the store that is meant, without asking it. Raises TrackingError for one that can't be used."""
    uri = store_uri(folder, uri)
    scheme = uri.partition(":")[0] if ":" in uri else ""  # urlsplit stumbles over odd passwords
    if len(scheme) < 2 or scheme == "file":  # one letter: a Windows drive
        raise TrackingError(
            f"tracking uri {redact(uri)!r} is a folder, a kind of store that MLflow no longer writes; leave "
            f"sink.mlflow.uri and {VARIABLE} unset for SQLite at {folder / DATABASE}, or give "
            "sqlite:////absolute/path.db or a server's http:// address (old folders: mlflow migrate-filestore)"
        )
    if any(re.search(r"[/@?#\[\]]", secret) for secret in secrets_in(uri)):  # libraries would quote pieces of it
        raise TrackingError(
            f"tracking uri {redact(uri)!r}: in a user or a password write / @ ? # [ ] as %2F %40 %3F %23 %5B %5D"
        )
    path = sqlite_file(uri)
    return sqlite_uri(path) if path else uri


def store_uri(folder: Path, uri: str | None) -> str:
    """The URI, else that of MLFLOW_TRACKING_URI, else of the folder's SQLite file; one that was noted without its
    password gets that of the variable back."""
    own = os.environ.get(VARIABLE, "")
    return own if own and (not uri or redact(own) == uri) else uri or sqlite_uri(folder / DATABASE)


def client(uri: str) -> MlflowClient:
    """An MLflow client of this store and no other: MLflow's global state and active run play no part."""
    configure_mlflow()
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def experiment_name(client: MlflowClient, name: str | None) -> str:
    """The name of the experiment: `name`, else that of MLflow's own variables, else ctxexp."""
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if not name and (number := os.environ.get("MLFLOW_EXPERIMENT_ID")):
        with tracking_errors(f"cannot open the experiment of MLFLOW_EXPERIMENT_ID={number}"):
            name = client.get_experiment(number).name
    return name or "ctxexp"


def open_experiment(client: MlflowClient, name: str, folder: Path | str) -> str:
    """The id of the experiment `name`, made if it isn't there; two processes that ask at once get the same.

    A store on this machine keeps artifacts under `<folder>/artifacts`; a server decides for itself.
    """
    from mlflow.exceptions import MlflowException

    uri = client.tracking_uri
    with tracking_errors(f"cannot open experiment {name!r} of {redact(uri)}"):
        if entity := client.get_experiment_by_name(name):
            return str(entity.experiment_id)
        location = artifact_root(Path(folder)) if uri.startswith("sqlite") else None
        try:
            return str(client.create_experiment(name, artifact_location=location, tags=EXPERIMENT_KIND))
        except MlflowException:
            if entity := client.get_experiment_by_name(name):  # another process was faster
                return str(entity.experiment_id)
            raise


def retry_insert(write: Callable[[], object], tries: int = 10) -> None:
    """Do what makes rows that another process may make at the same time: MLflow looks for a row, then inserts it, so
    that of two that do so at once one needs a second try."""
    from mlflow.exceptions import MlflowException

    for left in reversed(range(tries)):
        try:
            write()
            return
        except MlflowException as error:
            if not left or not re.search("(?i)unique|duplicate", str(error)):
                raise
            time.sleep(random.uniform(0, 0.1))


def sqlite_uri(path: Path) -> str:
    """The absolute SQLAlchemy URI of a SQLite file."""
    return f"sqlite:///{path.as_posix()}"


def sqlite_file(uri: str) -> Path | None:
    """The absolute file of a store that is a SQLite file; None of any other."""
    if not uri.startswith("sqlite"):
        return None
    return user_path(re.sub(r"^sqlite[^:]*:/{2,3}", "", uri)).resolve()


def artifact_root(folder: Path) -> str:
    """The folder in which runs of a local store keep their artifacts: `<folder>/artifacts` as a file URI."""
    return (user_path(folder).resolve() / "artifacts").as_uri()


def has_database(path: Path) -> bool:
    """Whether the file is there; False for the empty one that a killed program may leave."""
    with tracking_errors(f"cannot look for the tracking store {path}", "; choose another place with tracking.folder="):
        if not path.is_file():
            return False
        with path.open("rb") as file:  # MLflow tries for a minute and a half to open what may not be read
            return bool(file.read(1))


def make_store(path: Path, folder: Path) -> None:
    """Build a store beside `path` and rename it into place, one process at a time."""
    from filelock import FileLock
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store: Any = SqlAlchemyStore  # MLflow leaves it untyped
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    with tracking_errors(f"cannot make the tracking store {path}", "; choose a writable place with tracking.folder="):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_TIMEOUT):
            if has_database(path):
                return
            try:
                with defer_signals():  # Python drops an interrupt that meets one of SQLAlchemy's weak references
                    store(sqlite_uri(part), artifact_root(folder)).engine.dispose()
                    with closing(sqlite3.connect(part)) as connection:
                        connection.execute("PRAGMA journal_mode=wal")  # readers and writers don't block each other
                part.replace(path)
            finally:
                for rest in path.parent.glob(f".{path.name}.*.tmp*"):  # of killed starts too: the lock is ours
                    rest.unlink()


@contextmanager
def tracking_errors(what: str, advice: str = "") -> Iterator[None]:
    """Turn errors of MLflow, its HTTP client, its database layer, a missing driver or the disk into a TrackingError.

    Its message is `what` ("cannot ..."), the first of the errors that caused each other, and `advice`.
    """
    from mlflow.exceptions import MlflowException
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    errors = (MlflowException, RequestException, SQLAlchemyError, sqlite3.Error, ImportError, OSError)
    try:
        yield
    except errors as error:
        first = below = cast(BaseException, error)
        while cause := below.__cause__ or below.__context__:
            below = cause
            first = below if isinstance(below, errors) else first
        if isinstance(first, OSError) and is_disk_full(first):
            reason = disk_error_message(first)
        else:
            reason = f"{type(first).__name__}: {mask(str(first)).strip().partition(chr(10))[0][:400]}"
        raise TrackingError(f"{what}: {reason}{advice}") from error
