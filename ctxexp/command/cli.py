"""The command line: `ctxexp VERB ...` calls a verb that ctxexp or a plugin registered, anything else is an
experiment.

Everything that a user can get wrong ends here as one line, `error: ...`, and exit status 2; an unexpected exception
keeps its traceback. A job's failure is recorded and the sweep goes on; the exit status is then 1.

A verb, `ctxexp NAME word key=value`, is a function with typed parameters, whose docstring is its help. Bare words are
its positional arguments, `key=value` its keyword ones. A docstring's lines `name: text` say what each is, its line
`example: ctxexp NAME ...` how it is typed. A function of `*args: str` alone gets them as typed. A path called `out` is
where the verb writes, a folder if its default is one: it is tried before the verb begins. A file that is there is
kept unless `replace=true`, and so is a verb's earlier answer in a folder: beside its default folder a new one gets a
number. A function that returns a `Document` leaves to this frame what is printed and written, and has `json=true` too.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import json
import logging
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_origin

from ctxexp.command.help import EXAMPLE, columns, help_of
from ctxexp.errors import ConfigError, CtxexpError, DiskError, line, near, short, suggestions
from ctxexp.files import absent_folder, check_absent, check_writable, user_path
from ctxexp.files.code_version import __version__, skip_damaged
from ctxexp.files.credentials import mask
from ctxexp.host import open_streams
from ctxexp.plugins import COMMAND
from ctxexp.plugins.arguments import parse_value, type_hints, type_text, value_text
from ctxexp.plugins.registry import refuse_typed, registry
from ctxexp.progress import show, silence, terminal_width

if TYPE_CHECKING:
    from ctxexp.report.terminal import Document

HELP = {"-h", "--help"}
RUN = "run"  # the verb that may be left out
BARE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
FLAGS = {"json": "print one JSON document, for scripts", "replace": "true: write over what is there"}
JSON, REPLACE = (Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=bool) for name in FLAGS)


class Verb:
    """A function as a verb: its words are read as the types of its parameters, and what it returns is shown.

    Args:
        name: The word behind `ctxexp`.
        function: Of typed parameters, described in its docstring. It returns a `Document`, an exit status, or None,
            which counts as 0.

    Example:
        >>> from ctxexp.report import Document
        >>> def count(word: str, *, of: str = "e") -> Document:
        ...     '''Count a letter.
        ...
        ...     word: where
        ...     of: the letter
        ...     '''
        ...     return Document(sentences=[f"{word.count(of)} of {of!r} in {word!r}"])
        >>> Verb("count", count)(["sentence", "of=n"])
        2 of 'n' in 'sentence'
        0
        >>> Verb("count", count)(["sentence", "json=true"])  # doctest: +ELLIPSIS
        {"verb": "count", "status": 0, "sentences": ["3 of 'e' in 'sentence'"], "tables": {}, "files": []}
        0
    """

    def __init__(self, name: str, function: Callable[..., Document | int | None]) -> None:
        self.name, self.function = name, function

    def __call__(self, args: Sequence[str]) -> int:
        """Call it with these words of the command line; returns its exit status.

        With `--help` its help is printed instead. Raises ConfigError for an argument that it doesn't take, and for one
        that is missing; DiskError where `out` can't be written.
        """
        params = self.parameters
        if len(params) == 1 and params[0].kind is params[0].VAR_POSITIONAL and params[0].annotation in (str, Any):
            return int(self.function(*args) or 0)  # type: ignore[arg-type]  # such a function returns no document
        if HELP & set(args):
            show(self.usage())
            return 0
        from ctxexp.report.terminal import Document  # with what is shown: not for the general help

        bare, keywords = self.arguments(args)
        as_json = bool(keywords.pop("json", False)) if self.makes_document else False
        replace = bool(keywords.get("replace"))
        if any(p is REPLACE for p in params):  # the function has none of its own
            keywords.pop("replace", None)
        place = next((p.default for p in params if p.name == "out"), None)
        out = keywords.get("out", place)
        is_folder = isinstance(place, Path) and not place.suffix
        try:
            if isinstance(out, Path):  # what takes minutes to compute shall not be lost for want of a place
                check_writable(out)
                if is_folder and out.suffix != ".csv" and out.is_file():
                    raise DiskError(f"cannot write {out}: a file where a folder is to be; choose another place")
                if "out" not in keywords and is_folder and not replace:
                    out = keywords["out"] = absent_folder(out, self.name)
                elif not replace:
                    check_absent(out, self.name)
            with redirect_stdout(sys.stderr if as_json else sys.stdout):
                made = self.function(*bare, **keywords)
                files = made.save(out if isinstance(out, Path) else None) if isinstance(made, Document) else []
        except (DiskError, OSError) as error:
            if not isinstance(out, Path) or str(out) not in str(error):
                raise
            raise DiskError(f"{error} (out=)") from error
        if not isinstance(made, Document):
            return made or 0
        if as_json:
            is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
            document = {"verb": self.name, **made.as_dict(files)}
            print(json.dumps(document, ensure_ascii=not is_unicode, default=str))
        else:
            show(made.text(terminal_width(), files))
        return made.status

    @property
    def makes_document(self) -> bool:
        """Whether the function says that it returns a Document."""
        from ctxexp.report.terminal import Document

        return type_hints(self.function).get("return") is Document

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The function's parameters, their annotations as types, `replace` where it writes `out`, and `json` where it
        makes a document."""
        signature, hints = inspect.signature(self.function).parameters.values(), type_hints(self.function)
        params = [p.replace(annotation=hints.get(p.name, Any)) for p in signature]
        if "out" in (names := {p.name for p in params}) and "replace" not in names:
            params.append(REPLACE)
        return [*params, JSON] if self.makes_document else params

    def arguments(self, args: Sequence[str]) -> tuple[list[object], dict[str, object]]:
        """The positional and the keyword arguments in `args`, read as the types of the parameters."""
        name, params = self.name, self.parameters
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
        unset = [p for p in params[len(bare) :] if p.default is p.empty and p.kind in BARE[:2]]
        unset += [p for p in params if p.default is p.empty and p.kind is p.KEYWORD_ONLY and p.name not in keywords]
        for param in unset:
            key = param.name.upper() if param.kind in BARE else f"{param.name}=..."
            hint = self.notes[1].get(param.name, type_text(param.annotation))
            raise ConfigError(f"ctxexp {name} needs {key}: {hint}")
        return bare, keywords

    @cached_property
    def notes(self) -> tuple[str, dict[str, str]]:
        """From its docstring: the description, in paragraphs, and a line on each of its arguments and an example."""
        doc, names = inspect.getdoc(self.function) or "", "|".join([*(p.name for p in self.parameters), EXAMPLE])
        about, *sections = re.split(rf"^({names}): ", doc, flags=re.MULTILINE)
        paragraphs = [" ".join(paragraph.split()) for paragraph in about.split("\n\n")]
        each = {key: " ".join(text.split()) for key, text in zip(sections[::2], sections[1::2], strict=True)}
        return "\n\n".join(filter(None, paragraphs)), FLAGS | each

    def usage(self) -> str:
        """The verb's help: how it is typed, what it does, and an argument a line with its default."""
        params, (about, hints) = self.parameters, self.notes
        usage, rows = ["usage: ctxexp", self.name], []
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


def _read(key: str, text: str, expected: object) -> object:
    value = parse_value(key, text, expected)
    return user_path(text) if isinstance(value, Path) else value


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
        skip_damaged()
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
            print(json.dumps({"verb": args[0], "status": status, "sentences": [said], "tables": {}, "files": []}))
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
    refuse_typed(args)
    rest = args[1:] if plugin_args and args[0] in plugin_args else args
    offer = registry().offers.get((COMMAND, rest[0])) if rest else None
    if offer is None:
        return None, args
    if offer.name == RUN:
        args.remove(RUN)
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
