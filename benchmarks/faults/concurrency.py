"""Runs that start at once on a store that isn't there yet, all on one data set: each is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from . import Lost
from .kills import COMMAND, run, texts


def cases(seed: int, count: int, folder: Path, processes: int = 16) -> Iterator[tuple[str, Callable[[], object]]]:
    """`count` fresh stores."""
    for number in range(count):
        yield f"{processes} processes", lambda number=number: try_case(folder / str(number), processes, seed + number)


def try_case(folder: Path, processes: int, seed: int) -> None:
    """Starts them, and looks for a whole run of each."""
    from mlflow import MlflowClient

    texts(folder)
    words = [*(word for word in COMMAND if word != "-m" and not word.startswith("metric=")), "metric=[self_similarity]"]
    children = [run(folder, f"seed={seed + number}", command=words) for number in range(processes)]
    for child in children:
        child.join()
    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    runs = client.search_runs([held.experiment_id for held in client.search_experiments()])
    statuses = Counter(run.info.status for run in runs)
    if statuses != {"FINISHED": processes}:
        said = (folder / "said").read_text()[-500:]
        raise Lost(f"expected {processes} FINISHED, got {dict(statuses)}; {said}")
    for one in runs:
        if not one.data.metrics or len(one.inputs.dataset_inputs) != 1 or "ctxexp.logged" not in one.data.tags:
            raise Lost(f"the run of job {one.info.run_name} isn't whole")
