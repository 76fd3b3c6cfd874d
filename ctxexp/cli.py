"""The command: experiments through Hydra, and the few commands beside them.

Everything that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception
keeps its traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

import hydra
from hydra._internal.utils import get_args_parser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from ctxexp import compose
from ctxexp.errors import ConfigError, CtxexpError


def main() -> None:
    """Entry point of `ctxexp` and `python -m ctxexp`."""
    try:
        status = _dispatch(sys.argv[1:])
    except CtxexpError as error:
        print(f"error: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    sys.stdout.flush()
    sys.exit(status)


def _dispatch(argv: list[str]) -> int:
    from ctxexp import commands

    if argv and argv[0] in commands.COMMANDS:
        return commands.COMMANDS[argv[0]](argv[1:])
    return _experiment(argv)


def _experiment(argv: list[str]) -> int:
    _log_to_stderr()
    asked = get_args_parser().parse_args(argv)
    if not asked.shell_completion:
        taken = compose.take_plugins(asked.overrides)
        absolute = dict(zip(asked.overrides, taken, strict=True))
        sys.argv[1:] = [absolute.get(word, word) for word in argv]  # Hydra reads them there
        asked.overrides = taken
    compose.prepare()
    if not asked.shell_completion:
        for broken in compose.registry().broken:
            print(f"warning: {' '.join(broken.split())}", file=sys.stderr)
    only_shows = asked.help or asked.hydra_help or asked.cfg or asked.shell_completion or asked.info
    if asked.cfg and asked.multirun:
        raise ConfigError("--cfg shows the config of one run: leave -m out")
    if not only_shows:
        compose.check_command(asked.overrides, multirun=asked.multirun)
    # Hydra would print a traceback of its own and leave; with this it lets its exceptions through to us.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    application: Callable[[], None] = hydra.main(
        version_base="1.3", config_path=str(compose.config_folder()), config_name="config"
    )(task)
    if only_shows:
        try:
            application()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(compose.explain(error)) from error
        finally:  # Hydra leaves by SystemExit
            if asked.help:
                print(f"\n== What each option is ==\n\n{compose.options()}")
        return 0
    from ctxexp import jobs

    interrupted = False
    try:
        application()
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted: the runs that were under way are KILLED", file=sys.stderr)
    except (HydraException, OmegaConfBaseException) as error:
        raise CtxexpError(compose.explain(error)) from error
    except OSError as error:  # jobs record their own: this is Hydra's folder for its log
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}; choose a writable tracking.folder="
        ) from error
    finally:
        status = jobs.close(multirun=asked.multirun)
    return 130 if interrupted else status


def task(cfg: DictConfig) -> None:
    """One job; runs in a worker process under some launchers, so it is importable and prepares itself."""
    from ctxexp import jobs

    _log_to_stderr()
    jobs.execute(cfg)


def _log_to_stderr() -> None:
    """ctxexp's own log lines, bare, on stderr; once a process."""
    log = logging.getLogger("ctxexp")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
