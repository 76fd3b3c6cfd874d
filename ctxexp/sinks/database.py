"""The tracking store: which one, made how, and whether it answers; runs whose process is gone are closed; errors of
MLflow, HTTP and databases as one line that says what to do. SQLite's is made once and whole, checked before MLflow
touches it, and moved where that is asked.

(MLflow makes its tables in the place itself: two processes at once, or one that is killed, leave half a store.)
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import platform
import random
import re
import shlex
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ctxexp.errors import TrackingError
from ctxexp.files import MAKE_ROOM, user_path
from ctxexp.files.credentials import VARIABLE, mask, redact, secrets_in
from ctxexp.files.process import HOST, defer_signals, why_gone
from ctxexp.sinks import settle

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

DATABASE = "mlflow.db"
_log = logging.getLogger("ctxexp")
EXPERIMENT_KIND = {
    "mlflow.experimentKind": "custom_model_development"
}  # else its page is about traces, in versions that ask it
# Tags by which a run is found: `kind` is job or summary; `key` names what was computed, for resume; `bundle` names the
# folder on disk, so that sending it twice makes one run; `logged` is set last: whoever sees it sees a whole run.
SWEEP, KEY, KIND, BUNDLE, LOGGED, ERROR = (f"ctxexp.{n}" for n in ("sweep", "job", "kind", "bundle", "logged", "error"))
CLOSED = "ctxexp.closed"
LOCK_TIMEOUT = 180.0  # seconds; making a store takes 4 to 10
BUSY_TIMEOUT = 20.0  # seconds; as long as MLflow waits for a locked database


def prepare(folder: Path | str, uri: str | None = None) -> str:
    """The absolute URI of a tracking store that is there and answers; makes the default one if need be.

    `uri` None means the variable MLFLOW_TRACKING_URI if set, else the SQLite file `<folder>/mlflow.db`. A SQLite file
    is made once, whoever asks first: under a lock, in a temporary file, renamed into place, so that neither an
    interruption nor a simultaneous start leaves a broken one. Raises TrackingError, which says what to do, for a
    folder store, another MLflow version's schema, and a server that doesn't answer.
    """
    settle()
    folder = user_path(folder).resolve()
    uri = address(folder, uri)
    scheme = uri.partition(":")[0] if ":" in uri else ""  # urlsplit stumbles over odd passwords
    if len(scheme) < 2 or scheme == "file":  # one letter: a Windows drive
        raise TrackingError(
            f"tracking uri {redact(uri)!r} is a folder, a kind of store that MLflow no longer writes; leave "
            f"sink.mlflow.uri and {VARIABLE} unset for SQLite at {folder / DATABASE}, or give "
            "sqlite:////absolute/path.db or a server's http:// address (old folders: mlflow migrate-filestore)"
        )
    if not scheme.startswith("sqlite"):
        _ask(uri)
        return uri
    path = sqlite_path(uri)
    uri = sqlite_uri(path)
    is_new = not is_intact(path)
    if is_new:
        make(path, folder)
    _ask(uri)
    if not is_new and (n := len(moved_runs(path, folder))):
        mend = f"ctxexp ui folder={shlex.quote(str(folder))} moved=true"
        _log.warning(f"warning: files of {n} runs are in {folder}, and not where {path} says; `{mend}` points it here")
    return uri


def address(folder: Path, uri: str | None) -> str:
    """The URI, else that of MLFLOW_TRACKING_URI, else of the folder's SQLite file; one that was noted without its
    password gets that of the variable back."""
    own = os.environ.get(VARIABLE, "")
    return own if own and (not uri or redact(own) == uri) else uri or sqlite_uri(folder / DATABASE)


def version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version of MLflow; (0,) of what is none."""
    numbers = text.strip().split(".")[:2]
    return tuple(map(int, numbers)) if all(part.isdecimal() for part in numbers) else (0,)


def version_of(client: MlflowClient) -> tuple[int, ...]:
    """The version of what serves or reads this client's store: of a server its own; (0,) where it doesn't say."""
    import mlflow
    from mlflow.utils import rest_utils

    if not client.tracking_uri.startswith("http"):
        return version(mlflow.__version__)
    ask: Any = rest_utils.http_request  # MLflow leaves it untyped
    reply = ask(client._tracking_client.store.get_host_creds(), "/version", "GET")
    return version(reply.text) if reply.status_code == 200 else (0,)


def client(uri: str) -> MlflowClient:
    """An MLflow client of this store and no other: MLflow's global state and active run play no part."""
    settle()
    import mlflow
    from mlflow import MlflowClient

    store_client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    if uri.startswith("http") and version(mlflow.__version__) < (3, 8):
        service: Any = store_client._tracking_client  # it asked the global state which server takes a run's files
        service._get_artifact_repo = partial(_files_of, store_client)
    return store_client


def _files_of(client: MlflowClient, run_id: str, **of: object) -> Any:
    """The repository of a run's files, by the client's own server."""
    from mlflow.store.artifact import artifact_repository_registry as registry

    find: Any = registry.get_artifact_repository  # MLflow leaves it untyped
    return find(client.get_run(run_id).info.artifact_uri, tracking_uri=client.tracking_uri)


def experiment_name(client: MlflowClient, name: str | None) -> str:
    """The name of the experiment: `name`, else that of MLflow's own variables, else ctxexp."""
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if not name and (number := os.environ.get("MLFLOW_EXPERIMENT_ID")):
        with tracking_errors(f"cannot open the experiment of MLFLOW_EXPERIMENT_ID={number}"):
            name = client.get_experiment(number).name
    return name or "ctxexp"


def experiment(client: MlflowClient, name: str, folder: Path | str) -> str:
    """The id of the experiment `name`, made if it isn't there; two processes that ask at once get the same.

    A store on this machine keeps artifacts under `<folder>/artifacts`; a server decides for itself.
    """
    from mlflow.exceptions import MlflowException

    uri = client.tracking_uri
    with tracking_errors(f"cannot open experiment {name!r} of {redact(uri)}"):
        entity = client.get_experiment_by_name(name)
        if entity is None:
            location = artifact_root(Path(folder)) if uri.startswith("sqlite") else None
            try:
                return str(client.create_experiment(name, artifact_location=location, tags=EXPERIMENT_KIND))
            except MlflowException as error:
                entity = client.get_experiment_by_name(name)  # another process was faster
                if entity is None:
                    raise error
    if entity.lifecycle_stage == "deleted":
        raise TrackingError(
            f"experiment {name!r} of {redact(uri)} is deleted; choose another (sink.mlflow.experiment=...) or bring it "
            f"back: mlflow experiments restore --experiment-id {entity.experiment_id}"
        )
    return str(entity.experiment_id)


def _ask(uri: str) -> None:
    """Open the store once, so that errors in it are reported before any work."""
    if uri.startswith("sqlite"):
        check_schema(uri)
    then = (
        f"; start it, or set sink.mlflow.uri to another (null with {VARIABLE} unset: a SQLite file, no server needed)"
    )
    advice = "" if uri.startswith("sqlite") else then
    with tracking_errors(f"the tracking store {redact(uri)} does not answer", advice):
        if any(re.search(r"[/@?#\[\]]", secret) for secret in secrets_in(uri)):  # libraries would quote pieces of it
            raise OSError("in a user or a password write / @ ? # [ ] as %2F %40 %3F %23 %5B %5D")
        try:
            client(uri).search_experiments(max_results=1)
        except ValueError as error:  # of a URI that can't be read
            raise OSError(str(error)) from error


def without_known_nans(client: MlflowClient, run_id: str, metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics less the NaNs that the run has already: MLflow 3.5 takes one that is logged again for another, which
    its database refuses."""
    keys = {metric.key for metric in metrics if math.isnan(metric.value)}
    points = [point for key in keys for point in client.get_metric_history(run_id, key) if math.isnan(point.value)]
    existing_points = {(point.key, point.step, point.timestamp) for point in points}
    return [metric for metric in metrics if (metric.key, metric.step, metric.timestamp) not in existing_points]


def insert(write: Callable[[], object], tries: int = 10) -> None:
    """Do what makes rows that another process may make at the same time: MLflow looks for a row, then inserts it, so
    that of two that do so at once one needs a second try."""
    from mlflow.exceptions import MlflowException

    for left in reversed(range(tries)):
        try:
            write()
            return
        except MlflowException as error:
            if not left or not is_duplicate(error):
                raise
            time.sleep(random.uniform(0, 0.1))


def is_duplicate(error: Exception) -> bool:
    """Whether a database refused a row because it is there."""
    return bool(re.search("(?i)unique|duplicate", str(error)))


def mark_killed_runs(client: MlflowClient, experiment_id: str) -> list[str]:
    """Set to KILLED this host's RUNNING runs whose process is gone; their ids. The tag ctxexp.closed says why."""
    closed = []
    with tracking_errors(f"cannot close dead runs in {redact(client.tracking_uri)}"):
        runs = client.search_runs(
            [experiment_id], f"attributes.status = 'RUNNING' AND tags.`{HOST}` = '{platform.node()}'", max_results=1000
        )
        for run in runs:
            why = why_gone(run.data.tags)
            # Asked again: a process may have finished its run and ended since the search.
            if why and client.get_run(run.info.run_id).info.status == "RUNNING":
                _close(client, run.info.run_id, why)
                closed.append(run.info.run_id)
    return closed


def _close(client: MlflowClient, run_id: str, why: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.set_tag(run_id, CLOSED, why)
    except MlflowException as error:  # MLflow looks before it inserts: who starts at the same moment said it already
        if not re.search(r"(?i)unique|duplicate", str(error)):
            raise
    client.set_terminated(run_id, "KILLED")


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
