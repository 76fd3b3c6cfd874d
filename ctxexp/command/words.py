"""The words of a verb, `ctxexp NAME word key=value`, as the arguments of its function; its docstring is its help.

A verb is a plain function with types and defaults: bare words are its positional arguments, `key=value` its keyword
ones. A docstring's lines `name: text` say what each is. A function of `*words: str` alone gets the words as typed.
"""

from __future__ import annotations

import inspect
import re
import shlex
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, get_origin

from ctxexp.command.help import columns
from ctxexp.command.types import read, type_text, value_text
from ctxexp.errors import ConfigError, near, short
from ctxexp.files.paths import user_path
from ctxexp.progress import show

Verb = Callable[..., int | None]
HELP = {"-h", "--help"}
BARE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


def call(name: str, verb: Verb, words: Sequence[str]) -> int:
    """The verb's exit status (None is 0); with `--help` its help is printed. Raises ConfigError for a word that it
    doesn't take, and for one that is missing."""
    known = parameters(verb)
    if len(known) == 1 and known[0].kind is known[0].VAR_POSITIONAL and known[0].annotation in (str, Any):
        return verb(*words) or 0
    if HELP & set(words):
        show(usage(name, verb))
        return 0
    bare, given = arguments_of(name, known, words)
    needed = [p for p in known[len(bare) :] if p.default is p.empty and p.kind in BARE[:2]]
    needed += [p for p in known if p.default is p.empty and p.kind is p.KEYWORD_ONLY and p.name not in given]
    for lacking in needed:
        key = lacking.name.upper() if lacking.kind in BARE else f"{lacking.name}=..."
        about = notes(verb)[1].get(lacking.name, type_text(lacking.annotation))
        raise ConfigError(f"ctxexp {name} needs {key}: {about}")
    return verb(*bare, **given) or 0


def parameters(verb: Verb) -> list[Parameter]:
    """The function's parameters, their annotations as types."""
    try:
        hints = typing.get_type_hints(verb, include_extras=True)
    except Exception:  # a name that is imported for type checkers only, or no type at all
        hints = {}
    return [p.replace(annotation=hints.get(p.name, Any)) for p in inspect.signature(verb).parameters.values()]


def arguments_of(name: str, known: Sequence[Parameter], words: Sequence[str]) -> tuple[list[object], dict[str, object]]:
    """Positional and keyword arguments that the words give."""
    keys = {p.name: p.annotation for p in known if p.kind is p.KEYWORD_ONLY}
    other = next((p.annotation for p in known if p.kind is p.VAR_KEYWORD), None)
    places = [p for p in known if p.kind in BARE]
    bare: list[object] = []
    given: dict[str, object] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if sign and key.isidentifier():
            if key not in keys and other is None:
                raise ConfigError(f"ctxexp {name} has no argument {key!r}{near(key, keys)}")
            given[key] = _read(key, text, keys.get(key, other))
            continue
        open_places = places[len(bare) :] or [p for p in places[-1:] if p.kind is p.VAR_POSITIONAL]
        if word.startswith("-") or not open_places:
            raise ConfigError(f"{short(word)}: expected key=value; ctxexp {name} --help says which")
        bare.append(_read(open_places[0].name, word, open_places[0].annotation))
    return bare, given


def model_words(text: str) -> tuple[str, list[str]]:
    """A model's name and the words of a command line behind it, `minilm dtype=bfloat16`, for verbs that take models.
    Raises ConfigError without a name."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{text!r}: {error}") from error
    named = [word.removeprefix("model=") for word in words if "=" not in word or word.startswith("model=")]
    if len(named) != 1:
        raise ConfigError(f'{text!r}: expected a run\'s folder, or one model, as in "minilm dtype=bfloat16"')
    return named[0], [word for word in words if "=" in word and not word.startswith("model=")]


def _read(key: str, text: str, expected: object) -> object:
    value = read(key, text, expected)
    return user_path(text) if isinstance(value, Path) else value


def notes(verb: Verb) -> tuple[str, dict[str, str]]:
    """What the docstring says of the verb, in paragraphs, and of each of its arguments, in a line."""
    doc, names = inspect.getdoc(verb) or "", "|".join(inspect.signature(verb).parameters)
    about, *said = re.split(rf"^({names}): ", doc, flags=re.MULTILINE) if names else [doc]
    paragraphs = [" ".join(paragraph.split()) for paragraph in about.split("\n\n")]
    each = {key: " ".join(text.split()) for key, text in zip(said[::2], said[1::2], strict=True)}
    return "\n\n".join(filter(None, paragraphs)), each


def usage(name: str, verb: Verb) -> str:
    """The verb's help: how it is typed, what it does, and an argument a line with its default."""
    known, (about, said) = parameters(verb), notes(verb)
    words, rows = ["usage: ctxexp", name], []
    for p in known:
        if p.kind is p.VAR_POSITIONAL:
            words.append(f"[{p.name.upper()} ...]")
        elif p.kind in BARE:
            words.append(p.name.upper() if p.default is p.empty else f"[{p.name.upper()}]")
        key = p.name.upper() if p.kind in BARE else p.name
        default = "" if p.default is p.empty else f"={value_text(p.default)}"
        choices = f" ({type_text(p.annotation)})" if get_origin(p.annotation) is Literal else ""
        rows.append((key + default, said.get(p.name, type_text(p.annotation)) + choices))
    return f"{' '.join(words)} [key=value ...]\n\n{about}\n\n{columns(rows)}"
