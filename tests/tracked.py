"""Jobs, sweeps and their sinks without a command: what tests of tracking begin with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from ctxexp import Results, Run, Sink
from ctxexp.files.job_folder import job_folder
from ctxexp.jobs import Sinks, job, new_run
from ctxexp.sinks import Sweep, database
from tests.shipped import MlflowSink


def run_of(folder: Path, store: Path, name: str = "bert", **more: Any) -> Run:
    """A run that begins now, for the job in the folder."""
    return new_run(folder, store, **{"name": name, "key": name, "params": {}, "config": "", **more})


def tracked(run: Run, *, overrides: Sequence[str] = (), **sinks: Sink) -> AbstractContextManager[Any]:
    """The job of a run, told to these sinks by label."""
    return job(run, Sinks(sinks), overrides=overrides)


def stored_sweep(store: Path, *overrides: str) -> tuple[Sweep, Sinks]:
    """A sweep that begins now in a store of MLflow."""
    sinks = Sinks({"mlflow": MlflowSink(experiment="study")})
    sinks.prepare_all(store)
    return Sweep(f"sweep-{time.time_ns()}", store, time.time(), overrides), sinks


def finish_job(sweep: Sweep, name: str, number: int, results: Results) -> Path:
    """The folder of a job of the sweep that gave these results."""
    folder = job_folder(sweep.tracking_folder, sweep.id, number, [f"model={name}"])
    run = run_of(folder, sweep.tracking_folder, name, sweep=sweep.id)
    with tracked(run, mlflow=MlflowSink(experiment="study")) as running:
        running.log(results)
    return folder


def client_of(store: Path) -> MlflowClient:
    """What asks the store."""
    return database.client(database.prepare_store(store))
