"""The command: its first word is a verb that some plugin registered; without one it is an experiment.

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

from ctxexp.command.arguments import HELP, call, usage
from ctxexp.command.help import help_of
from ctxexp.command.names import registry
from ctxexp.errors import CtxexpError, line
from ctxexp.jobs.credentials import mask
from ctxexp.plugins import COMMAND
from ctxexp.progress import show, silence
from ctxexp.vectors.code_version import __version__


def main() -> None:
    """Entry point of `ctxexp` and `python -m ctxexp`."""
    gc.set_threshold(1_000_000)  # imports make 350,000 objects that stay: searching them took a twentieth of a start
    atexit.register(gc.freeze)  # what is left goes with the process: freeing it one by one took a seventh of a start
    status = command(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is written: Ctrl-C ends the exit, without a traceback
    sys.exit(status)


def command(args: Sequence[str]) -> int | str | None:
    """Carry out these arguments of the command line; returns the exit status."""
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
        status = leaving.code
    try:
        if sys.stdout is not None:  # it may be closed from the start
            sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
    return status


def _dispatch(args: list[str]) -> int:
    """Call the verb that comes first, else run an experiment; returns the exit status. A plugin's file may stand before
    its verb."""
    if "--version" in args:
        show(f"ctxexp {__version__}")
        return 0
    files = [word for word in args if word.startswith("plugins=") and (word is args[0] or HELP & set(args))]
    if files:
        from ctxexp.command.compose import take_plugins

        take_plugins(files)
    rest = args[1:] if files and args[0] in files else args
    verb = registry().offers.get((COMMAND, rest[0])) if rest else None
    if verb:
        return call(verb.name, verb.factory, rest[1:])
    return experiment(args)


def experiment(args: list[str]) -> int:
    """Run an experiment, one job or a sweep, or print its help; returns the exit status."""
    if HELP & set(args):
        return explain(args)
    from ctxexp.command.experiment import measure

    return measure(args)


def explain(args: list[str]) -> int:
    """Print the help on the arguments that are no flags, on everything if there are none; returns the exit status 0."""
    for broken in registry().broken:
        show(f"warning: {line(broken)}", sys.stderr)
    topics = [word for word in args if not word.startswith(("-", "plugins="))]
    verbs = [registry().offers[COMMAND, word] for word in topics if (COMMAND, word) in registry().offers]
    texts = [usage(verb.name, verb.factory) for verb in verbs]
    show("\n\n".join(texts or [help_of(topics)]))
    return 0
