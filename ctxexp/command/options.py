"""Options of the config's groups: what a name stands for, by its YAML file, its factory's signature, or the folder,
file or hub repository that it is; and the config that chosen options make, without Hydra.

A name that is nearly one of the group's is misspelt, and the hub is not asked for it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from posixpath import dirname, join
from typing import Any, NamedTuple

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.datasets.reading import is_text_file
from ctxexp.errors import ConfigError, UnknownName, line, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    LOCATION_ARGUMENTS,
    SHARED,
    config_folder,
    install_hint,
    option_names,
    option_text,
    registry,
)

LOCATION_OPTIONS = {"model": "huggingface", "dataset": "text"}  # what reads a location, by group
MISSING = "???"  # a value that must be given
SELF = "_self_"  # in Hydra's lists of defaults, the values of the file itself


class Option(NamedTuple):
    """What a name of a group stands for.

    Args:
        values: Its keys in the config, `name` among them; of a plugin's name without a file, its arguments.
        defaults: As in Hydra's YAML, the options that it begins with, and those that it chooses of other groups.
        package: The dotted place of its values in the config.
    """

    values: dict[str, Any]
    defaults: list[Any]
    package: str


def find_option(group: str, name: str) -> Option | None:
    """The option of that name; None if the group has none."""
    text = option_text(group, name)
    if text:
        values = {str(key): value for key, value in _content(text).items()}
    elif (group, name) in registry().offers:
        values = {"name": name}
    elif location := find_location(group, name):
        values = {"name": location, LOCATION_ARGUMENTS[group]: name}
    else:
        return None
    header = re.search(r"^# *@package +(\S+)", text, flags=re.MULTILINE)
    own = f"{group}.{name}" if group in LISTS and not text else group
    defaults = values.pop("defaults", [])
    offer = registry().offers.get((group, str(values.get("name"))))
    if group in CONFIG_KINDS and offer and not offer.problem:  # one that can't be imported fails where it is built
        values = {"name": offer.name, **_defaults(group, arguments(offer.factory) or {}), **values}
    return Option(values, defaults, header[1] if header else own)


@cache
def _content(text: str) -> dict[Any, Any]:
    """The keys of a YAML file, which nobody changes: each is parsed once."""
    content = OmegaConf.to_container(OmegaConf.create(text))
    assert isinstance(content, dict)
    return content


def _defaults(group: str, signature: Mapping[str, tuple[object, object]]) -> dict[str, object]:
    """The arguments of a factory as a config holds them."""
    shared = SHARED.get(group, {})
    return {
        key: shared.get(key, MISSING if default is inspect.Parameter.empty else default)
        for key, (_type, default) in signature.items()
        if default is inspect.Parameter.empty or _is_plain(default)
    }


def _is_plain(value: object) -> bool:
    """Whether a config can hold the value; an argument whose default it can't hold is left to its factory."""
    if value is None or isinstance(value, bool | int | float | str):
        return True
    try:
        OmegaConf.create({"value": value})
    except OmegaConfBaseException:
        return False
    return True


def plain_config(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The values of ctxexp.yaml, with the options chosen in place of its own, and with the values of dotted keys.

    Args:
        choices: Of a group the name of an option, or several of them; of any other key its value.

    Raises:
        ConfigError: There is no such option (UnknownName), or a value refers to what isn't there.

    Example:
        >>> config = plain_config({"model": "gpt2", "words.lower": True})
        >>> config["model"]["name"], config["model"]["pooling"], config["words"]["lower"]
        ('gpt2', 'mean', True)
    """
    content = _content((config_folder() / "ctxexp.yaml").read_text(encoding="utf-8"))
    values = _put({}, content)
    first = {
        group: name
        for one in values.pop("defaults")
        if isinstance(one, dict)
        for group, name in one.items()
        if group in GROUPS
    }
    typed = {group: choice for group, choice in choices.items() if group in GROUPS}
    chosen = {**first, **typed}
    try:
        for group in reversed(first):  # an experiment chooses of the groups before it, a model the data set
            for key, name in _chosen_elsewhere(group, chosen):
                chosen[key] = typed.get(key, name)
        for group, names in chosen.items():
            for name in _names(names):
                _merge(values, group, name)
        values.pop("hydra")
        config = OmegaConf.create(values)
        for key, value in choices.items():
            if key not in typed:
                OmegaConf.update(config, key, plain_value(value), force_add=True)
        return {str(key): value for key, value in OmegaConf.to_container(config, resolve=True).items()}  # type: ignore[union-attr]
    except OmegaConfBaseException as error:
        raise ConfigError(line(str(error))) from None


def _names(choice: object) -> list[str]:
    """The names that a choice gives a group."""
    if choice is None:
        return []
    if isinstance(choice, str):
        has_several = "," in choice and not is_place(choice)
        return [name.strip() for name in choice.split(",")] if has_several else [choice]
    return [*map(str, choice)] if isinstance(choice, Iterable) else [str(choice)]


def _require_option(group: str, name: str) -> Option:
    option = find_option(group, name)
    if option is None:
        raise unknown_option(group, name)
    return option


def _chosen_elsewhere(group: str, chosen: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The groups of which the chosen options of this group choose, with what they choose."""
    for name in _names(chosen[group]):
        for one in _require_option(group, name).defaults:
            for key, choice in one.items() if isinstance(one, dict) else ():
                if match := re.fullmatch(r"override /(\w+)(@.*)?", str(key)):
                    of_others = [re.sub(r"\$\{(\w+)\}", lambda m: str(chosen[m[1]]), each) for each in _names(choice)]
                    yield match[1], of_others


def _merge(config: dict[str, Any], group: str, name: str, package: str = "") -> None:
    """Put the values of an option, and of those that it begins with, into the config: at its own place, or at the one
    that is given."""
    option = _require_option(group, name)
    package = package or option.package
    begins = [one for one in option.defaults if isinstance(one, str)]
    for one in begins if SELF in begins else [*begins, SELF]:
        if one != SELF:
            other, _, here = one.partition("@")  # name@_here_: at the place of what begins with it
            of_group, _, path = join("/", group, dirname(name), other)[1:].partition("/")
            _merge(config, of_group, path, package if here else "")
        else:
            values = option.values
            for key in reversed(package.split(".")) if package != "_global_" else ():
                values = {key: values}
            _put(config, values)


def _put(values: dict[str, Any], others: Mapping[Any, Any]) -> dict[str, Any]:
    """Put the others into the values, key by key; a list is one value."""
    for key, other in others.items():
        if isinstance(other, dict):
            own = values.get(key)
            other = _put(own if isinstance(own, dict) else {}, other)
        values[str(key)] = other
    return values


def plain_value(value: object) -> object:
    """The value as a config holds it: lists, mappings, texts, numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [plain_value(one) for one in value]
    return value.item() if hasattr(value, "item") else str(value)  # NumPy's numbers; a path


def group_of(word: str) -> str:
    """The group that a word of its own chooses from: `model` for names of models, repositories and folders of a model,
    `dataset` for files and folders of text; empty for any other word. Words with commas are several."""
    if re.match(r"[\w+.]+=|[-+=]|~[\w.@]+$", word) or not word:
        return ""
    parts = [word] if "," not in word or is_place(word) else word.split(",")
    groups = {_group_of(part) for part in parts}
    return groups.pop() if len(groups) == 1 else ""


def _group_of(word: str) -> str:
    if word in option_names("model"):
        return "model"
    try:
        path = user_path(word)
        if path.is_dir():
            has_texts = any(is_text_file(one) and one.suffix != ".json" for one in path.iterdir())
            if any((path / name).is_file() for name in ("config.json", "adapter_config.json")):
                return "model"
            return "dataset" if has_texts else ""
        is_file = path.is_file()
    except (ConfigError, OSError):
        return ""
    if path.suffix != ".gguf" and (is_file or is_text_file(path)):
        return "dataset"
    return "model" if find_location("model", word) else ""


def is_place(text: str) -> bool:
    """Whether there is a file or folder of that name."""
    try:
        return user_path(text).exists()
    except (ConfigError, OSError):
        return False


def find_location(group: str, text: str) -> str:
    """The option that reads the location which the text is; empty if it is none.

    Folders and files that exist are locations, as are texts written like a path and, of the hub, `owner/name` and a
    name with a dash that isn't nearly one of the group's.

    Example:
        >>> [find_location("model", name) for name in ("bert-base-uncased", "./bert", "bret")]
        ['huggingface', 'huggingface', '']
    """
    if group not in LOCATION_OPTIONS or not text:
        return ""
    names = option_names(group)
    try:
        is_file_of_text = is_text_file(user_path(text))
        is_path = is_place(text) or text.startswith(("/", "./", "../", "~")) or text.count("/") > 1
    except (ConfigError, OSError):
        return ""
    if text in names:
        return ""
    if is_path or (group == "dataset" and is_file_of_text) or (group == "model" and text.endswith(".gguf")):
        return LOCATION_OPTIONS[group]
    return "huggingface" if "huggingface" in names and _is_repository(text, names) else ""


def _is_repository(text: str, names: Sequence[str]) -> bool:
    """Whether the text is written like a repository of the hub, and not nearly like one of the names."""
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", text, re.ASCII):
        return True
    if not re.fullmatch(r"\w[\w.]*(-[\w.]+)+", text, re.ASCII) or text.replace("-", "_") in names:
        return False
    return not suggestions(text, names) or any(text.startswith(f"{name}-") for name in names)


def unknown_option(group: str, name: str, names: Sequence[str] | None = None) -> UnknownName:
    """The error of an option that the group doesn't have: who brings it, or how one of the hub is chosen. `names` are
    those of a group that isn't ours."""
    known = option_names(group) if names is None else names
    return UnknownName(group, name, known, install_hint(group, name) or hub_hint(group, name, known))


def hub_hint(group: str, name: str, names: Sequence[str]) -> str:
    """A hint how a repository of the hub is given, where the name may be that of one; else empty."""
    is_new = re.fullmatch(r"(?!\d+$)[\w.-]{2,96}", name[:97]) and ("-" in name or not suggestions(name, names))
    option = f"{group}=huggingface {group}.{LOCATION_ARGUMENTS[group]}={name}" if group in LOCATION_ARGUMENTS else ""
    return f"; of the hub: {option}" if is_new and option else ""
