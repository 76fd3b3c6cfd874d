"""What `--help` says, of everything, of a group or of one option: comments of YAML files, docstrings, signatures."""

from __future__ import annotations

import inspect
import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxexp.command.names import GROUPS, LISTS, config_folder, config_folders, registry
from ctxexp.command.types import type_text, value_text
from ctxexp.errors import UnknownName
from ctxexp.plugins import COMMAND, Offer, arguments
from ctxexp.plugins.published import brought_by

WIDTH = 160  # where nobody says how wide the page is
FLAGS = {
    "-m": "a sweep: a run for every combination of values with commas",
    "--cfg job": "show the config of a run instead",
    "--help GROUP": "the options of a group; --help metric=sts: the arguments of one",
    "--hydra-help": "Hydra's own flags",
    "--version": "ctxexp's version",
}


class Key(NamedTuple):
    """A key of a YAML file: its dotted name, its value as written, and the comment beside it."""

    name: str
    value: str
    about: str


def help_of(words: Iterable[str]) -> str:
    """The help on each of the words, on everything if there are none. Raises UnknownName for a word that is nothing."""
    return "\n\n".join(map(one, words)) or everything()


def one(word: str) -> str:
    """The help on a group (`metric`), an option (`metric=sts`), or a key of the config (`words`, `seed=3`)."""
    group, sign, name = word.partition("=")
    if group in GROUPS:
        return option(group, name) if sign else choices(group)
    rows = [key for key in values() if re.match(rf"{re.escape(group)}[.=]", f"{key.name}=")]
    if not rows:
        raise UnknownName("group, key or verb", word, [*GROUPS, *registry().names(COMMAND)])
    return columns((f"{key.name}={key.value}", key.about) for key in rows)


def values() -> list[Key]:
    """The config's own keys with their values, and what they are."""
    written = keys_of((config_folder() / "config.yaml").read_text(encoding="utf-8"))
    return [key for key in takewhile(lambda key: key.name != "hydra", written) if key.value]


def everything() -> str:
    """What the command does, its groups with their names, its keys and its verbs."""
    program = "python -m ctxexp" if Path(sys.argv[0]).name == "__main__.py" else "ctxexp"
    examples = [
        (program, "one run"),
        (f"{program} -m model=bert,gpt2,elmo", "a sweep"),
        (f"{program} NAME ...", "a verb; with --help what it takes"),
    ]
    sections = {
        "Flags": FLAGS.items(),
        f"Groups, one option of each: group=NAME; of {' and '.join(LISTS)} also a list": [
            (g, ", ".join(names(g))) for g in GROUPS
        ],
        "Values: key=value": [(f"{key.name}={key.value}", key.about) for key in values()],
        "Verbs": [(f"ctxexp {name}", registry().find(COMMAND, name).about) for name in registry().names(COMMAND)],
    }
    head = f"ctxexp measures how contextual a model's word representations are, layer by layer.\n\n{columns(examples)}"
    return "\n\n".join([head, *(f"{title}\n{columns(rows)}" for title, rows in sections.items())])


def names(group: str) -> list[str]:
    """The group's options: YAML files, and names that need none."""
    places = [folder / group for folder in config_folders()]
    files = {path.relative_to(at).with_suffix("").as_posix() for at in places for path in at.rglob("*.yaml")}
    return sorted(files | set(registry().names(group)))


def choices(group: str) -> str:
    """The group's options, a line each."""
    return f"{group}=NAME, one of\n" + columns((name, about(group, name)) for name in names(group))


def about(group: str, name: str) -> str:
    """What an option is: the comment on top of its file, else the first sentence of its docstring."""
    lines = _written(group, name).splitlines()
    said = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    offer = _offer(group, name)
    return " ".join(line for line in said if not re.match("@package|python -m", line)) or (offer.about if offer else "")


def option(group: str, name: str) -> str:
    """What an option is, and a line for each of its keys: how it is typed, with its value, and what it is."""
    if name not in names(group):
        raise UnknownName(group, name, names(group), brought_by(group, name))
    rows = [(f"{key.name}={key.value}", key.about) for key in keys(group, name)]
    return "\n\n".join(filter(None, [f"{group}={name}   {about(group, name)}", columns(rows)]))


def keys(group: str, name: str) -> Iterator[Key]:
    """The option's keys as they are typed (`metric.sts.similarity`), of its file or else of its signature."""
    written, offer = _written(group, name), _offer(group, name)
    known = (arguments(offer.factory) if offer and not offer.problem else None) or {}
    found = list(keys_of(written)) or [Key(key, _default(default), "") for key, (_, default) in known.items()]
    package = re.match("# @package (.*)", written)
    place = package[1].replace("_global_", "") if package else f"{group}.{name}" if group in LISTS else group
    for key in found:
        if key.name != "name" and key.value:
            expected = known.get(key.name, ("", None))[0]
            more = key.about or (offer and _sentence(offer, key.name)) or type_text(expected)
            yield Key(f"{place}.{key.name}".lstrip("."), key.value, more)


def keys_of(written: str) -> Iterator[Key]:
    """The keys of a YAML text, in its order; one that holds others has no value."""
    above: list[tuple[int, str]] = []
    for line in written.splitlines():
        if found := re.fullmatch(r"( *)([\w.]+): *([^#\s].*?)?(?: *# (.*))?", line):
            indent = len(found[1])
            above = [(i, name) for i, name in above if i < indent] + [(indent, found[2])]
            yield Key(".".join(name for _, name in above), found[3] or "", found[4] or "")


def _written(group: str, name: str) -> str:
    """The option's file; empty where it has none."""
    paths = [path for folder in config_folders() if (path := folder / group / f"{name}.yaml").is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""


def _offer(group: str, name: str) -> Offer | None:
    """What was registered under the name that the option's file says, or under its own."""
    named = {key.name: key.value for key in keys_of(_written(group, name))}
    return registry().offers.get((group, named.get("name", name)))


def _default(default: object) -> str:
    return "???" if default is inspect.Parameter.empty else value_text(default)


def _sentence(offer: Offer, key: str) -> str:
    """What the docstring says of an argument: its line `key: text`, or the first sentence that has it in backticks."""
    doc = inspect.getdoc(offer.factory) or "" if not offer.problem else ""
    if line := re.search(rf"^{key}: (.*)", doc, flags=re.MULTILINE):
        return line[1]
    sentences = re.split(r"(?<=[.;]) |\n", re.sub(r"\n(?![\n-])", " ", doc))
    return next((" ".join(sentence.split()) for sentence in sentences if f"`{key}" in sentence), "")


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns as text, the second one folded to the terminal's width."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    made = io.StringIO()
    console = Console(file=made, width=shutil.get_terminal_size().columns if terminal else WIDTH, color_system=None)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for left, right in rows:
        table.add_row(Text(f"  {left}"), Text(right))
    console.print(table)
    return "\n".join(line.rstrip() for line in made.getvalue().splitlines())
