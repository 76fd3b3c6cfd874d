"""The text of `--help`, on everything, a group or one option: comments of YAML files, docstrings, signatures."""

from __future__ import annotations

import inspect
import io
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ctxexp.command.locations import group_of, locate
from ctxexp.command.names import GROUPS, LISTS, config_folder, config_folders, registry
from ctxexp.errors import UnknownName
from ctxexp.plugins import COMMAND, Offer, arguments
from ctxexp.plugins.published import install_hint
from ctxexp.plugins.types import type_text, value_text
from ctxexp.progress import terminal_width

FLAGS = {
    "-m": "a sweep: a run for every combination of values with commas",
    "--open": "open the report in the browser once it is made",
    "--cfg job": "show the config of a run instead",
    "--help GROUP": "the options of a group; --help metric=sts: the arguments of one",
    "--hydra-help": "Hydra's own flags",
    "--version": "ctxexp's version",
}


class ConfigKey(NamedTuple):
    """A key of a YAML file: its dotted name, its value as written, and the comment beside it."""

    name: str
    value: str
    comment: str


def help_of(topics: Iterable[str]) -> str:
    """The help on each topic, on everything if there are none. Raises UnknownName for a topic that is nothing."""
    return "\n\n".join(map(describe_topic, topics)) or describe_all()


def describe_topic(word: str) -> str:
    """The help on a group (`metric`), an option (`metric=sts`), a key of the config (`words`, `seed=3`), or a model
    (`bert-base-uncased`)."""
    group, sign, name = word.partition("=")
    if word not in GROUPS and (own := group_of(word, option_names)):
        group, sign, name = own, "=", word
    if group in GROUPS:
        return describe_option(group, name) if sign else list_options(group)
    rows = [key for key in config_keys() if re.match(rf"{re.escape(group)}[.=]", f"{key.name}=")]
    if not rows:
        raise UnknownName("group, key or verb", word, [*GROUPS, *registry().names(COMMAND)])
    return columns((f"{key.name}={key.value}", key.comment) for key in rows)


def config_keys() -> list[ConfigKey]:
    """The config's own keys with their values and the comments on them."""
    keys = keys_of((config_folder() / "ctxexp.yaml").read_text(encoding="utf-8"))
    return [key for key in takewhile(lambda key: key.name != "hydra", keys) if key.value]


def describe_all() -> str:
    """The help on the whole command: its flags, groups with their options, keys and verbs."""
    program = "python -m ctxexp" if Path(sys.argv[0]).name == "__main__.py" else "ctxexp"
    examples = [
        (program, "one run"),
        (f"{program} -m model=bert,gpt2,elmo", "a sweep"),
        (f"{program} NAME ...", "a verb; with --help what it takes"),
    ]
    sections = {
        "Flags": FLAGS.items(),
        f"Groups, one option of each: group=NAME; of {' and '.join(LISTS)} also a list": [
            (g, ", ".join(option_names(g))) for g in GROUPS
        ],
        "Values: key=value": [(f"{key.name}={key.value}", key.comment) for key in config_keys()],
        "Verbs": [(f"ctxexp {name}", registry().find(COMMAND, name).summary) for name in registry().names(COMMAND)],
    }
    head = f"ctxexp measures how contextual a model's word representations are, layer by layer.\n\n{columns(examples)}"
    return "\n\n".join([head, *(f"{title}\n{columns(rows)}" for title, rows in sections.items())])


def option_names(group: str) -> list[str]:
    """The group's options: YAML files, and names that need none."""
    places = [folder / group for folder in config_folders()]
    files = {path.relative_to(at).with_suffix("").as_posix() for at in places for path in at.rglob("*.yaml")}
    return sorted(files | set(registry().names(group)))


def list_options(group: str) -> str:
    """The group's options, a line each."""
    return f"{group}=NAME, one of\n" + columns((name, summary_of(group, name)) for name in option_names(group))


def summary_of(group: str, name: str) -> str:
    """A sentence on an option: the comment on top of its file, else the first sentence of its docstring."""
    lines = _option_text(group, name).splitlines()
    comment = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    offer = _offer(group, name)
    text = " ".join(line for line in comment if not re.match("@package|python -m", line))
    return text or (offer.summary if offer else "")


def describe_option(group: str, name: str) -> str:
    """The help on an option: a sentence, and a line for each of its keys with its value and meaning; on a location, on
    the option that it is read as."""
    if place := locate(group, name, option_names(group)):
        return f"{name} is read as {' '.join(place.overrides)}\n\n{describe_option(group, place.option)}"
    if name not in option_names(group):
        raise UnknownName(group, name, option_names(group), install_hint(group, name))
    rows = [(f"{key.name}={key.value}", key.comment) for key in option_keys(group, name)]
    return "\n\n".join(filter(None, [f"{group}={name}   {summary_of(group, name)}", columns(rows)]))


def option_keys(group: str, name: str) -> Iterator[ConfigKey]:
    """The option's keys under their full names (`metric.sts.similarity`), from its file or else its signature."""
    text, offer = _option_text(group, name), _offer(group, name)
    signature = (arguments(offer.factory) if offer and not offer.problem else None) or {}
    keys = list(keys_of(text)) or [ConfigKey(key, _default(default), "") for key, (_, default) in signature.items()]
    package = re.match("# @package (.*)", text)
    place = package[1].replace("_global_", "") if package else f"{group}.{name}" if group in LISTS else group
    for key in keys:
        if key.name != "name" and key.value:
            expected = signature.get(key.name, ("", None))[0]
            more = key.comment or (offer and _sentence(offer, key.name)) or type_text(expected)
            yield ConfigKey(f"{place}.{key.name}".lstrip("."), key.value, more)


def keys_of(text: str) -> Iterator[ConfigKey]:
    """The keys of a YAML text, in its order; one that holds others has no value."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := re.fullmatch(r"( *)([\w.]+): *([^#\s].*?)?(?: *# (.*))?", line):
            indent = len(match[1])
            above = [(i, name) for i, name in above if i < indent] + [(indent, match[2])]
            yield ConfigKey(".".join(name for _, name in above), match[3] or "", match[4] or "")


def _option_text(group: str, name: str) -> str:
    """The text of the option's file; empty where it has none."""
    paths = [path for folder in config_folders() if (path := folder / group / f"{name}.yaml").is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""


def _offer(group: str, name: str) -> Offer | None:
    """The offer under the name that the option's file gives, or under the option's own; None if there is none."""
    named = {key.name: key.value for key in keys_of(_option_text(group, name))}
    return registry().offers.get((group, named.get("name", name)))


def _default(default: object) -> str:
    return "???" if default is inspect.Parameter.empty else value_text(default)


def _sentence(offer: Offer, key: str) -> str:
    """The docstring's text on an argument: its line `key: text`, or the first sentence that has it in backticks."""
    doc = inspect.getdoc(offer.factory) or "" if not offer.problem else ""
    if line := re.search(rf"^{key}: (.*)", doc, flags=re.MULTILINE):
        return line[1]
    sentences = re.split(r"(?<=[.;]) |\n", re.sub(r"\n(?![\n-])", " ", doc))
    return next((" ".join(sentence.split()) for sentence in sentences if f"`{key}" in sentence), "")


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns as text, the second one folded to the terminal's width."""
    from rich.console import Console  # whose import draws Python's random numbers
    from rich.table import Table
    from rich.text import Text

    buffer = io.StringIO()
    console = Console(file=buffer, width=terminal_width(), color_system=None)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for left, right in rows:
        table.add_row(Text(f"  {left}"), Text(right))
    console.print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())
