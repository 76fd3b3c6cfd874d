"""An experiment: Hydra's application around a job, one run or a sweep of them, or its config shown."""

from __future__ import annotations

import io
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command import compose, jobs
from ctxexp.command.names import config_folder, look_in, registry
from ctxexp.command.overrides import plain
from ctxexp.command.secrets import hide_overrides
from ctxexp.errors import ConfigError, CtxexpError, DiskError, line
from ctxexp.files.writing import full, unwritten
from ctxexp.progress import show
from ctxexp.sinks.disk.credentials import mask


def _asked(argv: list[str]) -> Namespace:
    """What Hydra's parser makes of the words. Raises ConfigError for flags that it doesn't know or can't combine."""

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; ctxexp --help says what there is")

    parser = get_args_parser()
    parser.error = refuse
    asked: Namespace = parser.parse_args(argv)
    if asked.cfg and asked.multirun:
        raise ConfigError("--cfg shows the config of one run: leave -m out")
    if asked.resolve and not asked.cfg:
        raise ConfigError("--resolve goes with --cfg, as in: python -m ctxexp --cfg job --resolve")
    exclusive = {"--run": asked.run, "--multirun": asked.multirun, "--cfg": asked.cfg, "--info": asked.info}
    if len(given := [flag for flag, value in exclusive.items() if value]) > 1:
        raise ConfigError(f"{' and '.join(given)}: expected one of them")
    for flag, value in (("--config-name", asked.config_name), ("--config-path", asked.config_path)):
        if value:
            raise ConfigError(f"{flag}: ctxexp's config is its own; a plugin's config_folders adds options")
    if asked.experimental_rerun:
        raise ConfigError("--experimental-rerun runs a pickle; repeat the command with resume=true instead")
    return asked


def measure(argv: list[str]) -> int:
    """The exit status of a run or a sweep, or of what shows its config."""
    _log_to_stderr()
    asked = _asked(argv)
    if not asked.shell_completion:
        taken = hide_overrides(compose.take_plugins(plain(asked.overrides)))
        absolute = dict(zip(asked.overrides, taken, strict=True))
        sys.argv[1:] = [absolute.get(word, word) for word in argv]  # Hydra reads them there
        asked.overrides = taken
    look_in(asked.config_dir)
    compose.prepare()
    if not asked.shell_completion:
        for broken in registry().broken:
            show(f"warning: {line(broken)}", sys.stderr)
    only_shows = asked.hydra_help or asked.cfg or asked.shell_completion or asked.info
    if not only_shows:
        for problem in compose.check_command(asked.overrides, multirun=asked.multirun):
            jobs.tell(problem)  # at once; the job that it is of fails with it, is recorded, and a sweep's others go on
    # Hydra would print a traceback of its own and leave; with this it lets its exceptions through to us.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    application: Callable[[], None] = hydra.main(
        version_base="1.3", config_path=str(config_folder()), config_name="config"
    )(task)
    if only_shows:
        try:
            if asked.cfg:
                compose.keep_secrets(asked.overrides)
            with _masked_output() if asked.cfg or asked.info else nullcontext():
                application()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(compose.explain(error)) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CtxexpError(f"what is printed can't be written: {error.strerror}") from error
        return 0
    try:
        return jobs.conduct(application, multirun=asked.multirun)
    except (HydraException, OmegaConfBaseException) as error:
        raise CtxexpError(compose.explain(error)) from error
    except OSError as error:  # jobs record their own: this is Hydra's folder for its log
        if full(error):
            folder = [o.partition("=")[2].strip("'\"") for o in asked.overrides if o.startswith("tracking.folder=")]
            raise DiskError(unwritten(error, Path(*folder[-1:] or ["mlruns"]).absolute() / "hydra")) from error
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}; choose a writable tracking.folder="
        ) from error


@contextmanager
def _masked_output() -> Iterator[None]:
    """What is printed inside comes out at the end, without credentials."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        yield
    sys.stdout.write(mask(printed.getvalue()))
    sys.stdout.flush()


def task(cfg: DictConfig) -> float | None:
    """One job; its objective. Runs in a worker process under some launchers: importable, it prepares itself."""
    _log_to_stderr()
    return jobs.execute(cfg)


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
