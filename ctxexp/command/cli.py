"""The command line: `ctxexp VERB ...` calls a verb that ctxexp or a plugin registered, anything else is an
experiment.

The words after a verb, `word key=value`, are the arguments of its function; its docstring is its help. Everything
that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception keeps its
traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import logging
import re
import signal
import sys
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, get_origin

from ctxexp.command.help import EXAMPLE, columns, help_of
from ctxexp.errors import ConfigError, CtxexpError, DiskError, line, near, short, suggestions
from ctxexp.files.code_version import __version__, skip_damaged
from ctxexp.files.credentials import mask, refuse_clear
from ctxexp.files.writing import check_writable, user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.offers import parse_value, type_text, value_text
from ctxexp.plugins.registry import registry
from ctxexp.progress import show, silence

Verb = Callable[..., int | None]
HELP = {"-h", "--help"}
BARE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


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
        return call(verb.name, verb.factory, rest[1:])
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
    texts = [usage(verb.name, verb.factory) for verb in verbs]
    show("\n\n".join(texts or [help_of(topics)]))
    return 0


def call(name: str, verb: Verb, args: Sequence[str]) -> int:
    """Call the verb with these arguments of the command line; returns its exit status (None counts as 0).

    With `--help` its help is printed instead. Raises ConfigError for an argument that it doesn't take, and for one that
    is missing; DiskError where `out` can't be written.
    """
    params = parameters(verb)
    if len(params) == 1 and params[0].kind is params[0].VAR_POSITIONAL and params[0].annotation in (str, Any):
        return verb(*args) or 0
    if HELP & set(args):
        show(usage(name, verb))
        return 0
    bare, keywords = arguments_of(name, params, args)
    unset = [p for p in params[len(bare) :] if p.default is p.empty and p.kind in BARE[:2]]
    unset += [p for p in params if p.default is p.empty and p.kind is p.KEYWORD_ONLY and p.name not in keywords]
    for param in unset:
        key = param.name.upper() if param.kind in BARE else f"{param.name}=..."
        hint = notes(verb)[1].get(param.name, type_text(param.annotation))
        raise ConfigError(f"ctxexp {name} needs {key}: {hint}")
    out = keywords.get("out", next((p.default for p in params if p.name == "out"), None))
    try:
        if isinstance(out, Path):  # what takes minutes to compute shall not be lost for want of a place
            check_writable(out)
        return verb(*bare, **keywords) or 0
    except (DiskError, OSError) as error:
        if not isinstance(out, Path) or str(out) not in str(error):
            raise
        raise DiskError(f"{error} (out=)") from error


def parameters(verb: Verb) -> list[Parameter]:
    """The function's parameters, their annotations as types."""
    try:
        hints = typing.get_type_hints(verb, include_extras=True)
    except Exception:  # a name that is imported for type checkers only, or no type at all
        hints = {}
    return [p.replace(annotation=hints.get(p.name, Any)) for p in inspect.signature(verb).parameters.values()]


def arguments_of(name: str, params: Sequence[Parameter], args: Sequence[str]) -> tuple[list[object], dict[str, object]]:
    """The positional and the keyword arguments in `args`, read as the types of the parameters."""
    keys = {p.name: p.annotation for p in params if p.kind is p.KEYWORD_ONLY}
    other = next((p.annotation for p in params if p.kind is p.VAR_KEYWORD), None)
    places = [p for p in params if p.kind in BARE]
    bare: list[object] = []
    keywords: dict[str, object] = {}
    for word in args:
        key, sign, text = word.partition("=")
        if sign and key.isidentifier():
            if key == "plugins" and key not in keys and other is None:
                raise ConfigError(f"plugins= stands before the verb: ctxexp {line(word, 80)} {name}")
            if key not in keys and other is None:
                is_model_s = "options" in keys and not suggestions(key, keys)
                hint = f'; a model\'s own stand behind it: "MODEL {line(word, 80)}"' if is_model_s else ""
                raise ConfigError(f"ctxexp {name} has no argument {key!r}{near(key, keys)}{hint}")
            keywords[key] = _read(key, text, keys.get(key, other))
            continue
        open_places = places[len(bare) :] or [p for p in places[-1:] if p.kind is p.VAR_POSITIONAL]
        if word.startswith("-") or not open_places:
            hint = f"; is it text={word}?" if "text" in keys else ""
            raise ConfigError(f"{short(word)}: expected key=value{hint}; ctxexp {name} --help says which")
        bare.append(_read(open_places[0].name, word, open_places[0].annotation))
    return bare, keywords


def _read(key: str, text: str, expected: object) -> object:
    value = parse_value(key, text, expected)
    return user_path(text) if isinstance(value, Path) else value


def notes(verb: Verb) -> tuple[str, dict[str, str]]:
    """The verb's description, in paragraphs, and a line on each of its arguments and an example, from its docstring."""
    doc, names = inspect.getdoc(verb) or "", "|".join([*inspect.signature(verb).parameters, EXAMPLE])
    about, *sections = re.split(rf"^({names}): ", doc, flags=re.MULTILINE)
    paragraphs = [" ".join(paragraph.split()) for paragraph in about.split("\n\n")]
    each = {key: " ".join(text.split()) for key, text in zip(sections[::2], sections[1::2], strict=True)}
    return "\n\n".join(filter(None, paragraphs)), each


def usage(name: str, verb: Verb) -> str:
    """The verb's help: how it is typed, what it does, and an argument a line with its default."""
    params, (about, hints) = parameters(verb), notes(verb)
    usage, rows = ["usage: ctxexp", name], []
    for p in params:
        if p.kind is p.VAR_POSITIONAL:
            usage.append(f"[{p.name.upper()} ...]")
        elif p.kind in BARE:
            usage.append(p.name.upper() if p.default is p.empty else f"[{p.name.upper()}]")
        key = p.name.upper() if p.kind in BARE else p.name
        default = "" if p.default is p.empty else f"={value_text(p.default)}"
        choices = f" ({type_text(p.annotation)})" if get_origin(p.annotation) is Literal else ""
        rows.append((key + default, hints.get(p.name, type_text(p.annotation)) + choices))
    example = f"\n\nexample: {hints[EXAMPLE]}" if EXAMPLE in hints else ""
    return f"{' '.join(usage)} [key=value ...]{example}\n\n{about}\n\n{columns(rows)}"
