"""One job from start to end: its study, its results on disk and in the sinks, its failure."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ctxexp.errors import CtxexpError, line
from ctxexp.files.credentials import map_texts, mask, with_references
from ctxexp.files.process import reraise_interrupts
from ctxexp.files.writing import is_disk_full
from ctxexp.jobs.finished_runs import reuse, run_name
from ctxexp.jobs.job import Sinks, describe, job, new_run
from ctxexp.measuring.study import Study
from ctxexp.plugins.registry import registry
from ctxexp.progress import show, terminal_width
from ctxexp.report.figures import run_figures
from ctxexp.report.page import REPORT, show_page, write_report
from ctxexp.report.run_facts import text_start
from ctxexp.report.sweep_tables import table_texts, write_tables
from ctxexp.report.terminal import answer, curve_table, fitted_markdown
from ctxexp.results import Results
from ctxexp.results.objective import Objective
from ctxexp.results.run_info import RunInfo

_printed_errors: set[str] = set()  # errors that this process has printed
_failed: list[str] = []  # errors of this process's jobs, for the exit status of a single run


class Parts(Protocol):
    """What a job is made of, each built once, as the command builds it from a config."""

    sinks: Sinks
    objective: Objective | None
    title: str

    def check(self) -> None:
        """Raise CtxexpError for the first thing that a run would fail at."""

    @property
    def study(self) -> Study:
        """Its texts and model loaded. Raises CtxexpError."""

    def key(self) -> str:
        """The job's key, which covers all that its numbers depend on."""

    def run(self, folder: Path) -> Results:
        """Measure."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job to execute: its parts, its folder, and its config as it was written."""

    parts: Parts
    folder: Path
    store: Path  # the folder of all runs
    sweep: str | None  # None: a run alone
    overrides: Sequence[str]
    params: Mapping[str, object]  # the config as written, less what says nothing about the numbers
    text: str  # the whole config as written, as YAML
    environment: Mapping[str, str]  # texts that the environment gave, each to its reference
    objective: str = ""  # as it is written
    resume: bool = False  # whether a finished job of the same key stands for it
    published: bool = False  # whether figures show published curves
    verbose: bool = False


def print_error_once(error: str) -> None:
    """Print an error on stderr, unless this process has printed it before."""
    error = mask(error)
    if error not in _printed_errors:
        _printed_errors.add(error)
        show(f"error: {error}", sys.stderr)


def has_failures() -> bool:
    """Whether a job of this process has failed."""
    return bool(_failed)


def execute(read: Callable[[], JobSpec]) -> float | None:
    """Run the job that `read` gives; a failure is recorded (the run, status.json, one line on stderr), and the sweep
    goes on. The job's objective; None if there is none, or it is undefined: NaN ends Optuna's sweep."""
    try:
        with reraise_interrupts():
            value = _execute(read())
        return None if value is None or math.isnan(value) else value
    except Exception as error:  # of a bug, ours or a plugin's, the traceback is wanted; the other jobs' results too
        _failed.append(f"{type(error).__name__}: {error}")
        message = describe(error)
        if isinstance(error, CtxexpError) or is_disk_full(error):
            print_error_once(line(message))
        else:
            show(mask(message), sys.stderr)
    return None


def _execute(spec: JobSpec) -> float | None:
    parts, folder, sweep = spec.parts, spec.folder, spec.sweep
    sinks, objective = parts.sinks, parts.objective
    if not sweep:
        sinks.prepare_all(spec.store)
    study = _load(parts)
    run_of = new_run(
        folder,
        spec.store,
        name=with_references(spec.environment, run_name(parts.title, spec.overrides)),
        key=parts.key() if isinstance(study, Study) else "",
        params=spec.params,
        config=spec.text,
        sweep=sweep,
    )
    if spec.resume and run_of.key and (earlier := reuse(run_of, sinks, overrides=spec.overrides)):
        show(f"{run_of.name}: finished before, results in {earlier}")
        if not sweep:
            show_page(earlier)
        return objective.of(Results.load(earlier)) if objective else None
    with job(run_of, sinks, overrides=spec.overrides) as running:
        if not isinstance(study, Study):
            raise study
        results = parts.run(folder)
        named = replace(results.info, protocol=_protocol(run_of.params), objective=spec.objective)
        results = replace(results, info=info_as_written(named, spec.environment))
        running.save(results)
        run_figures(results, folder / "figures", published=spec.published)
        if not sweep:
            write_tables([(run_of.name, results)], folder, registry())
            write_report([(run_of.name, results)], folder / REPORT, published=spec.published)
        running.log(results)
        value = objective.of(results) if objective else None
    if spec.verbose:
        show(summary(results))
    if value is not None:
        show(f"objective {spec.objective}: {value:.6g}")
    if not sweep:
        for table in table_texts(folder):
            show(f"\n{fitted_markdown(table, terminal_width())}")
        show(f"\n{answer([(results.info.title, results)], terminal_width())}")
        if running.link:
            show(f"run:    {running.link}")
        show_page(folder)
    return value


def _load(parts: Parts) -> Study | CtxexpError:
    """The study, or the error that leaves none: it is raised inside the job, so that it leaves a FAILED run."""
    try:
        parts.check()
        return parts.study
    except CtxexpError as error:
        return error


def summary(results: Results) -> str:
    """The main curve of each measure (its metric's own choice, else adjusted or raw) in a table, and what else was
    noted of the run."""
    some = results.info.model.layers
    layers = ", ".join(map(str, some)) + f" of 0 to {results.n_layers - 1}" if some else f"0 to {results.n_layers - 1}"
    lines = [f"{results.info.title}, {results.info.corpus.name}: layers {layers}"]
    if table := curve_table(results, terminal_width() - 2):
        lines.append(textwrap.indent(table, "  ") + "\n")
    text, pooling = results.info.corpus, results.info.pooling
    if note := results.info.control_note:
        lines.append(f"  {results.info.control}: {note}")
    if first := text_start(results):
        lines.append(f"  stands first: {first}")
    if n := text.skipped:
        lines.append(f"  without a vector, not measured: {n:,} words ({text.skipped_share:.1%} of the text)")
    if text.pieces:
        note = f"{text.unknown:,} of {text.pieces:,} pieces ({text.unknown_share:.1%})"
        lines.append(f"  unknown to the model's tokenizer: {note}")
    if pooling.name:
        lines.append(f"  sentence vectors: {pooling.name}")
        lines += [f"  mix {mix}" for mix in pooling.mixes.values()]
    return "\n".join(lines)


def _protocol(params: Mapping[str, object]) -> str:
    """Hex digest of the params less the seed: the same for jobs that differ in nothing else."""
    text = json.dumps({key: value for key, value in params.items() if key != "seed"}, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def info_as_written(info: RunInfo, texts: Mapping[str, str]) -> RunInfo:
    """The run's metadata with references where names and places came from the environment (`texts`)."""
    document = info.to_json()
    for part in ("title", "model", "corpus", "transform"):
        document[part] = map_texts(lambda text: with_references(texts, text), document[part])
    document["model"]["name"] = info.model.name  # a config group's, which no environment gives
    return RunInfo.from_json(document)
