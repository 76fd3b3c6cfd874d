"""Finished jobs, on disk and in the sinks, which need not run again, and how a sweep takes them over; and names of
runs: two that differ in text, seed or pooling have two.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxexp.errors import TrackingError
from ctxexp.files.job_folder import RUN, STATE, State, mark_killed_jobs, read_json, read_state, write_state
from ctxexp.files.writing import find_damage, user_path
from ctxexp.jobs.job import Sinks, describe_sinks
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import ARGUMENTS
from ctxexp.progress import show
from ctxexp.report.wording import unique_labels
from ctxexp.results import RESULTS_FILE, Results
from ctxexp.sink import Run, load_run

# Top-level keys that cannot change a measured number: jobs that differ in these alone have one key.
RESULT_NEUTRAL_KEYS = ("tracking", "sink", "cache", "engine", "resume", "verbose", "figures", "objective", "experiment",
                       "plugins")  # fmt: skip


_log = logging.getLogger("ctxexp")
LOCATED = tuple(f"{group}.{argument}" for group, argument in ARGUMENTS.items())  # they say which option it is
IN_TITLE = ("model", "weights", "dtype")
UNTITLED = tuple(f"model.{name}" for name in ("layers", "path", "seed", "linear"))  # others of a model are in its title
LOCATING = ("text", "huggingface")  # beside a location they tell nothing
# Sections of which a title tells all that is chosen, or whose choice makes no run another.
UNNAMED = ("control", "transform", "fit_on", "hydra", "device", "batch_tokens", "bootstrap", "metric")


class FinishedJob(NamedTuple):
    """A finished job: its folder, its status.json, and the folder of its results, which may be that of an earlier job
    that it took over."""

    folder: Path
    state: State
    results: Path


def finished_jobs(store: Path | str, *, sweep: str | None = None) -> Iterator[FinishedJob]:
    """Finished jobs under `<store>/results`, the newest first; `sweep`: of that one only, "last" the last."""
    states = sorted((user_path(store).resolve() / "results").glob(f"*/*/{STATE}"), reverse=True)
    group = states[0].parent.parent.name if states and sweep == "last" else sweep
    for path in states:
        state = read_state(path.parent) if group in (None, path.parent.parent.name) else State()
        results = Path(state.get("results") or path.parent)
        if state.get("status") == "FINISHED" and (results / RESULTS_FILE).exists():
            yield FinishedJob(path.parent, state, results)


def finished_results(store: Path | str, *, sweep: str | None = None) -> Iterator[tuple[FinishedJob, Results]]:
    """Finished jobs with their results, the newest first; results that can't be read are left out, with a warning."""
    for job in finished_jobs(store, sweep=sweep):
        try:
            results = Results.load(job.results)
        except TrackingError as error:
            show(f"warning: left out: {error}", sys.stderr)
            continue
        yield job, results


def finished_by_label(store: Path | str, *, sweep: str | None = None) -> dict[str, tuple[FinishedJob, Results]]:
    """The same by label, each label once. Raises TrackingError where there is none."""
    finished = list(finished_results(store, sweep=sweep))
    if not finished:
        place = Path(store).expanduser() / "results"
        raise TrackingError(f"no finished run{f' of sweep {sweep}' if sweep else ''} in {place}")
    names = [
        (results.info.title or job.folder.parent.name, job.state.get("overrides", [])) for job, results in finished
    ]
    return dict(unique_labels([*zip(labels(names), finished, strict=True)]))


def finished_on_disk(store: Path, key: str) -> Path | None:
    """The newest folder under `<store>/results` with whole results of a finished job of this `key`."""
    for job in finished_jobs(store):
        if job.state.get("key") == key and job.results == job.folder:
            if not (what := _unfit(job.folder, key)):
                return job.folder
            _log.warning("warning: results in %s are damaged (%s); they are not used", job.folder, what)
    return None


def reuse(run: Run, sinks: Sinks, *, overrides: Sequence[str] = ()) -> Path | None:
    """The folder with the results of a finished job of the run's key, or None: then it has to run.

    The sinks count that job to the present sweep, so that its charts and its end are whole; `run.folder`, where the job
    would have written, notes where the results are. Results that are not on disk, or damaged there, are fetched from a
    sink into `run.folder`.
    """
    if run.sweep is None:  # a sweep does it once, before its jobs
        mark_killed_jobs(run.tracking_folder)
    folder = finished_on_disk(run.tracking_folder, run.key)
    if folder is None:
        if not _fetch(sinks, run):
            return None
        folder = run.folder
    sinks.reuse(run, load_run(folder, run.tracking_folder))
    write_state(
        run.folder,
        status="FINISHED",
        key=run.key,
        name=run.name,
        overrides=list(overrides),
        measured=True,
        logged=True,
        reused=True,
        results=str(folder),
    )
    describe_sinks(run.folder, sinks)
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


def run_name(title: str, overrides: Sequence[str]) -> str:
    """The title with the choices of the command line that it doesn't tell, `bert (small.txt, seed 1)`."""
    keys = [re.split("[=@]", override.lstrip("+~"))[0] for override in overrides]
    neutral = {*UNNAMED, *RESULT_NEUTRAL_KEYS} - {"experiment"}
    needless = {f"{key.partition('.')[0]}={option}" for key in LOCATED if key in keys for option in LOCATING}
    texts = [
        _short_text(override)
        for key, override in zip(keys, overrides, strict=True)
        if key not in IN_TITLE
        and (key in UNTITLED or not key.startswith("model."))
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
    unique_labels = []
    for name, (_, overrides) in zip(names, jobs, strict=True):
        same = [set(o) for n, (_, o) in zip(names, jobs, strict=True) if n == name]
        common = set.intersection(*same) if len(same) > 1 else set(overrides)
        difference = ", ".join(_short_text(o) for o in overrides if o not in common)
        unique_labels.append(f"{name} ({difference})" if difference else name)
    counts: Counter[str] = Counter()
    for i, label in enumerate(unique_labels):
        counts[label] += 1
        if counts[label] > 1:
            unique_labels[i] = f"{label} ({counts[label]})"
    return unique_labels


def _short_text(override: str) -> str:
    """A short text for an override: the choice of a group, or a key's last part and its value; of paths the end.

    Sentences keep their name: `pooling cls` alone would be that of a word's pieces.
    """
    key, _, value = override.lstrip("+").partition("=")
    value = ", ".join(part.rpartition("/")[2] for part in value.strip("[]'\"").split(","))
    if key in (*CONFIG_KINDS, "weights", "experiment", *LOCATED):
        return value
    group, _, last = key.rpartition(".")
    return f"sentence {last} {value}" if group == "sentence" else f"{last} {value}"
