"""Runs that start at once on a store that isn't there yet, all on one data set: each is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from . import Lost
from .kills import COMMAND, run, texts


def cases(seed: int, count: int, folder: Path, processes: int = 16) -> Iterator[tuple[str, Callable[[], object]]]:
    """`count` fresh stores."""
    for place in range(count):
        yield f"{processes} processes", lambda place=place: try_case(folder / str(place), processes, seed + place)


def try_case(place: Path, processes: int, seed: int) -> None:
    """Starts them, and looks for a whole run of each."""
    from mlflow import MlflowClient

    texts(place)
    words = [*(word for word in COMMAND if word != "-m" and not word.startswith("metric=")), "metric=[self_similarity]"]
    children = [run(place, f"seed={seed + number}", command=words) for number in range(processes)]
    for child in children:
        child.join()
    client = MlflowClient(f"sqlite:///{place}/mlruns/mlflow.db")
    runs = client.search_runs([held.experiment_id for held in client.search_experiments()])
    statuses = Counter(run.info.status for run in runs)
    if statuses != {"FINISHED": processes}:
        said = (place / "said").read_text()[-500:]
        raise Lost(f"expected {processes} FINISHED, got {dict(statuses)}; {said}")
    for one in runs:
        if not one.data.metrics or len(one.inputs.dataset_inputs) != 1 or "ctxexp.logged" not in one.data.tags:
            raise Lost(f"the run of job {one.info.run_name} isn't whole")
