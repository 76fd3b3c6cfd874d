"""`key=value` words of the commands beside experiments: values are YAML, of the types that the command states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from ctxexp.command.config import check_type
from ctxexp.errors import ConfigError, near


def split(word: str, example: str) -> tuple[str, str]:
    """Key and text of `key=value`; raises ConfigError, with the example, for anything else."""
    key, sign, text = word.partition("=")
    if not sign:
        raise ConfigError(f"{word[:60]!r}: expected key=value, such as {example}")
    return key, text


def value(word: str, text: str) -> Any:
    """What `text`, the value in `word`, is as YAML; raises ConfigError if it isn't any."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # a date such as 2000-99-99 is a ValueError
        raise ConfigError(f"{word[:60]!r}: the value can't be read; quote it") from None


def parse(words: Sequence[str], arguments: Mapping[str, tuple[Any, Any, str]], example: str) -> dict[str, Any]:
    """Every argument's value, from the words or its default; raises ConfigError for the first word that isn't one.

    `arguments` has (type, default, what it is) by key.
    """
    values = {key: default for key, (_type, default, _about) in arguments.items()}
    for word in words:
        key, text = split(word, example)
        if key not in arguments:
            raise ConfigError(f"no argument {key!r}{near(key, arguments)}")
        values[key] = _typed(word, text, arguments[key][0])
        check_type(key, values[key], arguments[key][0])
    return values


def _typed(word: str, text: str, expected: Any) -> Any:
    if expected is str:
        return text
    if expected is float:  # YAML reads 1e-4 as a string
        try:
            return float(text)
        except ValueError:
            return text
    return value(word, text)
