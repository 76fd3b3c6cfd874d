"""A sweep: its jobs share a tag, and one summary run beside them carries the comparison.

Runs lie flat, not nested: MLflow folds children away, and the charts of folded runs stay empty until one unfolds them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from ctxexp.command.compose import quote
from ctxexp.errors import CtxexpError
from ctxexp.files.paths import user_path
from ctxexp.sinks.mlflow import credentials, database, process
from ctxexp.sinks.mlflow.doctor import close_dead
from ctxexp.sinks.mlflow.jobs import describe, job_folder, new_id
from ctxexp.sinks.mlflow.state import read_state, try_state
from ctxexp.sinks.mlflow.ui import sweep_link

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import TaskFunction


@dataclass(frozen=True)
class Sweep:
    """A sweep that has started: where it is tracked and since when (seconds since 1970)."""

    id: str
    folder: Path
    uri: str
    experiment: str
    experiment_id: str
    began: float
    overrides: tuple[str, ...] = ()

    @property
    def results(self) -> Path:
        """The folder with a folder a job."""
        return self.folder / "results" / self.id

    @property
    def link(self) -> str:
        """The page with the curves of all jobs overlaid."""
        return sweep_link(self.uri, self.experiment_id, self.id)


_current: Sweep | None = None


def current_sweep() -> Sweep | None:
    """The sweep that this process has started, whether or not it is over; None if it started none."""
    return _current


def here(folder: Path | str, group: str) -> tuple[Path, list[str]]:
    """Inside a Hydra job: its folder under the tracking folder `folder`, and its overrides without tracking's own."""
    from hydra.core.hydra_config import HydraConfig

    return _here(OmegaConf.create({"hydra": HydraConfig.get()}), folder, group)


def _here(config: DictConfig, folder: Path | str, group: str) -> tuple[Path, list[str]]:
    number = OmegaConf.select(config, "hydra.job.num", throw_on_missing=False)
    overrides = [o for o in _overrides(config) if not o.lstrip("+~").startswith("tracking.")]
    return job_folder(folder, group, number, overrides), overrides


def _overrides(config: DictConfig) -> list[str]:
    """The task's overrides as they were typed: an environment variable stays its name."""
    typed: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    return [str(o) for o in typed]


class SweepCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Makes store and experiment once, before any job, and tells every job its sweep, under any launcher.

    Reads config.tracking: folder, uri, experiment, sweep (null). The jobs get the sweep's id and the absolute folder
    as overrides, the one way that needs neither a shared environment nor a shared disk.
    """

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        credentials.hide(config)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        global _current
        credentials.hide(config)
        tracking = config.tracking
        folder = user_path(str(tracking.folder)).resolve()
        try:
            uri = database.prepare(folder, tracking.get("uri"))
            client = database.client(uri)
            experiment_id = database.experiment(client, tracking.experiment, folder)
            close_dead(client, experiment_id, folder)
        except CtxexpError as error:  # Hydra turns other exceptions of a callback into warnings and goes on
            raise SystemExit(f"error: {error}") from error
        sweep = tracking.get("sweep") or new_id()
        extra = [f"tracking.sweep={quote(sweep)}", f"tracking.folder={quote(str(folder))}"]
        if uri.startswith("sqlite") or tracking.get("uri"):
            extra.append(f"tracking.uri={quote(credentials.redact(uri))}")
        with read_write(config), open_dict(config):
            config.hydra.overrides.hydra.extend(extra)
        began, overrides = time.time(), tuple(_overrides(config))
        _current = Sweep(sweep, folder, uri, tracking.experiment, experiment_id, began, overrides)

    def on_job_start(self, config: DictConfig, *, task_function: TaskFunction, **kwargs: Any) -> None:
        tracking = config.tracking
        if tracking.get("sweep"):
            folder, overrides = _here(config, tracking.folder, tracking.sweep)
            tags = process.process_tags()
            try_state(folder, fresh=True, status="RUNNING", overrides=overrides, process=tags)

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        tracking = config.tracking
        if not tracking.get("sweep"):
            return
        folder, _ = _here(config, tracking.folder, tracking.sweep)
        if read_state(folder).get("status") != "RUNNING":
            return  # the job said itself how it ended
        try:
            _ = job_return.return_value
        except Exception as error:
            try_state(folder, status="FAILED", error=describe(error))
        else:
            try_state(folder, status="FAILED", error="it ended before its run began; its output says why")
