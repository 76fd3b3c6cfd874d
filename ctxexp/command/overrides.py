"""The words of a command line as values, and values as words; what a word that is none may have meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ctxexp.command.config import key_names, values_of_run
from ctxexp.command.options import hub_hint
from ctxexp.errors import SYNONYMS, ConfigError, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    install_hint,
    load_plugin_files,
    names_in_file,
    option_names,
    plugin_files,
    registry,
)

NEARER = 0.85  # how like a measure, a transform or a key a word by itself is, so that it isn't by chance
OWN = ("json", "out", "replace")  # keys that say where a run's answer goes, as every verb's


def read_choices(words: Iterable[str]) -> dict[str, Any]:
    """What `key=value` words choose, by key. Raises ConfigError for a word that is none, or a key given twice.

    Example:
        >>> read_choices(["seed=1", "model.layers=[0, -1]"])
        {'seed': 1, 'model.layers': [0, -1]}
    """
    choices: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign:
            raise ConfigError(no_word(word))
        key = "dataset" if key == "text" else key.lstrip("+")
        if key in choices:
            raise ConfigError(f"{key} is given twice: leave one out")
        try:
            choices[key] = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[call-overload, index]
        except Exception as error:  # YAML's
            raise ConfigError(f"{line(word, 80)}: the value can't be read; quote it") from error
    return choices


def as_value(value: object) -> str:
    """The value as YAML and Hydra's grammar read it alike; a text is in quotes where it would be something else."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {as_value(one)}' for key, one in value.items())}}}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{','.join(map(as_value, value))}]"
    if not isinstance(value, str | Path):
        return "null" if value is None else str(value)
    text = str(value)
    is_bare = re.fullmatch(r"[\w./-]*[/.a-zA-Z-][\w./-]*", text, re.ASCII)
    is_other = re.fullmatch(r"[\d._eE+-]+|null|true|false|nan|inf|yes|no|on|off", text, re.IGNORECASE)
    return text if is_bare and not is_other else quote(text)


def quote(text: str) -> str:
    """The text in the quotes that it doesn't hold itself."""
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace('\\"', '\\\\"').replace('"', '\\"') + '"'


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
        hint = "; a text stands behind it, outside the quotes" if len(named) == 2 else ""
        raise ConfigError(f'{text!r}: expected a run\'s folder, or one model, as in "minilm dtype=bfloat16"{hint}')
    others = [word for word, other in zip(words, is_option, strict=True) if other]
    if not (user_path(named[0]) / "config.yaml").is_file():
        return named[0], others
    values = values_of_run(user_path(named[0]))
    model: Any = values["model"]
    taken = arguments(registry().find("model", model["name"]).factory) or {}
    chosen = {key: value for key, value in model.items() if key not in taken or taken[key][1] != value}
    own = [(key if key in values else f"model.{key}", value) for key, value in chosen.items() if value is not None]
    kept = [f"{key}={as_value(value)}" for key, value in own if key not in ("model.name", "device")]
    return model["name"], [*kept, *others]


def take_plugins(words: Iterable[str]) -> list[str]:
    """Load the files of `plugins=[...]`, and of `metric=FILE.py`, which stands for the names in it; returns the words
    with the paths of these files absolute, for workers.

    Their names must be known before a config is composed, so the command line is the only place for them. Raises
    ConfigError.
    """
    args: list[str] = []
    has_files = False
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        if key == "plugins":
            files = read_choices([word])["plugins"]
            if isinstance(files, str) and "," in files:
                raise ConfigError(f"{word}: expected a list of files, as in plugins=[{files}]")
            load_plugin_files([files] if isinstance(files, str) else files)
        elif key in GROUPS and value.endswith(".py"):
            names = names_in_file(key, value)
            args.append(f"{key}=[{names}]" if key in LISTS else f"{key}={names}")
        else:
            args.append(word)
            continue
        has_files = True
    return [*args, f"plugins={as_value(plugin_files())}"] if has_files else args


def no_word(word: str) -> str:
    """The message on a word that is none of a command line."""
    return f"{short(word)} is no verb, no model, no text and no key=value{meant_by(word)}"


def meant_by(word: str) -> str:
    """`; did you mean ...?`: the command, the option of some group, or the key that the word is or resembles."""
    name = word.strip().lstrip("-")
    meant = {verb: f"ctxexp {verb}" for verb in registry().names(COMMAND)}
    meant = {form: f"ctxexp --help {group}" for group in GROUPS for form in (group, f"{group}s")} | meant
    for group in GROUPS:
        meant |= {option: f"{group}={option}" for option in option_names(group) if option not in meant}
    keys = {key: f"{key}=..." for key in (*key_names(), *OWN)}
    if name not in meant and (hint := next(filter(None, (install_hint(k, name) for k in (COMMAND, *GROUPS))), "")):
        return hint
    first = [*registry().names(COMMAND), *GROUPS, *option_names("model"), *option_names("dataset")]
    known = meant | keys if name in SYNONYMS else first
    if close := [name] if name in meant else suggestions(name, known) or suggestions(name, meant | keys, NEARER):
        return f"; did you mean {' or '.join((meant | keys)[one] for one in close)}?"
    place = "; no such file or folder is here, or it holds neither a model nor texts" if re.search("[./]", name) else ""
    return f"{place}; ctxexp --help lists what there is{hub_hint('model', name, [])}"
