"""The arguments of a factory or a verb: their types and defaults, values checked against the types by pydantic, and
both as one writes them.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import yaml
from annotated_types import Ge, Le

from ctxexp.errors import ConfigError, line, near, short
from ctxexp.plugins import Factory

Seed = Annotated[int, Ge(0), Le(2**63 - 1)]  # torch's seeds
BOUNDS = {  # what pydantic calls a value out of bounds
    "greater_than_equal": "at least {ge}", "less_than_equal": "at most {le}", "greater_than": "above {gt}",
    "finite_number": "a finite number",
}  # fmt: skip


def convert_value(place: str, value: object, expected: object) -> object:
    """The value as the type has it, nothing converted but what JSON can't tell apart (an int is a float, a list a
    tuple, a text a path). A type that pydantic doesn't know lets anything through. Raises ConfigError."""
    from pydantic import PydanticUserError, ValidationError

    try:
        return _validate(value, expected)
    except PydanticUserError:
        return value
    except ValidationError as error:
        wrong = error.errors()[0]
    bare = get_args(expected)[0] if get_origin(expected) is Annotated else expected
    if get_origin(bare) is Literal:
        raise ConfigError(f"{place}={short(value)}: no such choice{near(str(value), map(str, get_args(bare)))}")
    if bound := BOUNDS.get(wrong["type"]):
        limit = bound.format_map(wrong.get("ctx", {})).removesuffix(".0")
        raise ConfigError(f"{place}={short(value)}: expected {limit}")
    hint = ""
    if not isinstance(value, list) and _passes([value], expected):
        hint = f"; a list has brackets, even of one: {place}=[{line(str(value), 80)}]"
    elif not isinstance(value, list) and _passes([0, -1], expected):
        hint = f"; a list of numbers is written {place}=[0,-1]"
    raise ConfigError(f"{place}={short(value)}: expected {type_text(bare)}, got {type(value).__name__}{hint}")


def _passes(value: object, expected: object) -> bool:
    try:
        _validate(value, expected)
    except ValueError:  # pydantic's ValidationError is one
        return False
    return True


def _validate(value: object, expected: Any) -> object:
    from pydantic import ConfigDict, TypeAdapter

    rules = ConfigDict(strict=True, allow_inf_nan=False)
    return TypeAdapter(expected, config=rules).validate_json(json.dumps(value, default=str))


def type_text(expected: object) -> str:
    """The type as one writes it: `int`, `list[str] | null`, `drop | keep`."""
    if get_origin(expected) is Annotated:
        return type_text(get_args(expected)[0])
    if get_origin(expected) is Literal:
        return " | ".join(map(str, get_args(expected)))
    if str(get_origin(expected)) in ("typing.Union", "<class 'types.UnionType'>"):
        return " | ".join(map(type_text, get_args(expected)))
    if get_origin(expected) in (list, Sequence) and get_args(expected)[0] is not Any:
        return f"list[{type_text(get_args(expected)[0])}]"
    if get_origin(expected) is None and isinstance(expected, type):
        return "null" if expected is type(None) else expected.__name__
    return re.sub(r"(\w+\.)+", "", str(expected)).replace("Sequence[", "list[").replace("[Any]", "")


def parse_value(place: str, written: str, expected: Any) -> object:
    """The value that a word of the command line writes, as YAML or, where the type takes it, as it stands. Raises
    ConfigError."""
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

    try:
        value = yaml.safe_load(written)
        return _validate(value, expected)
    except PydanticUserError:
        return value
    except (yaml.YAMLError, ValueError) as error:  # pydantic's too; a date such as 2000-99-99 is one
        unread = not isinstance(error, ValidationError)
    if expected is not Any:
        with suppress(ValidationError):
            return TypeAdapter(expected, config=ConfigDict(allow_inf_nan=False)).validate_strings(written)
    if unread:
        raise ConfigError(f"{line(f'{place}={written}', 60)}: the value can't be read; quote it")
    return convert_value(place, value, expected)


def value_text(value: object) -> str:
    """The value as YAML writes it in a line: `null`, `true`, `[1, 2]`."""
    return (
        str(value)
        if isinstance(value, str | Path)
        else yaml.safe_dump(value, default_flow_style=True, width=10**6).split("\n")[0]
    )


def arguments(factory: Factory) -> dict[str, tuple[object, object]] | None:
    """Name -> (type, default) of a factory's arguments; None if it takes any keyword, or none that can be read."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    hints = type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    return {p.name: (hints.get(p.name, Any), p.default) for p in parameters}


def type_hints(function: Factory) -> dict[str, Any]:
    """The types of a function's arguments; empty where one is a name that is imported for type checkers only."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # or it is no type at all
        return {}
