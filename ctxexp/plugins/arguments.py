"""The config keys of a factory: its keyword arguments."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from ctxexp.plugins.hookspecs import Factory


def arguments(factory: Factory) -> dict[str, tuple[object, object]] | None:
    """Name -> (type, default) of a factory's arguments; None if it takes any keyword, or none that can be read."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    target = factory.__init__ if inspect.isclass(factory) else factory
    try:
        hints = typing.get_type_hints(target)
    except Exception:  # a name that is imported for type checkers only, or no type at all
        hints = {}
    return {p.name: (hints.get(p.name, Any), p.default) for p in parameters}
