"""An experiment: Hydra's application around a job, one run or a sweep of them, or its config shown; and Hydra's
callback of a sweep, which builds what its jobs share once and gives each of them its sweep's name.
"""

from __future__ import annotations

import os
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import hydra
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command import compose
from ctxexp.command.config import components_of, environment_unresolved, key_names
from ctxexp.command.job import job_of, log_to_stderr, run_job, task, typed_overrides
from ctxexp.command.overrides import OWN, quote, read_choices
from ctxexp.errors import ConfigError, CtxexpError, DiskError, line, suggestions
from ctxexp.files import check_place, check_writable, disk_error_message, is_disk_full, user_path
from ctxexp.files.job_folder import new_id, read_state, try_state
from ctxexp.files.process import process_tags, watch_parent_in_workers
from ctxexp.jobs import error_message
from ctxexp.jobs.ending import last_answer, last_failure, open_sweep, settle_command
from ctxexp.jobs.sending import check_sinks
from ctxexp.plugins.arguments import convert_value
from ctxexp.plugins.registry import GROUPS, add_config_folder, config_folder, registry
from ctxexp.progress import show
from ctxexp.report.page import OPEN_FLAG, REPORT, open_when_made
from ctxexp.report.terminal import Document, deliver, run_document
from ctxexp.sinks import Sink, Sweep

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import TaskFunction


def _parse_flags(argv: list[str]) -> Namespace:
    """What the words are: Hydra's flags, `overrides`, and `words`, all but these, since Hydra takes no flag between two
    overrides. Raises ConfigError for other flags, and for some that can't be combined."""

    def refuse(message: str) -> NoReturn:
        names = [re.sub("^-+|=.*", "", word).replace("-", "_") for word in argv if word.startswith("-")]
        keys = [*GROUPS, "text", *OWN, *key_names()]
        close = [f"; did you mean {key}=...?" for name in names for key in suggestions(name, keys)]
        hint = close[0] if close else "; what is chosen is written key=value"
        flags = [word for word in message.split() if word.startswith("-")]
        if message.startswith("unrecognized arguments"):  # argparse names what stands behind a flag too
            message = f"unrecognized arguments: {' '.join(flags)}"
        unquoted = re.sub(r"=[^\s']+", "=...", message)  # which values are secret isn't known yet
        raise ConfigError(f"{unquoted}; ctxexp --help says what there is{hint}")

    parser = ArgumentParser(add_help=False)
    parser.add_argument("overrides", nargs="*")
    for names in ("--run", "--multirun -m", "--resolve", "--hydra-help", "--shell-completion -sc", OPEN_FLAG):
        parser.add_argument(*names.split(), action="store_true")
    parser.add_argument("--cfg", "-c", choices=["job", "hydra", "all"])
    parser.add_argument("--package", "-p")
    parser.add_argument("--config-dir", "-cd")
    parser.add_argument("--info", "-i", const="all", nargs="?")
    parser.error = refuse  # type: ignore[method-assign]
    flags: Namespace = parser.parse_intermixed_args(argv)  # a flag may stand among overrides
    modes = [flags.run, flags.multirun, flags.cfg, flags.info]
    if len([*filter(None, modes)]) > 1 or (flags.resolve and not flags.cfg):
        raise ConfigError("expected one of --run, --multirun, --info and --cfg, which alone takes --resolve")
    flags.words = [word for word in argv if word != OPEN_FLAG]
    for override in flags.overrides:
        flags.words.remove(override)
    return flags


def run_experiment(argv: list[str]) -> int:
    """Run one job or a sweep, or print its config where the flags ask for that; returns the exit status. As of every
    verb, `json=true` and `out=` say where the answer goes."""
    log_to_stderr()
    flags = _parse_flags(argv)
    own = [word for word in flags.overrides if word.partition("=")[0] in OWN]
    chosen = {key: convert_value(key, value, str if key == "out" else bool) for key, value in read_choices(own).items()}
    flags.overrides = [word for word in flags.overrides if word not in own]
    out = user_path(str(chosen["out"])) if "out" in chosen else None
    if out:
        check_place(out, "table", is_folder=True, replaces=bool(chosen.get("replace")))
    return deliver(
        "run", partial(_run, flags, has_document=bool(own)), out, as_json=bool(chosen.get("json")), shown=False
    )


def _run(flags: Namespace, *, has_document: bool) -> Document | int:
    """Run what the flags say; the exit status, or what was found too."""
    status = _run_application(flags)
    runs, folder = last_answer()  # left by the jobs, of which Hydra returns nothing
    if not has_document or not runs:
        return status
    files = (folder / name for name in (REPORT, "comparison.csv", "results.csv"))
    return replace(run_document(runs, [file for file in files if file.exists()]), status=status)


def _run_application(flags: Namespace) -> int:
    """Make the options known to Hydra, read the overrides, and show the config, or run one job or a sweep."""
    if flags.open:
        open_when_made()
    add_config_folder(flags.config_dir)
    compose.prepare()
    if not flags.shell_completion:
        flags.overrides = compose.read_overrides(flags.overrides)
        sys.argv[1:] = [*flags.words, *flags.overrides]  # Hydra reads them there
        for broken in registry().broken:
            show(f"warning: {line(broken)}", sys.stderr)
    if flags.hydra_help or flags.cfg or flags.shell_completion or flags.info:
        with environment_unresolved():
            _run_hydra(flags.overrides)
        return 0
    return _run_sweep(flags.overrides) if flags.multirun else _run_one(flags.overrides)


def _run_one(overrides: Sequence[str]) -> int:
    """Compose, check and run one job; returns the exit status."""
    composed, experiment = compose.compose_run(overrides)
    tracking = experiment.config.tracking
    folder, own_overrides = job_of(composed, tracking.folder, tracking.sweep or new_id())
    try:
        check_writable(folder)
    except DiskError as error:
        raise DiskError(f"{error} (tracking.folder=)") from error
    with settle_command() as ending:
        run_job(composed, experiment, folder, own_overrides)
    return ending.status


def _run_sweep(overrides: Sequence[str]) -> int:
    """Check a sweep's first job, and let Hydra run them all; returns the exit status."""
    place = user_path(compose.compose_sweep(overrides).tracking.folder).resolve() / "hydra"
    try:
        with settle_command() as ending:
            _run_hydra(overrides)
        return ending.status
    except BrokenPipeError:
        raise
    except OSError as error:  # jobs record their own: this is Hydra's folder for its log
        unnamed = is_disk_full(error) and not error.filename  # as when a file is closed
        raise DiskError(f"{disk_error_message(error, place if unnamed else None)} (tracking.folder=)") from error


def _run_hydra(overrides: Sequence[str]) -> None:
    """Hydra's application, which reads the words of the command line."""
    # Hydra would print a traceback of its own and leave; with this it lets its exceptions through to us.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    application: Callable[[], None] = hydra.main(
        version_base="1.3", config_path=str(config_folder()), config_name="ctxexp"
    )(task)
    try:
        application()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(compose.explain(error, overrides)) from error


class SweepCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Checks the sinks once, before any job, tells every job its sweep, under any launcher, and notes how each job
    begins and ends.

    The jobs get the sweep's id and the absolute folder as overrides, the one way that needs neither a shared
    environment nor a shared disk.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: object) -> None:
        if "Joblib" in str(OmegaConf.select(config, "hydra.launcher._target_")):
            watch_parent_in_workers()
        tracking = config.tracking
        folder = user_path(str(tracking.folder)).resolve()
        try:
            nodes = OmegaConf.to_container(config.sink, resolve=True)
            parts = components_of("sink", nodes, registry())
            sinks: dict[str, Sink] = {label: part.make() for label, part in parts.items()}
            check_sinks(sinks, folder)
        except CtxexpError as error:  # Hydra turns other exceptions of a callback into warnings and goes on
            raise SystemExit(f"error: {error}") from error
        sweep = tracking.get("sweep") or new_id()
        extra = [f"tracking.sweep={quote(sweep)}", f"tracking.folder={quote(str(folder))}"]
        with read_write(config), open_dict(config):
            config.hydra.overrides.hydra.extend(extra)
        begun = Sweep(sweep, folder, time.time(), tuple(typed_overrides(config)))
        open_sweep(begun, sinks, verbose=bool(config.get("verbose", False)))

    def on_job_start(self, config: DictConfig, *, task_function: TaskFunction, **kwargs: object) -> None:
        tracking = config.tracking
        if tracking.get("sweep"):
            folder, overrides = job_of(config, tracking.folder, tracking.sweep)
            try_state(folder, fresh=True, status="RUNNING", overrides=overrides, process=process_tags())

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: object) -> None:
        tracking = config.tracking
        if not tracking.get("sweep"):
            return
        folder, _ = job_of(config, tracking.folder, tracking.sweep)
        if read_state(folder).get("status") != "RUNNING":
            return  # the job said itself how it ended
        try:
            _ = job_return.return_value
        except Exception as error:
            try_state(folder, status="FAILED", error=error_message(error))
        else:
            why = last_failure() or "it ended before its run began; its output says why"
            try_state(folder, status="FAILED", error=why)
