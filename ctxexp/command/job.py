"""One job from start to end: its composed config, its study, its results on disk and in the sinks, its failure."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from ctxexp.command.config import Config, as_written, parse_config, plain_values, refuse_written_secrets
from ctxexp.command.experiment import Experiment
from ctxexp.command.identity import protocol_of, run_params
from ctxexp.errors import CtxexpError, TrackingError
from ctxexp.files import user_path
from ctxexp.files.job_folder import job_folder, mark_killed_jobs, new_id
from ctxexp.jobs import job, new_run, reuse, save
from ctxexp.jobs.ending import note_failure, show_answer
from ctxexp.jobs.names import run_name
from ctxexp.jobs.sending import Sinks, destinations, is_due, link_of, send_runs
from ctxexp.plugins.registry import load_plugin_files, registry
from ctxexp.progress import Progress, show, terminal_width
from ctxexp.report.drawing import write_run_charts
from ctxexp.report.page import REPORT, write_report
from ctxexp.report.terminal import answer, write_main_table, write_tables
from ctxexp.report.wording import text_start
from ctxexp.results import Results
from ctxexp.sinks import Run

REFERENCES = {"weights": "${weights.name}", "dtype": "${dtype}", "device": "${device}"}  # how a part follows the run's
HARMLESS = ("float32", "auto", "cpu")  # values that also hold for what takes none
log = logging.getLogger("ctxexp")


def task(cfg: DictConfig) -> None:
    """Execute one job: a failure is recorded (the run, status.json, one line on stderr), and the sweep goes on.

    Some launchers call it in a worker process, so it is importable.
    """
    log_to_stderr()
    try:
        refuse_written_secrets(cfg)
        values = plain_values(cfg)
        load_plugin_files(values.get("plugins"))
        experiment = Experiment(parse_config(values, registry()), Progress())
        tracking = experiment.config.tracking
        run_job(cfg, experiment, *current_job(tracking.folder, tracking.sweep or new_id()))
    except Exception as error:
        note_failure(error)


def run_job(cfg: DictConfig, experiment: Experiment, folder: Path, overrides: Sequence[str]) -> None:
    """Run the job of a composed config and its experiment in the folder, and send it once it lies on disk: a failure is
    recorded."""
    config, is_alone = experiment.config, not experiment.config.tracking.sweep
    tracking_folder = user_path(config.tracking.folder).resolve()
    run: Run | None = None
    try:
        for choice in idle_choices(cfg, overrides):
            log.warning(choice)
        if is_alone:
            mark_killed_jobs(tracking_folder)
        meant = destinations(experiment.sinks, tracking_folder)
        problem = _load(experiment, is_checked=is_alone)  # the key is of the text and the model, which are loaded now
        run = _new_run(cfg, experiment, folder, overrides, key="" if problem else experiment.key())
        if config.resume and run.key and (earlier := reuse(run, overrides=overrides)):
            show(f"{run.name}: finished before, results in {earlier}")
            if is_alone:
                results = Results.load(earlier)
                show_answer(earlier, [(results.info.title, results)])
            return
        with job(run, overrides=overrides, meant=meant):
            if problem:
                raise problem
            results = experiment.run(folder)
            results = replace(results, info=replace(results.info, protocol=protocol_of(run.params)))
            _keep(results, run, config)
        if config.verbose:
            show(run_notes(results, with_answer=not is_alone))
        if is_alone:
            show_answer(folder, [(results.info.title, results)])
    except Exception as error:  # of a bug, ours or a plugin's, the traceback is wanted; the other jobs' results too
        note_failure(error)  # before it is sent, which may take long
    finally:
        if run is not None:
            _send(run, experiment.sinks)


def _load(experiment: Experiment, *, is_checked: bool) -> CtxexpError | None:
    """Load the study's texts and model. Returns the error where that fails: it is raised inside the job, so that it
    leaves a FAILED run."""
    try:
        if not is_checked:
            experiment.check()
        _ = experiment.study
    except CtxexpError as error:
        return error
    return None


def _new_run(cfg: DictConfig, experiment: Experiment, folder: Path, overrides: Sequence[str], *, key: str) -> Run:
    """The run that begins now in the folder."""
    config, document = experiment.config, as_written(cfg)
    return new_run(
        folder,
        user_path(config.tracking.folder).resolve(),
        name=run_name(experiment.title, overrides),
        key=key,
        params=run_params(document, cfg, config),
        config=yaml.safe_dump(document, sort_keys=False, allow_unicode=True),
        sweep=config.tracking.sweep,
    )


def _keep(results: Results, run: Run, config: Config) -> None:
    """Put the results on disk, with their figures and, of a lone run, its tables and page."""
    folder, labelled, published = run.folder, [(run.name, results)], config.figures.published
    save(results, folder)
    write_run_charts(results, folder / "figures", published=published)
    write_main_table(labelled, folder)
    if not run.sweep:
        write_tables(labelled, folder, registry())
        write_report(labelled, folder / REPORT, published=published)
        results.save(folder / "results.csv")


def _send(run: Run, sinks: Sinks) -> None:
    """Send a run that has ended, unless its sweep's end does; what fails there is told, and costs a lone run's exit
    status."""
    if not is_due(run):
        return
    problems = send_runs({run.folder: None}, sinks, run.tracking_folder, sweep=run.sweep)
    if run.sweep:
        return  # its end tries again
    for problem in problems:
        note_failure(TrackingError(problem))
    if link := link_of(run.folder):
        show(f"run:    {link}")


def idle_choices(cfg: DictConfig, overrides: Sequence[str]) -> Iterator[str]:
    """A sentence for each of weights, dtype and device that the overrides choose and no part of the job takes."""
    text = OmegaConf.to_yaml(OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"]))
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key in REFERENCES and value not in HARMLESS and REFERENCES[key] not in text:
            yield (
                f"{key}= changes nothing for model {cfg.model.name!r}, which doesn't take it: jobs that differ in it "
                "alone are the same"
            )


def run_notes(results: Results, *, with_answer: bool) -> str:
    """Lines on the run's layers, text and pooling; with `with_answer`, what it found too."""
    some = results.info.model.layers
    layers = ", ".join(map(str, some)) + f" of 0 to {results.n_layers - 1}" if some else f"0 to {results.n_layers - 1}"
    lines = [f"{results.info.title}, {results.info.corpus.name}: layers {layers}"]
    if with_answer and (found := answer([(results.info.title, results)], terminal_width() - 2)):
        lines.append(textwrap.indent(found, "  ") + "\n")
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


def log_to_stderr() -> None:
    """ctxexp's own log lines, bare, on stderr; once a process."""
    logging.raiseExceptions = False  # a closed stderr makes no tracebacks, in a worker either
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False


def current_job(folder: Path | str, group: str) -> tuple[Path, list[str]]:
    """Inside a Hydra job: its folder under the tracking folder `folder`, and its overrides less those of places."""
    from hydra.core.hydra_config import HydraConfig

    return job_of(OmegaConf.create({"hydra": HydraConfig.get()}), folder, group)


def job_of(config: DictConfig, folder: Path | str, group: str) -> tuple[Path, list[str]]:
    """The folder and these overrides of the job that this config, with Hydra's part, describes."""
    number = OmegaConf.select(config, "hydra.job.num", throw_on_missing=False)
    overrides = [o for o in typed_overrides(config) if not o.lstrip("+~").startswith(("tracking.", "sink"))]
    return job_folder(folder, group, number, overrides), overrides


def typed_overrides(config: DictConfig) -> list[str]:
    """The task's overrides as they were typed: an environment variable stays its name."""
    overrides: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    return [str(o) for o in overrides]
