"""Hydra's callback of a sweep: builds what its jobs share once, and gives each of them its sweep's name."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from ctxexp.command.build import sinks_of
from ctxexp.command.config import components_of
from ctxexp.command.locations import quote
from ctxexp.command.names import registry
from ctxexp.command.overrides import write_out
from ctxexp.datasets.download import vector_folder
from ctxexp.errors import CtxexpError
from ctxexp.files.paths import user_path
from ctxexp.files.process import process_tags, watch_parent_in_workers
from ctxexp.jobs.job import describe
from ctxexp.jobs.state import job_folder, mark_killed_jobs, new_id, read_state, try_state
from ctxexp.jobs.sweep import current_sweep, open_sweep
from ctxexp.progress import show
from ctxexp.sink import Sweep
from ctxexp.vectors import cache as leases

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import TaskFunction


def current_job(folder: Path | str, group: str) -> tuple[Path, list[str]]:
    """Inside a Hydra job: its folder under the tracking folder `folder`, and its overrides less those of places."""
    from hydra.core.hydra_config import HydraConfig

    return _job_of(OmegaConf.create({"hydra": HydraConfig.get()}), folder, group)


def _job_of(config: DictConfig, folder: Path | str, group: str) -> tuple[Path, list[str]]:
    number = OmegaConf.select(config, "hydra.job.num", throw_on_missing=False)
    overrides = [o for o in _overrides(config) if not o.lstrip("+~").startswith(("tracking.", "sink"))]
    return job_folder(folder, group, number, overrides), overrides


def _cache(config: DictConfig) -> Path | None:
    """The folder of the jobs' vectors; None for an application that has none."""
    return vector_folder(config.cache.folder) if "cache" in config else None


def _overrides(config: DictConfig) -> list[str]:
    """The task's overrides as they were typed: an environment variable stays its name. Locations are written out."""
    overrides: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    return write_out([str(o) for o in overrides])


class SweepCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Makes store and experiment once, before any job, and tells every job its sweep, under any launcher.

    Reads config.tracking (folder, sweep) and config.sink. The jobs get the sweep's id, the absolute folder and what the
    sinks prepared as overrides, the one way that needs neither a shared environment nor a shared disk.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        if "Joblib" in str(OmegaConf.select(config, "hydra.launcher._target_")):
            watch_parent_in_workers()
        tracking = config.tracking
        folder = user_path(str(tracking.folder)).resolve()
        try:
            nodes = OmegaConf.to_container(config.sink, resolve=True)
            sinks = sinks_of(components_of("sink", nodes, registry()))
            mark_killed_jobs(folder)
            prepared = sinks.prepare_all(folder)
        except CtxexpError as error:  # Hydra turns other exceptions of a callback into warnings and goes on
            raise SystemExit(f"error: {error}") from error
        sweep = tracking.get("sweep") or new_id()
        extra = [f"tracking.sweep={quote(sweep)}", f"tracking.folder={quote(str(folder))}"]
        for label, arguments in prepared.items():
            extra += [f"sink.{label}.{key}={quote(str(value))}" for key, value in arguments.items()]
        with read_write(config), open_dict(config):
            config.hydra.overrides.hydra.extend(extra)
        if cache := _cache(config):  # what its jobs will read stays there while this process lives
            leases.lease(cache, leases.SWEEPS, sweep)
        begun = Sweep(sweep, folder, time.time(), tuple(_overrides(config)))
        open_sweep(begun, sinks, verbose=bool(config.get("verbose", False)))

    def on_multirun_end(self, config: DictConfig, **kwargs: object) -> None:
        if (started := current_sweep()) and (cache := _cache(config)):
            leases.release(cache, leases.SWEEPS, started[0].id)
        optimum = user_path(str(config.hydra.sweep.dir)) / "optimization_results.yaml"  # of the sweepers that optimise
        if optimum.is_file():
            show(f"\nthe optimum, in {optimum}:\n{optimum.read_text(encoding='utf-8').rstrip()}")

    def on_job_start(self, config: DictConfig, *, task_function: TaskFunction, **kwargs: object) -> None:
        tracking = config.tracking
        if tracking.get("sweep"):
            folder, overrides = _job_of(config, tracking.folder, tracking.sweep)
            try_state(folder, fresh=True, status="RUNNING", overrides=overrides, process=process_tags())

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: object) -> None:
        tracking = config.tracking
        if not tracking.get("sweep"):
            return
        folder, _ = _job_of(config, tracking.folder, tracking.sweep)
        if read_state(folder).get("status") != "RUNNING":
            return  # the job said itself how it ended
        try:
            _ = job_return.return_value
        except Exception as error:
            try_state(folder, status="FAILED", error=describe(error))
        else:
            try_state(folder, status="FAILED", error="it ended before its run began; its output says why")
