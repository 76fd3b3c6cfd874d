"""What has finished need not run again: finished jobs, on disk and in the sinks, and how a sweep takes them over."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files.manifest import damaged
from ctxexp.jobs.dead import close_dead_jobs
from ctxexp.jobs.job import describe_sinks, saved_run
from ctxexp.jobs.sinks import Sinks
from ctxexp.jobs.state import RUN, STATE, read_json, read_state, write_state
from ctxexp.results import FILE, Results
from ctxexp.sink import Run

_log = logging.getLogger("ctxexp")


def finished_on_disk(store: Path, key: str) -> Path | None:
    """The newest folder under `<store>/results` with whole results of a finished job of this `key`."""
    for path in sorted((store / "results").glob(f"*/*/{STATE}"), reverse=True):
        state = read_state(path.parent)
        if state.get("status") == "FINISHED" and state.get("key") == key and (path.parent / FILE).exists():
            if not (what := _unfit(path.parent, key)):
                return path.parent
            _log.warning("warning: results in %s are damaged (%s); they are not used", path.parent, what)
    return None


def reuse(run: Run, sinks: Sinks, *, overrides: Sequence[str] = ()) -> Path | None:
    """The folder with the results of a finished job of the run's key, or None: then it has to run.

    The sinks count that job to the present sweep, so that its charts and its end are whole; `run.folder`, where the job
    would have written, notes where the results are. Results that are not on disk, or damaged there, are fetched from a
    sink into `run.folder`.
    """
    if run.sweep is None:  # a sweep does it once, before its jobs
        close_dead_jobs(run.store)
    held = finished_on_disk(run.store, run.key)
    if held is None:
        if not _fetch(sinks, run):
            return None
        held = run.folder
    sinks.adopt(run, saved_run(held, run.store))
    write_state(
        run.folder,
        status="FINISHED",
        key=run.key,
        name=read_json(held / RUN).get("name"),  # an earlier sweep's end may have told its run from namesakes
        overrides=list(overrides),
        measured=True,
        logged=True,
        reused=True,
        results=str(held),
    )
    describe_sinks(run.folder, sinks)
    return held


def _unfit(folder: Path, key: str) -> str | None:
    """Why the results there can't be taken for those of job `key`; None if they can."""
    if what := damaged(folder):
        return what
    if read_json(folder / RUN).get("key") != key:
        return f"{RUN} names another job"
    try:
        Results.load(folder)
    except TrackingError as error:
        return str(error)
    return None


def _fetch(sinks: Sinks, run: Run) -> bool:
    """Whether a sink had the files of a finished job, which are in its folder then; says why if they can't be used."""
    with tempfile.TemporaryDirectory() as place:
        try:
            what = _unfit(Path(place), run.key) if sinks.fetch(run, Path(place)) else ""
        except TrackingError as error:
            what = str(error)
        if what is None:
            shutil.copytree(place, run.folder, dirs_exist_ok=True)
        elif what:
            _log.warning("warning: a finished run of this job is computed again, since it can't be used: %s", what)
    return what is None
