"""A training as a run in MLflow, with the training step as the step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp import CtxexpError
from ctxexp.command import registry
from ctxexp.datasets import user_path
from ctxexp_lab.training.recipe import flat_choices

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "minis"
NOTE = "mlflow_run_id"  # the file that says which run a resumed training goes on in
STORE = "mlruns"
MAX_VALUE = 6000  # characters of a param that MLflow takes


class Tracker:
    """The MLflow run of one training. A resumed training goes on in the run that it began in."""

    def __init__(self, client: MlflowClient, run_id: str) -> None:
        self.client, self.run_id = client, run_id
        self._began_ms = client.get_run(run_id).info.start_time

    def log(self, name: str, row: Mapping[str, float]) -> None:
        """Log a row of a curve with its `step`, at the time of the run's start: what a training that was killed had
        logged is the same point when it is computed again."""
        from mlflow.entities import Metric

        step, values = int(row["step"]), {key: float(value) for key, value in row.items() if key != "step"}
        metrics = [Metric(f"{name}/{key}", value, self._began_ms, step) for key, value in values.items()]
        self.client.log_batch(self.run_id, metrics=metrics)


@contextmanager
def tracked(store: str | None, name: str, folder: Path, recipe: Mapping[str, object]) -> Iterator[Tracker | None]:
    """The run of the training in `folder`, FINISHED, FAILED or KILLED at the block's end; None without a store.

    `store` is the folder of a tracking store, as the command's, or a store's address. Raises CtxexpError.
    """
    if store is None:
        yield None
        return
    from mlflow.exceptions import MlflowException

    is_address = ":" in store and not Path(store).exists()
    sink = registry().find("sink", "mlflow").factory(uri=store if is_address else None, experiment=EXPERIMENT)
    sink.connect(user_path(STORE if is_address else store))
    client = sink.client
    try:
        run_id = _run_of(client, sink.experiment_id, name, folder, recipe)
        tracker = Tracker(client, run_id)
    except MlflowException as error:
        raise CtxexpError(f"cannot track the training in {folder}: {error}") from error
    status = "KILLED"
    try:
        yield tracker
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        client.set_terminated(run_id, status)


def _run_of(client: MlflowClient, experiment: str, name: str, folder: Path, recipe: Mapping[str, object]) -> str:
    """The run that the folder names, RUNNING again, or a new one."""
    from mlflow.entities import Param
    from mlflow.exceptions import MlflowException

    note = folder / NOTE
    if note.is_file():
        try:
            client.update_run(note.read_text(), status="RUNNING")
            return note.read_text()
        except MlflowException:  # that was another store's
            note.unlink()
    run_id = str(client.create_run(experiment, run_name=name, tags={"ctxexp.folder": str(folder)}).info.run_id)
    note.write_text(run_id)
    given = {key: value for key, value in flat_choices(recipe).items() if value not in (None, "", [], {}, "none")}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in given.items()
    }
    client.log_batch(run_id, params=[Param(key, text[:MAX_VALUE]) for key, text in texts.items()])
    return run_id
