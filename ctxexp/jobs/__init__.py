"""Jobs: how one runs and ends, on disk, and which finished ones need not run again.

A job's folder holds run.json (what names the run), config.yaml, environment.json, results.json, findings.json, tables
and figures, and status.json, which says how the job stands.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxexp.errors import CtxexpError, TrackingError
from ctxexp.files import MANIFEST, disk_error_message, find_damage, is_disk_full, seal_folder, user_path, write_file
from ctxexp.files.credentials import map_texts, mask
from ctxexp.files.environment import environment, provenance_tags
from ctxexp.files.job_folder import (
    RUN_FILE,
    STATE,
    State,
    read_json,
    read_state,
    try_state,
    write_json,
    write_state,
)
from ctxexp.files.process import defer_signals, process_tags, raise_on_termination
from ctxexp.jobs.names import labels
from ctxexp.progress import show
from ctxexp.results import Results
from ctxexp.results.files import RESULTS_FILE
from ctxexp.sinks import Run, Status

_log = logging.getLogger("ctxexp")


def new_run(
    folder: Path,
    tracking_folder: Path,
    *,
    name: str,
    key: str,
    params: Mapping[str, object],
    config: str,
    sweep: str | None = None,
) -> Run:
    """A run that begins now, for the job in `folder`; credentials are masked."""
    return Run(
        name=name,
        key=key,
        id=secrets.token_hex(16),
        folder=folder,
        tracking_folder=tracking_folder,
        began_ms=int(time.time() * 1000),
        params=map_texts(mask, dict(params)),
        config=mask(config),
        source=map_texts(mask, provenance_tags()),
        sweep=sweep,
    )


def save(results: Results, folder: Path) -> None:
    """Put the results on disk: from here on nothing is lost."""
    results.save(folder)
    seal_folder(folder)


@contextlib.contextmanager
def job(
    run: Run, *, overrides: Sequence[str] = (), meant: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[None]:
    """Run the block as one job and record in its folder how it ends: FINISHED, FAILED with its error, or KILLED.
    `meant` is where its sinks send it to, by label."""
    folder = run.folder
    for stale in (MANIFEST, RESULTS_FILE):  # of an earlier job in this place: not this one's results
        (folder / stale).unlink(missing_ok=True)
    own = ("name", "key", "id", "params", "source", "sweep")  # the others are its place, its config and its end
    description = {**{key: vars(run)[key] for key in own}, "began": run.began_ms}
    write_file(folder / "config.yaml", run.config)
    write_json(folder / "environment.json", environment())
    write_json(folder / RUN_FILE, {**description, "overrides": list(overrides)})
    write_state(
        folder,
        fresh=True,
        status="RUNNING",
        name=run.name,
        key=run.key,
        overrides=list(overrides),
        process=process_tags(),
        meant=dict(meant or {}),
    )
    status: Status = "FINISHED"
    error: str | None = None
    with raise_on_termination() as heard:
        try:
            yield
        except BaseException as raised:
            status, error = "KILLED", f"interrupted ({type(raised).__name__})"
            if isinstance(raised, Exception) and not heard:
                status, error = "FAILED", error_message(raised)
            raise
        finally:
            with defer_signals():
                note_end = try_state if error else write_state
                note_end(folder, status=status, error=error, ended=int(time.time() * 1000))


def error_message(error: BaseException) -> str:
    """The message of an error that ctxexp raises on purpose, or that a full disk raises; else the whole traceback."""
    if isinstance(error, OSError) and is_disk_full(error):
        return disk_error_message(error)
    return mask(str(error) if isinstance(error, CtxexpError) else "".join(traceback.format_exception(error)))


class FinishedJob(NamedTuple):
    """A finished job: its folder, its status.json, and the folder of its results, which may be that of an earlier job
    that it took over."""

    folder: Path
    state: State
    results: Path


def finished_jobs(folder: Path | str, *, sweep: str | None = None) -> Iterator[FinishedJob]:
    """Finished jobs under `<folder>/results`, the newest first; `sweep`: of that one only, "last" the last."""
    states = sorted((user_path(folder).resolve() / "results").glob(f"*/*/{STATE}"), reverse=True)
    group = states[0].parent.parent.name if states and sweep == "last" else sweep
    for path in states:
        state = read_state(path.parent) if group in (None, path.parent.parent.name) else State()
        results = Path(state.get("results") or path.parent)
        if state.get("status") == "FINISHED" and (results / RESULTS_FILE).exists():
            yield FinishedJob(path.parent, state, results)


def finished_by_label(folder: Path | str, *, sweep: str | None = None) -> dict[str, tuple[FinishedJob, Results]]:
    """Finished jobs with their results by label, each label once, the newest first; results that can't be read are left
    out, with a warning. Raises TrackingError where there is none."""
    finished: list[tuple[FinishedJob, Results]] = []
    for job in finished_jobs(folder, sweep=sweep):
        try:
            finished.append((job, Results.load(job.results)))
        except TrackingError as error:
            show(f"warning: left out: {error}", sys.stderr)
    if not finished:
        place = Path(folder).expanduser() / "results"
        raise TrackingError(f"no finished run{f' of sweep {sweep}' if sweep else ''} in {place}")
    names = [
        (results.info.title or job.folder.parent.name, job.state.get("overrides", [])) for job, results in finished
    ]
    return dict(zip(labels(names), finished, strict=True))


def finished_on_disk(folder: Path, key: str) -> Path | None:
    """The newest folder under `<folder>/results` with whole results of a finished job of this `key`."""
    for job in finished_jobs(folder):
        if job.state.get("key") == key and job.results == job.folder:
            if not (what := _unfit(job.folder, key)):
                return job.folder
            _log.warning("warning: results in %s are damaged (%s); they are not used", job.folder, what)
    return None


def reuse(run: Run, *, overrides: Sequence[str] = ()) -> Path | None:
    """The folder with the results of a finished job of the run's key, or None: then it has to run. `run.folder`, where
    the job would have written, notes where the results are."""
    folder = finished_on_disk(run.tracking_folder, run.key)
    if folder is not None:
        write_state(
            run.folder,
            status="FINISHED",
            key=run.key,
            name=run.name,
            overrides=list(overrides),
            reused=True,
            results=str(folder),
        )
    return folder


def _unfit(folder: Path, key: str) -> str | None:
    """The reason why the results there can't be taken for those of job `key`; None if they can."""
    if what := find_damage(folder):
        return what
    if read_json(folder / RUN_FILE).get("key") != key:
        return f"{RUN_FILE} names another job"
    try:
        Results.load(folder)
    except TrackingError as error:
        return str(error)
    return None
