"""What may be named: the registry of this process, with the files that were asked for; where config files lie; hub
names, folders and files where a group's name is expected, `model=bert-base-uncased`, or as words of their own; and the
text of `--help` on everything, a group or one option: comments of YAML files, docstrings, signatures.

A location is read as an option of its group with that location as its argument. What is nearly one of the group's
names is none: it is misspelt, and the hub is not asked for it.
"""

from __future__ import annotations

import inspect
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from ctxexp.errors import ConfigError, UnknownName, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.registry import (
    ARGUMENTS,
    GROUPS,
    LISTS,
    Offer,
    arguments,
    install_hint,
    registry,
    type_text,
    value_text,
)
from ctxexp.progress import terminal_width

_folder: Path | None = None  # of --config-dir

_HUB = r"(?:https?://(?:huggingface\.co|hf\.co)/|hf://)"
PAGES = {"model": rf"{_HUB}(?!datasets/)([\w./-]+?)/?", "dataset": rf"{_HUB}datasets/([\w./-]+?)/?"}  # by their address
FIRST = ("run", "layer", "compare", "card", "check", "claims", "models", "ui")
TOOLS = ("ctxexp", "compare")  # plugins whose other verbs are tools
MEASURES = ("anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance", "sts", "wic")
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

Names = Callable[[str], Sequence[str]]
"""The names of a group: `Names("model")` -> ["bert", ...]."""


def config_folder() -> Path:
    """`conf`: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def config_folders() -> list[Path]:
    """Folders in which config files are looked up, the first that has one first: the user's, our own, those of
    plugins."""
    return [*([_folder] if _folder else []), config_folder(), *map(Path, registry().folders)]


def add_config_folder(folder: str | None) -> None:
    """Look up config files in this folder first, in place of an earlier one; None: in no such folder."""
    global _folder
    _folder = Path(folder).absolute() if folder else None


class Location(NamedTuple):
    """A location, with the group and the option that it stands for.

    Example:
        >>> Location("model", "huggingface", "bert-base-uncased").overrides
        ['model=huggingface', 'model.checkpoint=bert-base-uncased']
    """

    group: str
    option: str
    place: str

    @property
    def overrides(self) -> list[str]:
        """The two overrides that it abbreviates."""
        return [f"{self.group}={self.option}", f"{self.group}.{ARGUMENTS[self.group]}={as_value(self.place)}"]


def as_value(value: object) -> str:
    """The value in Hydra's grammar; a text is in quotes where it would not be read back as the same text."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {as_value(one)}' for key, one in value.items())}}}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{','.join(map(as_value, value))}]"
    if not isinstance(value, str | Path):
        return "null" if value is None else str(value)
    text = str(value)
    is_bare = re.fullmatch(r"[\w./-]*[/.a-zA-Z-][\w./-]*", text, re.ASCII)
    is_other = re.fullmatch(r"[\d._eE+-]+|null|true|false|nan|inf", text, re.IGNORECASE)
    return text if is_bare and not is_other else quote(text)


def quote(value: str) -> str:
    """The value as Hydra's override grammar reads it back unchanged."""
    return "'" + value.replace("\\'", "\\\\'").replace("'", "\\'") + "'"


def locate(group: str, text: str, names: Sequence[str]) -> Location | None:
    """The location that the text is, where a name of the group is expected; None: it is one of `names`, or no location.

    Folders and files that exist are locations, as are texts written like a path and, of the hub, `owner/name` and a
    name with a dash that isn't nearly one of `names`.
    """
    if group not in ARGUMENTS or text in names or not text:
        return None
    if page := re.fullmatch(PAGES[group], text, re.ASCII):
        return Location(group, "huggingface", page[1]) if "huggingface" in names else None
    try:
        path = user_path(text)
        exists = path.exists()
    except (ConfigError, OSError):
        return None
    from ctxexp.datasets.text import is_text_file  # with what reads texts: not for `--help`

    is_path = exists or text.startswith(("/", "./", "../", "~")) or text.count("/") > 1
    if group == "model":
        is_model = is_path or path.suffix == ".gguf" or _is_repository(text, names)
        return Location(group, "huggingface", text) if is_model else None
    if is_path or is_text_file(path):
        return Location(group, "text", text)
    return Location(group, "huggingface", text) if _is_repository(text, names) and "huggingface" in names else None


def typed_model(text: str) -> tuple[str, list[str]]:
    """A model's name and the words behind it, as it is typed everywhere: `minilm dtype=bfloat16`; a run's folder is
    the model of that run. Raises ConfigError unless there is exactly one name.

    Example:
        >>> typed_model("bert model.pooling=first")
        ('bert', ['model.pooling=first'])
    """
    try:
        words = [text] if user_path(text).exists() else shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{text!r}: {error}") from error
    is_option = ["=" in word and not word.startswith("model=") and not user_path(word).exists() for word in words]
    named = [word.removeprefix("model=") for word, other in zip(words, is_option, strict=True) if not other]
    if len(named) != 1:
        raise ConfigError(f'{text!r}: expected a run\'s folder, or one model, as in "minilm dtype=bfloat16"')
    others = [word for word, other in zip(words, is_option, strict=True) if other]
    if not (user_path(named[0]) / "config.yaml").is_file():
        return named[0], others
    from ctxexp.command.config import values_of_run  # OmegaConf's

    values = values_of_run(user_path(named[0]))
    model: Any = values["model"]
    taken = arguments(registry().find("model", model["name"]).factory) or {}
    chosen = {key: value for key, value in model.items() if key not in taken or taken[key][1] != value}
    own = [(key if key in values else f"model.{key}", value) for key, value in chosen.items() if value is not None]
    kept = [f"{key}={as_value(value)}" for key, value in own if key not in ("model.name", "device")]
    return model["name"], [*kept, *others]


def spread_models(words: Iterable[str]) -> Iterator[str]:
    """The words of a command line, in which a run's folder, or a model quoted with its words, is spread to these."""
    for word in words:
        text = word.removeprefix("model=")
        name, *own = text.split() or [""]
        is_quoted = own and "=" not in name and all("=" in one for one in own)
        if is_quoted or _is_run(text):
            name, own = typed_model(text)
            yield from (f"model={name}", *own)
        else:
            yield word


def _is_run(text: str) -> bool:
    try:
        return not text.startswith("~") and Path(text, "config.yaml").is_file()
    except OSError:  # it is too long for a path
        return False


def choose_text(text: str | Path, names: Sequence[str]) -> list[str]:
    """The overrides that choose a text given in Python: those of a command line, where it is one of the data sets'
    `names` or a location, else those of a path."""
    if isinstance(text, str) and text in names:
        return [f"dataset={text}"]
    place = locate("dataset", text, names) if isinstance(text, str) else None
    if not place and isinstance(text, str) and suggestions(text, names):
        raise UnknownName("dataset", text, names)
    return (place or Location("dataset", "text", str(text))).overrides


def _is_repository(text: str, names: Sequence[str]) -> bool:
    """Whether the text is written like a repository of the hub, and not nearly like one of the names."""
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", text, re.ASCII):
        return True
    if not re.fullmatch(r"\w[\w.]*(-[\w.]+)+", text, re.ASCII) or text.replace("-", "_") in names:
        return False
    return not suggestions(text, names) or any(text.startswith(f"{name}-") for name in names)


def as_overrides(words: Sequence[str], names: Names) -> list[str]:
    """The words of a command line; one that is alone and says which model or which text becomes an override.

    Args:
        words: Overrides and other words.
        names: The groups' names.

    Returns:
        As many overrides: `bert-base-uncased` becomes `model=bert-base-uncased`, `mine.txt` becomes `dataset=mine.txt`.
    """
    groups = [group_of(word, names) for word in words]
    values = [quote(word) if word.startswith("~") else word for word in words]
    return [f"{group}={value}" if group else word for word, value, group in zip(words, values, groups, strict=True)]


def group_of(word: str, names: Names) -> str:
    """The group that a word of its own chooses from: `model` for names of models, repositories and folders of a model,
    `dataset` for files and folders of text; empty for any other word. Words with commas are several."""
    if re.match(r"[\w+.]+=|[-+=]|~[\w.@]+$", word) or not word:
        return ""
    for group in PAGES:
        if re.fullmatch(PAGES[group], word, re.ASCII):
            return group
    parts = [word] if "," not in word or user_path(word).exists() else word.split(",")
    groups = {_group_of(part, names) for part in parts}
    return groups.pop() if len(groups) == 1 else ""


def _group_of(word: str, names: Names) -> str:
    if word in names("model"):
        return "model"
    from ctxexp.datasets.text import is_text_file

    try:
        path = user_path(word)
        if path.is_dir():
            has_texts = any(is_text_file(one) and one.suffix != ".json" for one in path.iterdir())
            is_model = any((path / name).is_file() for name in ("config.json", "adapter_config.json"))
            return "model" if is_model else "dataset" if has_texts else ""
        is_file = path.is_file()
    except (ConfigError, OSError):
        return ""
    if path.suffix != ".gguf" and (is_file or is_text_file(path)):
        return "dataset"
    return "model" if locate("model", word, names("model")) else ""


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
    rows = [key for key in config_keys() if word == "values" or re.match(rf"{re.escape(group)}[.=]", f"{key.name}=")]
    if not rows:
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
    for name in sorted({*offers} - {*FIRST}):
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
    lines = option_text(group, name).splitlines()
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
    text, offer = option_text(group, name), _offer(group, name)
    signature = (arguments(offer.factory) if offer and not offer.problem else None) or {}
    keys = list(keys_of(text)) or [
        ConfigKey(key, "???" if default is inspect.Parameter.empty else value_text(default), "")
        for key, (_, default) in signature.items()
    ]
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


def option_text(group: str, name: str) -> str:
    """The text of the option's file; empty where it has none."""
    paths = [path for folder in config_folders() if (path := folder / group / f"{name}.yaml").is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""


def _offer(group: str, name: str) -> Offer | None:
    """The offer under the name that the option's file gives, or under the option's own; None if there is none."""
    named = {key.name: key.value for key in keys_of(option_text(group, name))}
    return registry().offers.get((group, named.get("name", name)))


def _sentence(offer: Offer, key: str) -> str:
    """The docstring's text on an argument: its line `key: text`, or the first sentence that has it in backticks."""
    if line := re.search(rf"^{key}: (.*)", offer.docstring, flags=re.MULTILINE):
        return line[1]
    sentences = re.split(r"(?<=[.;]) |\n", re.sub(r"\n(?![\n-])", " ", offer.docstring))
    return next((" ".join(sentence.split()) for sentence in sentences if f"`{key}" in sentence), "")


def columns(rows: Iterable[tuple[str, str]], width: int | None = None) -> str:
    """Two columns as text, the second one folded to the width; None: the terminal's."""
    cells = [*rows]
    left = max((len(first) for first, _ in cells), default=0) + 5
    room = max((width or terminal_width()) - left, 20)
    margin = "\n" + " " * left
    return "\n".join(f"  {first:<{left - 2}}{margin.join(textwrap.wrap(text, room))}".rstrip() for first, text in cells)
