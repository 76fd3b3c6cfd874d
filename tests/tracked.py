"""Jobs, sweeps and their sinks without a command: what tests of tracking begin with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from ctxexp import Results, Run, Sink
from ctxexp.errors import TrackingError
from ctxexp.files.job_folder import job_folder
from ctxexp.jobs import job, new_run, save
from ctxexp.jobs.sending import destinations, send_runs
from ctxexp.sinks import Sweep, database
from tests.shipped import MlflowSink


def run_of(folder: Path, store: Path, name: str = "bert", **more: Any) -> Run:
    """A run that begins now, for the job in the folder."""
    return new_run(folder, store, **{"name": name, "key": name, "params": {}, "config": "", **more})


class Running:
    """A job under way."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def save(self, results: Results) -> None:
        """Put the results on disk, from where the job's end sends them."""
        save(results, self.run.folder)


@contextmanager
def tracked(run: Run, *, overrides: Sequence[str] = (), **sinks: Sink) -> Iterator[Running]:
    """The job of a run, sent to these sinks by label once it has ended. Raises TrackingError for the first that
    fails."""
    problems = []
    try:
        with job(run, overrides=overrides, meant=destinations(sinks, run.tracking_folder)):
            yield Running(run)
    finally:
        problems += send_runs({run.folder: None}, sinks, run.tracking_folder, sweep=run.sweep)
    if problems:
        raise TrackingError(problems[0])


def stored_sweep(store: Path, *overrides: str) -> tuple[Sweep, dict[str, Sink]]:
    """A sweep that begins now in a store of MLflow."""
    return Sweep(f"sweep-{time.time_ns()}", store, time.time(), overrides), {"mlflow": MlflowSink(experiment="study")}


def finish_job(sweep: Sweep, name: str, number: int, results: Results) -> Path:
    """The folder of a job of the sweep that gave these results; nothing is sent yet."""
    folder = job_folder(sweep.tracking_folder, sweep.id, number, [f"model={name}"])
    with tracked(run_of(folder, sweep.tracking_folder, name, sweep=sweep.id)) as running:
        running.save(results)
    return folder


def client_of(store: Path) -> MlflowClient:
    """What asks the store."""
    return database.client(database.prepare_store(store))
