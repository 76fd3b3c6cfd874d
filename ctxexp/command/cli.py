"""The command line: `ctxexp VERB ...` calls a verb that ctxexp or a plugin registered, anything else is an
experiment.

Everything that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception
keeps its traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.
"""

from __future__ import annotations

import atexit
import gc
import logging
import signal
import sys
from collections.abc import Sequence

from ctxexp.command.help import help_of
from ctxexp.command.verb import HELP, Verb
from ctxexp.errors import CtxexpError, line
from ctxexp.files.code_version import __version__, skip_damaged
from ctxexp.files.credentials import mask, refuse_clear
from ctxexp.plugins import COMMAND
from ctxexp.plugins.registry import registry
from ctxexp.progress import show, silence


def main() -> None:
    """Entry point of `ctxexp` and `python -m ctxexp`."""
    status: int | str | None
    try:
        gc.set_threshold(1_000_000)  # imports make 350,000 objects that stay: searching them took 5 % of a start
        atexit.register(gc.freeze)  # what is left goes with the process: freeing it one by one took 14 % of a start
        skip_damaged()
        status = run_command_line(sys.argv[1:])
    except KeyboardInterrupt:  # before that could answer it
        show("interrupted", sys.stderr)
        status = 130
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is written: Ctrl-C ends the exit, without a traceback
    sys.exit(status)


def run_command_line(args: Sequence[str]) -> int | str | None:
    """Run the command that these arguments make, without the program's name; returns the exit status."""
    logging.raiseExceptions = False  # whatever the verb: a closed stderr is no reason for tracebacks on it
    status: int | str | None
    try:
        status = _dispatch(list(args))
    except CtxexpError as error:
        show(f"error: {mask(str(error))}", sys.stderr)
        status = 2
    except KeyboardInterrupt:
        show("interrupted", sys.stderr)
        status = 130
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        silence(sys.stdout)
        status = 0
    except SystemExit as leaving:  # Hydra's way to end
        status = mask(leaving.code) if isinstance(leaving.code, str) else leaving.code
    try:
        if sys.stdout is not None:  # it may be closed from the start
            sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
    return status


def _dispatch(args: list[str]) -> int:
    """Call the verb that comes first, else run an experiment; returns the exit status. A verb of a plugin's file may
    stand after its `plugins=` argument."""
    if "--version" in args:
        show(f"ctxexp {__version__}")
        return 0
    plugin_args = [word for word in args if word.startswith("plugins=") and (word is args[0] or HELP & set(args))]
    if plugin_args:
        from ctxexp.command.config import refuse_typed
        from ctxexp.command.overrides import take_plugins

        take_plugins(plugin_args)
        refuse_typed(args)
    refuse_clear(args)
    rest = args[1:] if plugin_args and args[0] in plugin_args else args
    verb = registry().offers.get((COMMAND, rest[0])) if rest else None
    if verb:
        return Verb(verb.name, verb.factory)(rest[1:])
    return run_or_help(args)


def run_or_help(args: list[str]) -> int:
    """Run an experiment, one job or a sweep, or print its help; returns the exit status."""
    if HELP & set(args):
        return print_help(args)
    from ctxexp.command.experiment import run_experiment

    return run_experiment(args)


def print_help(args: list[str]) -> int:
    """Print the help on each argument that isn't a flag, or the general help without one; returns exit status 0."""
    for broken in registry().broken:
        show(f"warning: {line(broken)}", sys.stderr)
    topics = [word for word in args if not word.startswith(("-", "plugins="))]
    verbs = [registry().offers[COMMAND, word] for word in topics if (COMMAND, word) in registry().offers]
    texts = [Verb(verb.name, verb.factory).usage() for verb in verbs]
    show("\n\n".join(texts or [help_of(topics)]))
    return 0
