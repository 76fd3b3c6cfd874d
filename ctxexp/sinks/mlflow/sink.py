"""Where results are sent: the protocol, MLflow, and a list in memory for tests and plugin authors."""

from __future__ import annotations

import json
import math
import random
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ctxexp.errors import TrackingError
from ctxexp.results import Results
from ctxexp.sinks.mlflow import database, doctor
from ctxexp.sinks.mlflow.credentials import redact
from ctxexp.sinks.mlflow.environment import command, git, user
from ctxexp.sinks.mlflow.failures import failures
from ctxexp.sinks.mlflow.process import process_tags
from ctxexp.sinks.mlflow.state import STATE
from ctxexp.sinks.mlflow.values import flat, headline, metric_names, overview

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

Status = Literal["FINISHED", "FAILED", "KILLED"]

# Tags of every run. `kind` is job or summary; `key` names what was computed, for resume; `bundle` names the folder on
# disk, so that uploading it twice makes one run; `logged` is set last: whoever sees it sees a whole run.
SWEEP, KEY, KIND, BUNDLE, LOGGED, ERROR = (f"ctxexp.{n}" for n in ("sweep", "job", "kind", "bundle", "logged", "error"))
COLOUR = "mlflow.runColor"

MAX_METRICS, MAX_PARAMS = 1000, 100  # a batch, over HTTP
MAX_TAG, MAX_DIGEST = 8000, 36


class Sink(Protocol):
    """What takes a run's results: `start` once, `log` once, `finish` once, also where `start` failed."""

    def start(
        self, *, name: str, tags: Mapping[str, str], params: Mapping[str, Any], config: str, began: int | None = None
    ) -> str:
        """Open a run and return its id; `config` is its whole configuration as YAML, `began` in ms since 1970."""
        ...

    def log(self, results: Results, folder: Path) -> None:
        """Send the curves, layer = step, and every file of `folder`."""
        ...

    def finish(self, status: Status, error: str | None = None) -> None:
        """Close the run; `error` says why it isn't FINISHED."""
        ...

    def link(self) -> str:
        """Where a person finds the run; empty if nowhere."""
        ...


@dataclass
class MemorySink:
    """A sink that keeps what it is given: look at its fields."""

    name: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    config: str = ""
    curves: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    overview: dict[str, float] = field(default_factory=dict)
    artifacts: list[str] = field(default_factory=list)
    status: str = ""
    error: str | None = None

    def start(
        self, *, name: str, tags: Mapping[str, str], params: Mapping[str, Any], config: str, began: int | None = None
    ) -> str:
        self.name, self.tags, self.params, self.config = name, dict(tags), flat(params), config
        self.status = "RUNNING"
        return "memory"

    def log(self, results: Results, folder: Path) -> None:
        self.curves.update(results.curves)
        self.scalars.update(results.scalars)
        self.overview.update(overview(results))
        self.params.update(flat({"info": results.info}))
        self.artifacts = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())

    def finish(self, status: Status, error: str | None = None) -> None:
        self.status, self.error = status, error

    def link(self) -> str:
        return ""


class MlflowSink:
    """One MLflow run, through the client alone: no active run, no global state, MLFLOW_RUN_ID plays no part.

    `folder` holds the results on disk: errors name it, with the command that sends them again.
    """

    def __init__(self, uri: str, experiment: str, folder: Path, *, store: Path | None = None) -> None:
        self.uri, self.folder, self.store = uri, folder, store or folder
        with failures(f"cannot open the tracking store {redact(uri)}"):
            self.client = database.client(uri)
        try:
            self.experiment_id = database.experiment(self.client, experiment, self.store)
        except TrackingError as error:
            raise TrackingError(
                f"{error}. Nothing was computed; when the store answers again, repeat the command with resume=true, "
                "which skips the jobs that finished"
            ) from error
        self.run_id = ""
        self._began = 0

    def _failures(self, what: str) -> Any:
        words = f"ctxexp upload {shlex.quote(str(self.folder))}"
        then = f". The results are safe in {self.folder}; when the store answers again, send them with: {words}"
        return failures(f"cannot {what} in {redact(self.uri)}", then if (self.folder / "results.json").exists() else "")

    def start(
        self, *, name: str, tags: Mapping[str, str], params: Mapping[str, Any], config: str, began: int | None = None
    ) -> str:
        from mlflow.entities import Param

        self._began = began or int(time.time() * 1000)
        if SWEEP not in tags:  # a sweep does it once, before its jobs
            doctor.close_dead(self.client, self.experiment_id, self.store)
        tags = {**source_tags(), **process_tags(), **tags}
        with self._failures("start a run"):
            run = self.client.create_run(
                self.experiment_id, self._began, {k: str(v)[:MAX_TAG] for k, v in tags.items()}, name
            )
            self.run_id = run.info.run_id
            self._batches(params=[Param(k, v) for k, v in flat(params).items()])
            self.client.log_text(self.run_id, config, "config.yaml")
        return self.run_id

    def reopen(self, run_id: str, began: int) -> None:
        """Go on with a run that an interruption left incomplete."""
        self.run_id, self._began = run_id, began

    def log(self, results: Results, folder: Path) -> None:
        """One batch (of at most 1000): logging the same results again changes nothing, since times are the run's own.

        NaN stays NaN, a gap in the chart. Infinity, which MLflow would store as 1.8e308, becomes NaN as well, and the
        tag ctxexp.infinite names its curves.
        """
        from mlflow.entities import Metric, Param, RunTag

        metrics, infinite, extra = [], [], overview(results)
        names = metric_names([*results.curves, *results.scalars, *extra])
        for key, curve in [*results.curves.items(), *((k, np.array([v])) for k, v in results.scalars.items())]:
            values = np.asarray(curve, dtype=np.float64)
            if np.isinf(values).any():
                infinite.append(key)
            metrics += [
                Metric(names[key], v if math.isfinite(v) else math.nan, self._began, layer)
                for layer, v in enumerate(values.tolist())
            ]
        metrics += [Metric(names[k], v, self._began, 0) for k, v in extra.items()]
        tags = [RunTag("ctxexp.infinite", ", ".join(infinite)[:MAX_TAG])] if infinite else []
        with self._failures("log"):
            self._batches(metrics, [Param(k, v) for k, v in flat({"info": results.info}).items()], tags)
            self._inputs(_dataset(results))
            self._artifacts(folder)
            self.client.set_tag(self.run_id, LOGGED, "true")

    def _inputs(self, data: list[DatasetInput], tries: int = 10) -> None:
        """MLflow looks for the data set, then inserts it: of jobs that do so at once, all but one need a second try."""
        from mlflow.exceptions import MlflowException

        for left in reversed(range(tries)):
            try:
                self.client.log_inputs(self.run_id, datasets=data)
                return
            except MlflowException as error:
                if not left or not re.search(r"(?i)unique|duplicate", str(error)):
                    raise
                time.sleep(random.uniform(0, 0.1))

    def _batches(self, metrics: list[Any] = [], params: list[Any] = [], tags: list[Any] = []) -> None:  # noqa: B006  # read only
        """One batch where the limits of MLflow's HTTP interface allow it."""
        while metrics or params or tags:
            room = MAX_METRICS - len(params[:MAX_PARAMS]) - len(tags)
            self.client.log_batch(
                self.run_id, metrics=metrics[:room], params=params[:MAX_PARAMS], tags=tags, synchronous=True
            )
            metrics, params, tags = metrics[room:], params[MAX_PARAMS:], []

    def _artifacts(self, folder: Path) -> None:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            if path.name == STATE or path.suffix in (".part", ".lock", ".tmp"):
                continue
            inside = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(self.run_id, str(path), None if inside == "." else inside)

    def finish(self, status: Status, error: str | None = None) -> None:
        if not self.run_id:
            return
        with self._failures("close a run"):
            if error:
                self.client.set_tag(self.run_id, ERROR, headline(error))
            stale = {doctor.CLOSED} | ({ERROR} if status == "FINISHED" else set())  # taken for dead, or mended since
            for tag in stale & set(self.client.get_run(self.run_id).data.tags):
                self.client.delete_tag(self.run_id, tag)
            self.client.set_terminated(self.run_id, status)
            if error:
                self.client.log_text(self.run_id, error, "error.txt")

    def link(self) -> str:
        return run_link(self.uri, self.experiment_id, self.run_id)


def base(uri: str) -> str:
    """The UI's address: the server itself, or where `ctxexp ui` serves a local store."""
    return redact(uri).rstrip("/") if uri.startswith("http") else "http://127.0.0.1:5000"


def run_link(uri: str, experiment_id: str, run_id: str, tab: str = "") -> str:
    """A run's page, or the page of one of its tabs (`model-metrics`: the curves, `artifacts`: the files)."""
    page = f"{run_id}/{tab}" if tab else run_id
    return f"{base(uri)}/#/experiments/{experiment_id}/runs/{page}?workflowType=machine_learning"


def source_tags() -> dict[str, str]:
    """MLflow's own columns User, Source and Version, which its client leaves empty."""
    tags = {"mlflow.user": user(), "mlflow.source.name": command(), "mlflow.source.type": "LOCAL"}
    found = git()
    if found:
        tags["mlflow.source.git.commit"] = found["commit"]
        tags["ctxexp.git_dirty"] = str(found["dirty"]).lower()
    return tags


def _dataset(results: Results) -> list[DatasetInput]:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    info = results.info
    if not info.get("corpus") or not info.get("fingerprint"):
        return []
    counts = {k: info[k] for k in ("n_sentences", "n_occurrences", "n_words") if k in info}
    data = Dataset(
        name=str(info["corpus"])[:500],
        digest=str(info["fingerprint"])[:MAX_DIGEST],
        source_type="local",
        source=json.dumps({"uri": str(info.get("source", info["corpus"])), **info.get("choices", {})})[:60000],
        profile=json.dumps(counts),
    )
    return [DatasetInput(data, [InputTag("mlflow.data.context", "evaluation")])]
