"""An experiment: Hydra's application around a job, one run or a sweep of them, or its config shown."""

from __future__ import annotations

import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, cast

import hydra
import yaml
from hydra._internal.utils import get_args_parser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command import compose
from ctxexp.command.build import Built
from ctxexp.command.build.labels import plugins_used
from ctxexp.command.callback import current_job
from ctxexp.command.config import RESULT_NEUTRAL_KEYS, Config, parse_config, plain_values
from ctxexp.command.names import GROUPS, LISTS, add_config_folder, config_folder, load_plugin_files, registry
from ctxexp.command.options import MEANT
from ctxexp.command.secrets import as_written, environment_texts, environment_unresolved, refuse_written
from ctxexp.errors import ConfigError, CtxexpError, DiskError, line
from ctxexp.files.distributions import skip_damaged
from ctxexp.files.writing import disk_error_message, is_disk_full
from ctxexp.jobs.execute import JobSpec, execute, print_error_once
from ctxexp.jobs.state import new_id
from ctxexp.jobs.sweep import run_application
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.progress import Progress, show
from ctxexp.report.page import FLAG, open_when_made


def _parse_flags(argv: list[str]) -> Namespace:
    """The flags and overrides in the words, by Hydra's parser. Raises ConfigError for flags that it doesn't know or
    that can't be combined."""

    def refuse(message: str) -> NoReturn:
        for word in argv:  # it quotes whatever follows an unknown flag; which values are secret isn't known yet
            key, equals, _ = word.partition("=")
            if equals:
                message = message.replace(word, f"{key}=...").replace(repr(word)[1:-1], f"{key}=...")
        names = [re.sub("^-+|=.*", "", word).replace("-", "_") for word in argv if word.startswith("-")]
        equivalents = [MEANT.get(name) or f"{name}=NAME" for name in names if name in MEANT or name in GROUPS]
        hint = f"; did you mean {equivalents[0]}?" if equivalents else "; what is chosen is written key=value"
        raise ConfigError(f"{message}; ctxexp --help says what there is{hint}")

    parser = get_args_parser()
    parser.add_argument(FLAG, action="store_true")
    parser.error = refuse
    flags: Namespace = parser.parse_intermixed_args(argv)  # a flag may stand among overrides
    if flags.cfg and flags.multirun:
        raise ConfigError("--cfg shows the config of one run: leave -m out")
    if flags.resolve and not flags.cfg:
        raise ConfigError("--resolve goes with --cfg, as in: python -m ctxexp --cfg job --resolve")
    exclusive = {"--run": flags.run, "--multirun": flags.multirun, "--cfg": flags.cfg, "--info": flags.info}
    if len(modes := [flag for flag, value in exclusive.items() if value]) > 1:
        raise ConfigError(f"{' and '.join(modes)}: expected one of them")
    for flag, value in (("--config-name", flags.config_name), ("--config-path", flags.config_path)):
        if value:
            raise ConfigError(f"{flag}: ctxexp's config is its own; a plugin's ctxexp_conf adds options")
    if flags.experimental_rerun:
        raise ConfigError("--experimental-rerun runs a pickle; repeat the command with resume=true instead")
    return flags


def _flag_words(argv: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """The words that are flags or their values: Hydra's own parser takes no flag between two overrides."""
    words = list(argv)
    for override in overrides:
        words.remove(override)
    return words


def run_experiment(argv: list[str]) -> int:
    """Run one job or a sweep, or print its config where the flags ask for that; returns the exit status."""
    _log_to_stderr()
    flags = _parse_flags(argv)
    if flags.open:
        open_when_made()
        argv = [word for word in argv if word != FLAG]  # Hydra doesn't know it
    add_config_folder(flags.config_dir)
    if flags.shell_completion:
        compose.prepare()
    else:
        overrides = compose.read_overrides(flags.overrides)
        sys.argv[1:] = [*_flag_words(argv, flags.overrides), *overrides]  # Hydra reads them there
        flags.overrides = overrides
        for broken in registry().broken:
            show(f"warning: {line(broken)}", sys.stderr)
    only_shows = flags.hydra_help or flags.cfg or flags.shell_completion or flags.info
    if not only_shows:
        for problem in compose.check_command(flags.overrides, multirun=flags.multirun):
            print_error_once(
                problem
            )  # at once; the job that it is of fails with it, is recorded, and a sweep's others go on
    # Hydra would print a traceback of its own and leave; with this it lets its exceptions through to us.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    application: Callable[[], None] = hydra.main(
        version_base="1.3", config_path=str(config_folder()), config_name="ctxexp"
    )(task)
    if only_shows:
        try:
            with environment_unresolved():
                application()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(compose.explain(error)) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CtxexpError(f"what is printed can't be written: {error.strerror}") from error
        return 0
    try:
        return run_application(application, multirun=flags.multirun)
    except (HydraException, OmegaConfBaseException) as error:
        raise CtxexpError(compose.explain(error)) from error
    except OSError as error:  # jobs record their own: this is Hydra's folder for its log
        if is_disk_full(error):
            folder = [o.partition("=")[2].strip("'\"") for o in flags.overrides if o.startswith("tracking.folder=")]
            raise DiskError(disk_error_message(error, Path(*folder[-1:] or ["mlruns"]).absolute() / "hydra")) from error
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}; choose a writable tracking.folder="
        ) from error


def task(cfg: DictConfig) -> float | None:
    """Execute one job; returns its objective. Some launchers call it in a worker process, so it is importable and
    registers the options itself."""
    skip_damaged()
    _log_to_stderr()
    return execute(partial(_job_spec, cfg))


def _job_spec(cfg: DictConfig) -> JobSpec:
    """The job of a composed config. Raises CtxexpError where no run of it can begin."""
    refuse_written(cfg)
    values, document = plain_values(cfg), as_written(cfg)
    load_plugin_files(values.get("plugins"))
    compose.prepare()
    config = parse_config(values, registry())
    folder, overrides = current_job(config.tracking.folder, config.tracking.sweep or new_id())
    decisive = _own({key: value for key, value in document.items() if key not in RESULT_NEUTRAL_KEYS}, cfg)
    versions: dict[str, str] = {}
    for one in plugins_used(config):  # distributions may call their plugins by one name
        versions[one.plugin] = ", ".join(filter(None, [versions.get(one.plugin), f"{one.distribution} {one.version}"]))
    return JobSpec(
        built=Built(config, Progress()),
        folder=folder,
        overrides=overrides,
        params={**_chosen(decisive, config), "plugins": versions},
        text=yaml.safe_dump(document, sort_keys=False, allow_unicode=True),
        environment=environment_texts(cfg),
    )


def _chosen(document: Mapping[str, object], config: Config) -> dict[str, object]:
    """The values less the options of parts that stand at their factory's default."""
    chosen = dict(document)
    for kind in {*CONFIG_KINDS} & {*document}:
        parts = getattr(config, kind)
        every = parts if kind in LISTS else {kind: parts}
        nodes = cast("dict[str, dict[str, object]]", document[kind] if kind in LISTS else document)
        kept = {}
        for label, part in every.items():
            defaults = {name: default for name, (_, default) in (part.signature() or {}).items()}
            kept[label] = {
                k: v for k, v in nodes[label].items() if k == "name" or k not in defaults or defaults[k] != v
            }
        chosen[kind] = kept if kind in LISTS else kept[kind]
    return chosen


def _own(document: Mapping[str, object], cfg: DictConfig) -> dict[str, object]:
    """The values that aren't taken from another key."""
    own: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            own[key] = _own(value, cfg[key])
        elif not OmegaConf.is_interpolation(cfg, key) or "${oc.env" in str(value):
            own[key] = value
    return own


def _log_to_stderr() -> None:
    """ctxexp's own log lines, bare, on stderr; once a process."""
    logging.raiseExceptions = False  # nor in a worker
    log = logging.getLogger("ctxexp")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
