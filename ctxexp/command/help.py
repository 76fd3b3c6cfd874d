"""The text of `--help` on everything, a group, one option or a key: comments of YAML files, docstrings, signatures."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from ctxexp.errors import UnknownName
from ctxexp.plugins import COMMAND
from ctxexp.plugins.arguments import arguments, type_text, value_text
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    LOCATION_ARGUMENTS,
    SHARED,
    Offer,
    config_folder,
    install_hint,
    option_names,
    option_text,
    registry,
)
from ctxexp.progress import terminal_width

FIRST = ("demo", "run", "layer", "compare", "check", "floor", "card", "models", "ui")
MOVED = "Now "  # begins the docstring of a verb that answers with the line to type instead
TOOLS = ("ctxexp", "compare")  # plugins whose other verbs are tools
MEASURES = (
    "contextuality",
    "self_similarity",
    "intra_sentence_similarity",
    "max_explainable_variance",
    "anisotropy",
)
HELP = {"-h", "--help"}
EXAMPLE = "example"  # the line of a verb's docstring that says how it is typed
FLAGS = {
    "ctxexp VERB --help": "what a verb takes",
    "ctxexp --help GROUP": "the options of a group; --help metric=sts: of one; --help values: all others",
    "-m": "a sweep: a run for each value, as in ctxexp -m model=bert,gpt2",
    "--open": "open the page in the browser once it is made",
    "--cfg job": "show a run's config instead (--hydra-help: Hydra's flags)",
    "--version": "ctxexp's version",
}
WIDEST = 100  # characters of a line, however wide the terminal


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
    if group in GROUPS:
        return describe_option(group, name) if sign else list_options(group)
    rows = [key for key in config_keys() if word == "values" or re.match(rf"{re.escape(group)}[.=]", f"{key.name}=")]
    if not rows:
        from ctxexp.command.options import group_of  # OmegaConf's

        if own := group_of(word):
            return describe_option(own, word)
        raise UnknownName("group, key or verb", word, [*GROUPS, *registry().names(COMMAND)])
    return columns((f"{key.name}={key.value}", key.comment) for key in rows)


def config_keys() -> list[ConfigKey]:
    """The config's own keys with their values and the comments on them."""
    keys = keys_of((config_folder() / "ctxexp.yaml").read_text(encoding="utf-8"))
    return [key for key in takewhile(lambda key: key.name != "hydra", keys) if key.value]


def describe_all() -> str:
    """The help on the whole command, on one screen: the first verbs with an example each, and where the rest is."""
    offers = {name: registry().find(COMMAND, name) for name in registry().names(COMMAND)}
    first = [(_example(offers[name]), offers[name].summary) for name in FIRST if name in offers]
    others: dict[str, list[str]] = {"Tools": [], "Research": []}
    for name in sorted(name for name in {*offers} - {*FIRST} if not offers[name].summary.startswith(MOVED)):
        others["Tools" if offers[name].plugin in TOOLS else "Research"].append(name)
    width = min(terminal_width(), WIDEST)
    measures = ", ".join(name for name in MEASURES if name in option_names("metric"))
    sections = {
        "First": columns(first, width),
        **{title: textwrap.fill(", ".join(names), width, initial_indent="  ", subsequent_indent="  ")
           for title, names in others.items() if names},
        "Measures: metric=NAME, or a list; all: ctxexp --help metric": f"  {measures}",
        "More": columns([*FLAGS.items(), ("GROUP is one of", ", ".join(GROUPS))], width),
    }  # fmt: skip
    head = "ctxexp measures how contextual a model's word representations are, layer by layer."
    return "\n\n".join([head, *(f"{title}\n{text}" for title, text in sections.items())])


def _example(offer: Offer) -> str:
    """What is typed, by the docstring's line `example: `; else the verb alone."""
    found = re.search(rf"^{EXAMPLE}: (.*)", offer.docstring, flags=re.MULTILINE)
    return found[1] if found else f"ctxexp {offer.name}"


def list_options(group: str) -> str:
    """The group's options, a line each."""
    return f"{group}=NAME, one of\n" + columns((name, summary_of(group, name)) for name in option_names(group))


def summary_of(group: str, name: str) -> str:
    """A sentence on an option: the comment on top of its file, else the first sentence of its docstring."""
    lines = option_text(group, name).splitlines()
    comment = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    offer = _offer(group, name)
    text = " ".join(line for line in comment if not re.match("@package|python -m", line))
    return text or (offer.summary if offer else "")


def describe_option(group: str, name: str) -> str:
    """The help on an option: a sentence, and a line for each of its keys with its value and meaning; on a location, on
    the option that it is read as."""
    if name not in (names := option_names(group)):
        from ctxexp.command.options import find_location  # OmegaConf's

        if option := find_location(group, name):
            place = f"{group}={option} {group}.{LOCATION_ARGUMENTS[group]}={name}"
            return f"{name} is read as {place}\n\n{describe_option(group, option)}"
        raise UnknownName(group, name, names, install_hint(group, name))
    rows = [(f"{key.name}={key.value}", key.comment) for key in option_keys(group, name)]
    return "\n\n".join(filter(None, [f"{group}={name}   {summary_of(group, name)}", columns(rows)]))


def option_keys(group: str, name: str) -> Iterator[ConfigKey]:
    """The option's keys under their full names (`metric.sts.similarity`), of its signature and its file."""
    text, offer = option_text(group, name), _offer(group, name)
    signature = (arguments(offer.factory) if offer and not offer.problem else None) or {}
    shared = SHARED.get(group, {})
    keys: dict[str, ConfigKey] = {}
    for key, (_, default) in signature.items():
        value = "???" if default is inspect.Parameter.empty else value_text(default)
        keys[key] = ConfigKey(key, shared.get(key, value), "")
    keys |= {key.name: key for key in keys_of(text)}
    place = f"{group}.{name}" if group in LISTS else group
    if package := re.match("# @package (.*)", text):
        place = package[1].replace("_global_", "")
    for one in keys.values():
        if one.name != "name" and one.value:
            expected = signature.get(one.name, ("", None))[0]
            more = one.comment or (offer and _sentence(offer, one.name)) or type_text(expected)
            yield ConfigKey(f"{place}.{one.name}".lstrip("."), one.value, more)


def keys_of(text: str) -> Iterator[ConfigKey]:
    """The keys of a YAML text, in its order; one that holds others has no value."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := re.fullmatch(r"( *)([\w.]+): *([^#\s].*?)?(?: *# (.*))?", line):
            indent = len(match[1])
            above = [(i, name) for i, name in above if i < indent] + [(indent, match[2])]
            yield ConfigKey(".".join(name for _, name in above), match[3] or "", match[4] or "")


def _offer(group: str, name: str) -> Offer | None:
    """The offer under the name that the option's file gives, or under the option's own; None if there is none."""
    named = {key.name: key.value for key in keys_of(option_text(group, name))}
    return registry().offers.get((group, named.get("name", name)))


def _sentence(offer: Offer, key: str) -> str:
    """The docstring's text on an argument: its line `key: text`."""
    line = re.search(rf"^{key}: (.*(?:\n {{4}}.*)*)", offer.docstring, flags=re.MULTILINE)
    return " ".join(line[1].split()) if line else ""


def columns(rows: Iterable[tuple[str, str]], width: int | None = None) -> str:
    """Two columns as text, the second one folded to the width; None: the terminal's."""
    cells = [*rows]
    left = max((len(first) for first, _ in cells), default=0) + 5
    room = max((width or terminal_width()) - left, 20)
    margin = "\n" + " " * left
    return "\n".join(f"  {first:<{left - 2}}{margin.join(textwrap.wrap(text, room))}".rstrip() for first, text in cells)
