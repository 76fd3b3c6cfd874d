"""The command line: `ctxexp VERB ...` calls a verb that ctxexp or a plugin registered (`Verb`), anything else is an
experiment.

Everything that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception
keeps its traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.
"""

from __future__ import annotations

import atexit
import gc
import json
import logging
import signal
import sys
from collections.abc import Sequence

from ctxexp.command.help import HELP, help_of
from ctxexp.command.verb import Verb
from ctxexp.errors import ConfigError, CtxexpError, line
from ctxexp.files.code_version import __version__
from ctxexp.files.credentials import mask
from ctxexp.host import open_streams
from ctxexp.plugins import COMMAND
from ctxexp.plugins.registry import refuse_typed_secrets, registry
from ctxexp.progress import show, silence

RUN_VERB = "run"  # the verb that may be left out


def _keep_objects() -> None:
    """Let what is left go with the process: freeing it one by one took 14 % of a start. Not what came with torch: its
    triton counts what isn't freed, and prints hundreds of names."""
    if "torch" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Entry point of `ctxexp` and `python -m ctxexp`."""
    status: int | str | None
    open_streams()
    try:
        gc.set_threshold(1_000_000)  # imports make 350,000 objects that stay: searching them took 5 % of a start
        atexit.register(_keep_objects)
        status = run_command_line(sys.argv[1:])
    except KeyboardInterrupt:  # before that could answer it
        show("interrupted", sys.stderr)
        status = 130
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is written: Ctrl-C ends the exit, without a traceback
    sys.exit(status)


def run_command_line(args: Sequence[str]) -> int | str | None:
    """Run the command that these arguments make, without the program's name: a verb, or an experiment, one job or a
    sweep; returns the exit status."""
    logging.raiseExceptions = False  # whatever the verb: a closed stderr is no reason for tracebacks on it
    status: int | str | None = 0
    try:
        first = {"help": "--help", "version": "--version"}  # the words that are flags
        args = [first.get(word, word) if i == 0 else word for i, word in enumerate(args)]
        if "" in args:
            raise ConfigError("an argument is empty: has a variable of the shell no value?")
        verb, words = _find_verb(list(args))
        if "--version" in args:
            show(f"ctxexp {__version__}")
        elif verb is not None:
            status = verb(words)
        elif HELP & set(words):
            print_help(words)
        else:
            from ctxexp.command.application import run_experiment  # Hydra's

            status = run_experiment(words)
    except CtxexpError as error:
        said, status = f"error: {mask(str(error))}", 2
        show(said, sys.stderr)
        if "json=true" in args:
            name = args[0] if (COMMAND, args[0]) in registry().offers else RUN_VERB
            print(json.dumps({"verb": name, "status": status, "sentences": [said], "tables": {}, "files": []}))
    except KeyboardInterrupt:
        show("interrupted", sys.stderr)
        status = 130
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        silence(sys.stdout)
    except SystemExit as leaving:  # Hydra's way to end
        status = mask(leaving.code) if isinstance(leaving.code, str) else leaving.code
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
    return status


def _find_verb(args: list[str]) -> tuple[Verb | None, list[str]]:
    """The verb that comes first, and the words behind it; None, and its words, for an experiment, whose verb `run` may
    be left out. A verb of a plugin's file may stand after its `plugins=` argument."""
    plugin_args = [word for word in args if word.startswith("plugins=") and (word is args[0] or HELP & set(args))]
    if plugin_args:
        from ctxexp.command.overrides import take_plugins  # OmegaConf's

        take_plugins(plugin_args)
    refuse_typed_secrets(args)
    rest = args[1:] if plugin_args and args[0] in plugin_args else args
    offer = registry().offers.get((COMMAND, rest[0])) if rest else None
    if offer is None:
        return None, args
    if offer.name == RUN_VERB:
        args.remove(RUN_VERB)
        return None, args
    return Verb(offer.name, offer.factory), rest[1:]


def print_help(args: list[str]) -> None:
    """Print the help on each argument that isn't a flag, or the general help without one."""
    for broken in registry().broken:
        show(f"warning: {line(broken)}", sys.stderr)
    topics = [word for word in args if not word.startswith(("-", "plugins="))]
    verbs = [registry().offers[COMMAND, word] for word in topics if (COMMAND, word) in registry().offers]
    texts = [Verb(verb.name, verb.factory).usage() for verb in verbs]
    show("\n\n".join(texts or [help_of(topics)]))
