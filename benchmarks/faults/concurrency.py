"""Processes that start at once on a store that isn't there yet, all on one data set: each run is whole."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ctxexp.files.process import job_folder
from ctxexp.jobs import Sinks, job, new_run
from ctxexp.sinks import database
from ctxexp.sinks.mlflow import MlflowSink
from tests.made import results_with, told

from . import Lost

PROCESSES = multiprocessing.get_context("forkserver")  # real processes that import mlflow once between them
PROCESSES.set_forkserver_preload(["mlflow.store.tracking.sqlalchemy_store", "alembic.command", "ctxexp.sinks"])


def cases(seed: int, count: int, folder: Path, processes: int = 16) -> Iterator[tuple[str, Callable[[], object]]]:
    """`count` fresh stores."""
    for place in range(count):
        yield f"{processes} processes", lambda place=place: tried(folder / str(place), processes, seed + place)


def tried(folder: Path, processes: int, seed: int) -> None:
    """Starts them, and looks for a whole run of each."""
    folder.mkdir()
    children = [PROCESSES.Process(target=work, args=(folder, number, seed)) for number in range(processes)]
    for child in children:
        child.start()
    while len(list(folder.glob("ready-*"))) < processes:
        time.sleep(0.02)
    (folder / "go").touch()
    for child in children:
        child.join()
    client = database.client(database.prepare(folder))
    runs = client.search_runs([database.experiment(client, "study", folder)])
    statuses = Counter(run.info.status for run in runs)
    if statuses != {"FINISHED": processes}:
        raise Lost(f"expected {processes} FINISHED, got {dict(statuses)}; {(folder / 'errors').read_text()[-500:]}")
    for run in runs:
        history = client.get_metric_history(run.info.run_id, "self_similarity/raw")
        if len(history) != 5 or len(run.inputs.dataset_inputs) != 1 or "ctxexp.logged" not in run.data.tags:
            raise Lost(f"the run of job {run.info.run_name} isn't whole")


def work(folder: Path, number: int, seed: int) -> None:
    """One process: a job of 5 layers."""
    (folder / f"ready-{number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    try:
        sink = MlflowSink(experiment="study")
        sink.prepare_jobs(folder)
        place = job_folder(folder, "single", number)
        info = told(title="bert", n_layers=5, corpus="text", fingerprint=str(seed))
        run = new_run(place, folder, name=str(number), key=str(number), params={"seed": seed}, config="")
        with job(run, Sinks({"mlflow": sink})) as running:
            running.log(results_with({"self_similarity/raw": np.arange(5.0)}, info=info))
    except Exception as error:
        with (folder / "errors").open("a") as file:
            file.write(f"{number}: {error}\n")
