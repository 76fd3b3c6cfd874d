"""The words of a verb, `ctxexp NAME word key=value`, as the arguments of its function; its docstring is its help.

A verb is a plain function with types and defaults: bare words are its positional arguments, `key=value` its keyword
ones. A docstring's lines `name: text` say what each is, its line
`example: ctxexp NAME ...` how it is typed. A function of `*args: str` alone gets them as typed. A path
called `out` is where the verb writes: it is tried before the verb begins.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, get_origin

from ctxexp.command.help import EXAMPLE, columns
from ctxexp.errors import ConfigError, DiskError, line, near, short, suggestions
from ctxexp.files.paths import user_path
from ctxexp.files.writing import check_writable
from ctxexp.plugins.types import parse_value, type_text, value_text
from ctxexp.progress import show

Verb = Callable[..., int | None]
HELP = {"-h", "--help"}
BARE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


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
