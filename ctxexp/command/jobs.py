"""A job from start to end: its run, its folder, its failure; and what is said when a command is over."""

from __future__ import annotations

import hashlib
import json
import math
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml
from omegaconf import DictConfig, OmegaConf

from ctxexp.command import compose
from ctxexp.command.config import PLACES, Config, check, supplied_by
from ctxexp.command.job_key import key_of
from ctxexp.command.labels import label
from ctxexp.command.names import registry, use
from ctxexp.command.run import measured, preflight, study_of
from ctxexp.command.secrets import as_written, environment_texts, info_as_written, with_references
from ctxexp.command.sweep import current_sweep, here, sinks_of
from ctxexp.errors import CtxexpError, Terminated, line, said
from ctxexp.files.paths import user_path
from ctxexp.files.writing import full
from ctxexp.papers.sweep_tables import write_tables, written
from ctxexp.progress import Progress, show
from ctxexp.report.figures import run_figures
from ctxexp.report.negative_controls import control_lines, training_runs
from ctxexp.report.page import REPORT, summarise
from ctxexp.report.seeds import over_seeds
from ctxexp.report.side_by_side import on_terminal
from ctxexp.report.wording import main_curves, stands_first
from ctxexp.results import Results
from ctxexp.results.objective import Objective
from ctxexp.sinks.disk.closing import JOBS, Summarise, close_sweep
from ctxexp.sinks.disk.credentials import mask
from ctxexp.sinks.disk.finished import reuse
from ctxexp.sinks.disk.job import describe, job, new_run
from ctxexp.sinks.disk.process import end_with_parent, held_back, terminated_like_interrupted
from ctxexp.sinks.disk.state import new_id
from ctxexp.study import Study

_told: set[str] = set()  # errors that this process has printed
_failed: list[str] = []  # errors of this process's jobs, for the exit status of a single run


def tell(error: str) -> None:
    """Say on stderr what was not said before."""
    error = mask(error)
    if error not in _told:
        _told.add(error)
        show(f"error: {error}", sys.stderr)


def execute(cfg: DictConfig) -> float | None:
    """Run one job; a failure is recorded (the run, status.json, one line on stderr), and the sweep goes on. The job's
    objective; None if there is none, or it is undefined: NaN ends Optuna's sweep."""
    end_with_parent()
    try:
        with plain_interrupts():
            value = _execute(cfg)
        return None if value is None or math.isnan(value) else value
    except Exception as error:  # of a bug, ours or a plugin's, the traceback is wanted; the other jobs' results too
        _failed.append(f"{type(error).__name__}: {error}")
        words = describe(error)
        if isinstance(error, CtxexpError) or full(error):
            tell(line(words))
        else:
            show(mask(words), sys.stderr)
    return None


def _execute(cfg: DictConfig) -> float | None:
    values, shown = compose.resolved(cfg), as_written(cfg)
    use(values.get("plugins"))
    compose.prepare()
    config = check(values, registry())
    sweep, store = config.tracking.sweep, user_path(config.tracking.folder).resolve()
    folder, overrides = here(store, sweep or new_id())
    sinks = sinks_of(config.sink)
    if not sweep:
        sinks.prepared(store)
    environment = environment_texts(cfg)
    study, wanted = _loaded(config), Objective.read(config.objective) if config.objective else None
    run_of = new_run(
        folder,
        store,
        name=with_references(label(config), environment),
        key=key_of(config, study) if isinstance(study, Study) else "",
        params=_params(cfg, shown, config),
        config=yaml.safe_dump(shown, sort_keys=False, allow_unicode=True),
        sweep=sweep,
    )
    if config.resume and run_of.key and (held := reuse(run_of, sinks, overrides=overrides)):
        show(f"{run_of.name}: finished before, results in {held}")
        return wanted.of(Results.load(held)) if wanted else None
    with job(run_of, sinks, overrides=overrides) as running:
        if not isinstance(study, Study):
            raise study
        results = measured(study, config, folder, Progress())
        named = replace(results.info, protocol=_protocol(run_of.params), objective=config.objective or "")
        results = replace(results, info=info_as_written(named, environment))
        running.save(results)
        run_figures(results, folder / "figures", published=config.figures.published)
        if not sweep:
            write_tables([(run_of.name, results)], folder, registry())
        running.log(results)
        objective = wanted.of(results) if wanted else None
    show(summary(results))
    if objective is not None:
        show(f"objective {config.objective}: {objective:.6g}")
    if not sweep:
        for table in written(folder):
            show(f"\n{table}")
        show(f"results: {folder}" + (f"\nrun:     {running.link}" if running.link else ""))
    return objective


def _loaded(config: Config) -> Study | CtxexpError:
    """The study, or why there is none: it is raised inside the job, so that it leaves a FAILED run."""
    try:
        preflight(config)
        return study_of(config, Progress())
    except CtxexpError as error:
        return error


def _summarise(runs: list[tuple[str, Results]], folder: Path) -> list[Path]:
    links = {row["label"]: row["link"] for row in json.loads((folder / JOBS).read_text(encoding="utf-8"))}
    return summarise(runs, folder, registry(), links=links)


def conduct(application: Callable[[], object], *, multirun: bool, summarise: Summarise = _summarise) -> int:
    """Run Hydra's application and settle what it leaves, however it ends: by itself, interrupted, or with a worker
    killed. The exit status; what isn't an end of these raises, after all is settled."""
    status = 0
    stopped: str | None = None
    other: Exception | SystemExit | None = None
    with terminated_like_interrupted():
        try:
            with plain_interrupts():
                application()
        except KeyboardInterrupt:
            status, stopped = 130, "interrupted"
        except Terminated as end:
            status, stopped = int(str(end.code)), f"ended by {signal.Signals(int(str(end.code)) - 128).name}"
        except BrokenProcessPool as error:
            status, stopped = 1, _killed_worker(error)
        except SystemExit as error:
            other = error
        except Exception as error:
            stopped, other = f"stopped by {type(error).__name__}", error
            if multirun and _failed:  # whoever optimises over jobs can't go on where they fail
                status, stopped, other = 1, f"the sweeper stopped at failed jobs: {said(error)}", None
        if status == 1:
            show(f"error: {stopped}", sys.stderr)
        elif status:
            show(f"{stopped}: the runs that were under way are KILLED", sys.stderr)
        with held_back():
            closed = close(summarise, multirun=multirun, stopped=stopped)
    if other:
        raise other
    return status or closed


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """An interrupt that fell into a library, which made another exception of it, is one again: Python keeps what was
    being handled when an exception was raised."""
    try:
        yield
    except Exception as error:
        before = error.__context__
        while before is not None:
            if isinstance(before, KeyboardInterrupt | Terminated):
                raise before from None
            before = before.__context__
        raise


def _killed_worker(error: BaseException) -> str:
    """A worker process that the system killed, in one line."""
    signals = ", ".join(sorted(set(re.findall(r"\b(SIG[A-Z]+)\(", str(error)))))
    return (
        f"a worker process was killed{f' ({signals})' if signals else ''}, most often for want of memory: have fewer "
        "at a time (hydra.launcher.n_jobs=1), and repeat the command with resume=true, which skips what finished"
    )


def close(summarise: Summarise = _summarise, *, multirun: bool, stopped: str | None = None) -> int:
    """What is left to do when Hydra is done: settle a sweep and say how its jobs ended. The exit status."""
    started = current_sweep() if multirun else None
    if started is None:
        return 1 if _failed else 0
    sweep, sinks = started
    report = close_sweep(sweep, sinks, summarise, stopped=stopped)
    if not report.rows:
        return 1
    wanted = {label: (Objective.read(r.info.objective), r) for label, r in report.compared if r.info.objective}
    objectives = {label: f"{one.text} = {one.of(results):.6g}" for label, (one, results) in wanted.items()}
    width = max(len(row.label) for row in report.rows)
    show("\njobs")
    for row in report.rows:
        told = " ".join(row.error.strip().splitlines()[-1:]) if row.error else objectives.get(row.label, "")
        show(f"  {row.label:<{width}}  {row.status.lower()}{' before' if row.reused else ''}  {told}")
    if problems := (report.error or "").removeprefix(stopped or "").strip():
        show(f"error: {problems}", sys.stderr)
    if report.compared:
        shown = over_seeds(report.compared)
        show(f"\n{on_terminal(shown)}")
        if controls := control_lines(shown, most=12):
            show("\n".join(["without context:", *controls]))
        if said := training_runs(shown):
            show(f"{said}.")
    for table in written(sweep.summary):
        show(f"\n{table}")
    charts = sinks.charts(sweep)
    page = sweep.summary / REPORT
    show(f"comparison: {sweep.summary}" + (f"\nreport:     {page}" if page.exists() else ""))
    if charts:
        show(f"charts:     {charts}")
    return 0 if report.status == "FINISHED" and not report.error else 1


def summary(results: Results) -> str:
    """The main curve of each measure (its metric's own choice, else adjusted or raw), a line each."""
    some = results.info.model.layers
    shown = ", ".join(map(str, some)) + f" of 0 to {results.n_layers - 1}" if some else f"0 to {results.n_layers - 1}"
    lines = [f"{results.info.title}, {results.info.corpus.name}: layers {shown}"]
    for key in main_curves(results):
        values = " ".join("    nan" if np.isnan(v) else f"{v:7.3f}" for v in results.measured(key))
        for mix in results.info.pooling.mixes:
            held = results.held.get(key._replace(place=mix))
            values += f"  {mix} {held.value[0]:.3f}" if held else ""
        lines.append(f"  {key.subject + ' ' + key.statistic:<44}{values}")
    text, pooling = results.info.corpus, results.info.pooling
    if note := results.info.control_note:
        lines.append(f"  {results.info.control}: {note}")
    if first := stands_first(results):
        lines.append(f"  stands first: {first}")
    if n := text.skipped:
        lines.append(f"  without a vector, not measured: {n:,} words ({text.skipped_share:.1%} of the text)")
    if text.pieces:
        said = f"{text.unknown:,} of {text.pieces:,} pieces ({text.unknown_share:.1%})"
        lines.append(f"  unknown to the model's tokenizer: {said}")
    if pooling.name:
        lines.append(f"  sentence vectors: {pooling.name}")
        lines += [f"  mix {mix}" for mix in pooling.mixes.values()]
    return "\n".join(lines)


def _params(cfg: DictConfig, shown: Mapping[str, object], config: Config) -> dict[str, object]:
    """The config as written less what repeats another key of it and the places, which say nothing about the numbers;
    plugins by name and version."""
    versions = {p.plugin: f"{p.distribution} {p.version}" for p in supplied_by(config)}
    asked = _own({key: value for key, value in shown.items() if key not in PLACES}, cfg)
    return {**asked, "plugins": versions}


def _protocol(params: Mapping[str, object]) -> str:
    """Hex digest of the params less the seed: the same for jobs that differ in nothing else."""
    text = json.dumps({key: value for key, value in params.items() if key != "seed"}, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _own(shown: Mapping[str, object], cfg: DictConfig) -> dict[str, object]:
    """What isn't taken from another key."""
    found: dict[str, object] = {}
    for key, value in shown.items():
        if isinstance(value, dict):
            found[key] = _own(value, cfg[key])
        elif not OmegaConf.is_interpolation(cfg, key) or "${oc.env" in str(value):
            found[key] = value
    return found
