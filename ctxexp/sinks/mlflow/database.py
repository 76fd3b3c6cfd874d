"""The tracking store: which one, made how, and whether it answers; runs whose process is gone are closed."""

from __future__ import annotations

import logging
import math
import os
import platform
import random
import re
import shlex
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import TrackingError
from ctxexp.files.credentials import VARIABLE, redact, secrets_in
from ctxexp.files.process import HOST, PID, STARTED, why_gone
from ctxexp.files.writing import user_path
from ctxexp.sinks.mlflow import settle, sqlite
from ctxexp.sinks.mlflow.sqlite import tracking_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

DATABASE = "mlflow.db"
_log = logging.getLogger("ctxexp")
KIND = {"mlflow.experimentKind": "custom_model_development"}  # else its page is about traces, in versions that ask it
CLOSED = "ctxexp.closed"


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
    path = sqlite.sqlite_path(uri)
    uri = sqlite.sqlite_uri(path)
    make = not sqlite.is_intact(path)
    if make:
        sqlite.make(path, folder)
    _ask(uri)
    if not make and (n := len(sqlite.moved_runs(path, folder))):
        mend = f"ctxexp ui folder={shlex.quote(str(folder))} moved=true"
        _log.warning(f"warning: files of {n} runs are in {folder}, and not where {path} says; `{mend}` points it here")
    return uri


def address(folder: Path, uri: str | None) -> str:
    """The URI, else that of MLFLOW_TRACKING_URI, else of the folder's SQLite file; one that was noted without its
    password gets that of the variable back."""
    own = os.environ.get(VARIABLE, "")
    return own if own and (not uri or redact(own) == uri) else uri or sqlite.sqlite_uri(folder / DATABASE)


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
            location = sqlite.artifact_root(Path(folder)) if uri.startswith("sqlite") else None
            try:
                return str(client.create_experiment(name, artifact_location=location, tags=KIND))
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
        sqlite.check_schema(uri)
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
            tags = run.data.tags
            why = why_gone(tags.get(HOST), tags.get(PID), tags.get(STARTED))
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
