"""Jobs: how one runs and ends, on disk; which finished ones need not run again; and the names of runs, so that two
that differ in text, seed or pooling have two.

A job's folder holds run.json (what names the run), config.yaml, environment.json, results.json, findings.json, tables
and figures, and status.json, which says how the job stands.
"""

from __future__ import annotations

import contextlib
import logging
import re
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
    RUN,
    STATE,
    State,
    read_json,
    read_state,
    try_state,
    write_json,
    write_state,
)
from ctxexp.files.process import defer_signals, process_tags, raise_on_termination
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import LOCATION_ARGUMENTS
from ctxexp.progress import show
from ctxexp.report.wording import unique_labels
from ctxexp.results import Results
from ctxexp.results.values import RESULTS_FILE
from ctxexp.sinks import Run, Status

# Top-level keys that cannot change a measured number: jobs that differ in these alone have one key.
RESULT_NEUTRAL_KEYS = ("tracking", "sink", "cache", "engine", "resume", "verbose", "figures", "experiment",
                       "plugins")  # fmt: skip
_log = logging.getLogger("ctxexp")
LOCATION_KEYS = tuple(
    f"{group}.{argument}" for group, argument in LOCATION_ARGUMENTS.items()
)  # they say which option it is
TITLE_KEYS = ("model", "weights", "dtype")
UNTITLED_KEYS = tuple(f"model.{name}" for name in ("layers", "path", "seed"))  # others of a model are in its title
LOCATION_OPTIONS = ("text", "huggingface")  # beside a location they tell nothing
# Sections of which a title tells all that is chosen, or whose choice makes no run another.
UNNAMED_SECTIONS = ("control", "transform", "fit_on", "hydra", "device", "batch_tokens", "bootstrap", "metric")


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
    write_json(folder / RUN, {**description, "overrides": list(overrides)})
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
    if read_json(folder / RUN).get("key") != key:
        return f"{RUN} names another job"
    try:
        Results.load(folder)
    except TrackingError as error:
        return str(error)
    return None


def run_name(title: str, overrides: Sequence[str]) -> str:
    """The title with the choices of the command line that it doesn't tell, `bert (small.txt, seed 1)`."""
    keys = [re.split("[=@]", override.lstrip("+~"))[0] for override in overrides]
    neutral = {*UNNAMED_SECTIONS, *RESULT_NEUTRAL_KEYS} - {"experiment"}
    needless = {
        f"{key.partition('.')[0]}={option}" for key in LOCATION_KEYS if key in keys for option in LOCATION_OPTIONS
    }
    texts = [
        _short_text(override)
        for key, override in zip(keys, overrides, strict=True)
        if key not in TITLE_KEYS
        and (key in UNTITLED_KEYS or not key.startswith("model."))
        and key.partition(".")[0] not in neutral
        and override not in needless
    ]
    return f"{title} ({', '.join(texts)})" if texts else title


def title_of(name: str, overrides: Sequence[str]) -> str:
    """The title within a run's name."""
    return name.removesuffix(run_name("", overrides))


def labels(jobs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A label for each job, no two alike: its name, and the overrides that tell it from its namesakes, as in
    `bert (seed 1)`."""
    names = [name or " ".join(overrides) or "job" for name, overrides in jobs]
    told_apart: list[tuple[str, None]] = []
    for name, (_, overrides) in zip(names, jobs, strict=True):
        same = [set(o) for n, (_, o) in zip(names, jobs, strict=True) if n == name]
        common = set.intersection(*same) if len(same) > 1 else set(overrides)
        difference = ", ".join(_short_text(o) for o in overrides if o not in common)
        told_apart.append((f"{name} ({difference})" if difference else name, None))
    return [label for label, _ in unique_labels(told_apart)]


def _short_text(override: str) -> str:
    """A short text for an override: the choice of a group, or a key's last part and its value; of paths the end.

    Sentences keep their name: `pooling cls` alone would be that of a word's pieces.
    """
    key, _, value = override.lstrip("+").partition("=")
    value = ", ".join(part.rpartition("/")[2] for part in value.strip("[]'\"").split(","))
    if key in (*CONFIG_KINDS, "weights", "experiment", *LOCATION_KEYS):
        return value
    group, _, last = key.rpartition(".")
    return f"sentence {last} {value}" if group == "sentence" else f"{last} {value}"
