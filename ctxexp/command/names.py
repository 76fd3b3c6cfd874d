"""What may be named: the registry of this process, with the files that were asked for; where config files lie; hub
names, folders and files where a group's name is expected, `model=bert-base-uncased`, or as words of their own.

A location is read as an option of its group with that location as its argument. What is nearly one of the group's
names is none: it is misspelt, and the hub is not asked for it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ctxexp.datasets.text import is_text_file
from ctxexp.errors import ConfigError, UnknownName, suggestions
from ctxexp.files import user_path
from ctxexp.plugins.offers import arguments
from ctxexp.plugins.registry import ARGUMENTS, registry

_folder: Path | None = None  # of --config-dir

_HUB = r"(?:https?://(?:huggingface\.co|hf\.co)/|hf://)"
PAGES = {"model": rf"{_HUB}(?!datasets/)([\w./-]+?)/?", "dataset": rf"{_HUB}datasets/([\w./-]+?)/?"}  # by their address
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
        return long_form(self.group, self.option, [self.place])


def long_form(group: str, option: str, places: Sequence[str]) -> list[str]:
    """The overrides of the option with these locations, several being a sweep's."""
    return [f"{group}={option}", f"{group}.{ARGUMENTS[group]}={','.join(map(as_value, places))}"]


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
    is_path = exists or text.startswith(("/", "./", "../", "~")) or text.count("/") > 1
    if group == "model":
        is_model = is_path or path.suffix == ".gguf" or _is_repository(text, names) or _is_cached(text)
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


def _is_cached(text: str) -> bool:
    """Whether the hub's cache has a model of that name."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return bool(re.fullmatch(r"[\w.-]+", text)) and (cache / f"models--{text}").is_dir()


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
