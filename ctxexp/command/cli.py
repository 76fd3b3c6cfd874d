"""The command: its first word is a verb that some plugin registered; without one it is an experiment.

Everything that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception
keeps its traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.
"""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from collections.abc import Sequence

from ctxexp.command.help import help_of
from ctxexp.command.names import registry
from ctxexp.command.words import HELP, call, usage
from ctxexp.errors import CtxexpError, line
from ctxexp.plugins import COMMAND
from ctxexp.progress import show, silence
from ctxexp.sinks.disk.credentials import mask
from ctxexp.vectors.code_version import __version__


def main() -> None:
    """Entry point of `ctxexp` and `python -m ctxexp`."""
    gc.set_threshold(1_000_000)  # imports make 350,000 objects that stay: searching them took a twentieth of a start
    atexit.register(gc.freeze)  # what is left goes with the process: freeing it one by one took a seventh of a start
    sys.exit(command(sys.argv[1:]))


def command(words: Sequence[str]) -> int | str | None:
    """The exit status of these words of the command line, after all that they ask for."""
    logging.raiseExceptions = False  # whatever the verb: a closed stderr is no reason for tracebacks on it
    status: int | str | None
    try:
        status = _dispatch(list(words))
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


def _dispatch(words: list[str]) -> int:
    """The exit status of the verb that comes first, or of an experiment; a plugin's file first may bring the verb."""
    if "--version" in words:
        show(f"ctxexp {__version__}")
        return 0
    files = [word for word in words if word.startswith("plugins=") and (word is words[0] or HELP & set(words))]
    if files:
        from ctxexp.command.compose import take_plugins

        take_plugins(files)
    rest = words[1:] if files and words[0] in files else words
    verb = registry().offers.get((COMMAND, rest[0])) if rest else None
    if verb:
        return call(verb.name, verb.factory, rest[1:])
    return experiment(words)


def experiment(words: list[str]) -> int:
    """The exit status of a run or a sweep, or of what its flags ask for instead."""
    if HELP & set(words):
        return explain(words)
    from ctxexp.command.experiment import measure

    return measure(words)


def explain(words: list[str]) -> int:
    """Print the help on the words that are no flags, on everything if there are none."""
    for broken in registry().broken:
        show(f"warning: {line(broken)}", sys.stderr)
    asked = [word for word in words if not word.startswith(("-", "plugins="))]
    verbs = [registry().offers[COMMAND, word] for word in asked if (COMMAND, word) in registry().offers]
    texts = [usage(verb.name, verb.factory) for verb in verbs]
    show("\n\n".join(texts or [help_of(asked)]))
    return 0
