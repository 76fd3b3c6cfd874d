"""A verb of the command line: a function with typed parameters, called by words or from Python.

A verb, `ctxexp NAME word key=value`, has its docstring as its help. Bare words are its positional arguments,
`key=value` its keyword ones. A docstring's lines `name: text` say what each is, its line `example: ctxexp NAME ...` how
it is typed. A function of `*args: str` alone gets them as typed, but for `json=true` where it makes a document. A path
called `out` is where the verb writes, a folder if its default is one: it is tried before the verb begins. A file that
is there is kept unless `replace=true`, and so is a verb's earlier answer in a folder: beside its default folder a new
one gets a number. A function that returns a `Document` leaves to this frame what is printed and written, and has
`json=true` too.
"""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from inspect import Parameter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_origin

from ctxexp.command.help import EXAMPLE, HELP, columns
from ctxexp.errors import ConfigError, UnknownKey, line, near, short, suggestions
from ctxexp.files import absent_folder, check_place, user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.arguments import convert_value, parse_value, type_hints, type_text, value_text
from ctxexp.plugins.registry import install_hint, registry
from ctxexp.progress import show

if TYPE_CHECKING:
    from ctxexp.report.terminal import Document

MODELS = ("models", "runs", "other")  # places of models behind the first
NO_TEXTS = (".npy", ".npz", ".safetensors", ".floor.json")  # files that stand for a model
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
        from ctxexp.report.terminal import deliver  # with what is shown: not for the general help

        if self.takes_words:
            words = [word for word in args if not (self.makes_document and word == "json=true")]
            return deliver(self.name, lambda: self.function(*words) or 0, None, as_json=len(words) < len(args))
        if HELP & set(args):
            show(self.usage())
            return 0
        bare, keywords = self.arguments(args)
        as_json = bool(keywords.pop("json", False)) if self.makes_document else False
        if self.is_folder and "out" not in keywords and not keywords.get("replace"):
            keywords["out"] = absent_folder(self.place, self.name)
        return deliver(self.name, partial(self.call, bare, keywords), keywords.get("out", self.place), as_json=as_json)

    def in_python(self, *args: object, **keys: object) -> Document | int:
        """Call it with values of Python, under the keys of the command line.

        Args:
            args: The words of the command line that have no key: a model, a text.
            keys: Its keys, those behind `options=` too; without `out` nothing is written.

        Returns:
            The document, or the exit status of a verb that makes none.

        Raises:
            CtxexpError: With the command's messages.

        Example:
            >>> import ctxexp
            >>> "runs" in ctxexp.cache().text(80)
            False
        """
        if self.takes_words:
            from ctxexp.command.overrides import as_value  # OmegaConf's

            return self(list(map(str, args)) + [f"{key}={as_value(value)}" for key, value in keys.items()])
        from ctxexp.report.terminal import Document

        bare, keywords = self.bind(args, keys, _convert)
        keywords.pop("json", None)
        with TemporaryDirectory() as own:
            if self.place:
                keywords.setdefault("out", Path(own) / self.place)
            made = self.call(bare, keywords)
            if isinstance(made, Document) and "out" in keys:
                made = replace(made, files=made.save(keywords["out"]))
            elif isinstance(made, Document):
                made = replace(made, files=[path for path in made.files if not path.is_relative_to(own)])
        return made or 0

    def call(self, bare: Sequence[object], keywords: Mapping[str, Any]) -> Document | int:
        """The document, or the exit status, of arguments that are bound; `out` is tried before the function begins."""
        params, keywords = self.parameters, dict(keywords)
        out = keywords.get("out", self.place)
        replaces = bool(keywords.get("replace"))
        if any(p is REPLACE for p in params):  # the function has none of its own
            keywords.pop("replace", None)
        if isinstance(out, Path):  # what takes minutes to compute shall not be lost for want of a place
            check_place(out, self.name, is_folder=self.is_folder, replaces=replaces)
        try:
            return self.function(*bare, **keywords) or 0
        except UnknownKey as error:  # of the run behind `options`
            own = [p.name for p in params if p.kind is p.KEYWORD_ONLY and p.name not in FLAGS]
            raise ConfigError(f"ctxexp {self.name} takes {', '.join(own)}, and the keys of a run: {error}") from error

    @cached_property
    def place(self) -> Any:
        """Where it writes by itself; None for nowhere."""
        return next((p.default for p in self.parameters if p.name == "out"), None)

    @property
    def is_folder(self) -> bool:
        """Whether that is a folder."""
        return isinstance(self.place, Path) and not self.place.suffix

    @property
    def takes_words(self) -> bool:
        """Whether the function reads the words of the command line by itself."""
        params = [p for p in self.parameters if p is not JSON]
        return len(params) == 1 and params[0].kind is Parameter.VAR_POSITIONAL and params[0].annotation in (str, Any)

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

    def arguments(self, args: Sequence[str]) -> tuple[list[object], dict[str, Any]]:
        """The positional and the keyword arguments in `args`, read as the types of the parameters."""
        words = [word.partition("=") for word in args]
        is_key = [bool(sign) and all(part.isidentifier() for part in key.split(".")) for key, sign, _ in words]
        bare = [word for word, has_key in zip(args, is_key, strict=True) if not has_key]
        keys = {key: text for (key, _, text), has_key in zip(words, is_key, strict=True) if has_key}
        return self.bind(bare, keys, _read)

    def bind(
        self, bare: Sequence[Any], keys: Mapping[str, Any], read: Callable[[str, Any, object], object]
    ) -> tuple[list[object], dict[str, Any]]:
        """The arguments, each as `read` makes it of what was given and its parameter's type. A text may stand behind
        the models, and a key that the verb hasn't is one of the run behind `options`."""
        name, params = self.name, self.parameters
        own = {p.name: p.annotation for p in params if p.kind is p.KEYWORD_ONLY}
        other = next((p.annotation for p in params if p.kind is p.VAR_KEYWORD), None)
        places = [p for p in params if p.kind in BARE]
        values: list[object] = []
        keywords: dict[str, Any] = {}
        options: list[str] = []
        for key, value in keys.items():
            if key in own or other is not None:
                keywords[key] = read(key, value, own.get(key, other))
            elif "options" in own and (not suggestions(key, own) or "." in key):
                options.append(shlex.quote(f"{key}={value}"))
            elif key == "plugins":
                raise ConfigError(f"plugins= stands before the verb: ctxexp plugins={line(str(value), 80)} {name}")
            else:
                raise ConfigError(f"ctxexp {name} has no argument {key!r}{near(key, own)}")
        for value in bare:
            place = next(iter(places[len(values) :]), next((p for p in places if p.kind is p.VAR_POSITIONAL), None))
            if str(value).startswith("-"):
                raise ConfigError(f"{short(value)}: expected key=value; ctxexp {name} --help says which")
            if "text" in own and "text" not in keywords and (place is None or _is_text_behind(value, place, values)):
                keywords["text"] = read("text", value, own["text"])
            elif place is None:
                names = [key for key in own if key not in FLAGS]
                hint = f" ({', '.join(names)})" if names else ""
                raise ConfigError(f"{short(value)}: expected key=value{hint}; ctxexp {name} --help says which")
            else:
                values.append(read(place.name, value, place.annotation))
        self._check_complete(values, keywords)
        if options or keywords.get("options"):
            keywords["options"] = self._options(keywords.get("options", ""), options)
        return values, keywords

    def _check_complete(self, values: Sequence[object], keywords: Mapping[str, object]) -> None:
        """Raise ConfigError for a parameter without default that nothing is given for."""
        params = self.parameters
        unset = [p for p in params[len(values) :] if p.default is p.empty and p.kind in BARE[:2]]
        unset += [p for p in params if p.default is p.empty and p.kind is p.KEYWORD_ONLY and p.name not in keywords]
        for param in unset:
            key = param.name.upper() if param.kind in BARE else f"{param.name}=..."
            hint = self.notes[1].get(param.name, type_text(param.annotation))
            raise ConfigError(f"ctxexp {self.name} needs {key}: {hint}")

    def _options(self, given: str, more: Sequence[str]) -> str:
        """The words behind `options`. Raises ConfigError for one that is the verb's own argument."""
        own = {p.name for p in self.parameters}
        for word in shlex.split(given):
            if (key := word.partition("=")[0]) in own:
                raise ConfigError(f"{key}= is of ctxexp {self.name} itself: leave options= out, {line(word, 80)}")
        return " ".join(filter(None, [given, *more]))

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


def python_verb(name: str) -> Callable[..., Document | int]:
    """The verb of that name as a function of Python (`Verb.in_python`), `-` in it written `_`. Raises AttributeError
    with the nearest of the verbs and of ctxexp's public names."""
    offer = registry().offers.get((COMMAND, name.replace("_", "-")))
    if offer is None:
        verbs = {one.replace("-", "_") for one in registry().names(COMMAND)}
        names = {*sys.modules["ctxexp"].__all__, *verbs}
        known = {one for one in names if one.islower()} | {*suggestions(name, names)}
        hint = install_hint(COMMAND, name.replace("_", "-")) or near(name, known)
        raise AttributeError(f"ctxexp has no {name!r}{hint}", name=name)

    @wraps(offer.factory)
    def verb(*args: object, **keys: object) -> Document | int:
        return Verb(offer.name, offer.factory).in_python(*args, **keys)

    return verb


def _convert(key: str, value: Any, expected: object) -> object:
    """A value of Python as a parameter's type has it; a list of names is what commas part. Objects stay as they are."""
    if key == "text" and not isinstance(value, str | Path):
        return value
    if expected is str and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if isinstance(value, str | Path):
        return str(value) if expected is str else _read(key, str(value), expected)
    return convert_value(key, value, expected) if isinstance(value, bool | int | float | list | None) else value


def _is_text_behind(value: object, place: Parameter, values: Sequence[object]) -> bool:
    """Whether a word in the place of further models is the text."""
    if place.name not in MODELS or not values:
        return False
    from ctxexp.command.options import group_of  # OmegaConf's

    return not isinstance(value, str) or (group_of(value) == "dataset" and not value.endswith(NO_TEXTS))
