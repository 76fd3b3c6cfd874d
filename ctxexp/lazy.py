"""Public names of a package, each imported when it is first asked for: a command loads what it uses alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """The package's `__getattr__`, which imports what the package imports `if TYPE_CHECKING` alone, and its modules.

    Args:
        package: Its `__name__`.
        file: Its `__file__`.

    Returns:
        A function of a name, which raises AttributeError with the nearest one for an unknown name.

    Example:
        >>> import ctxexp
        >>> lazy_names("ctxexp", ctxexp.__file__)("Corpus").__name__
        'Corpus'
    """
    nodes = [n for n in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)]
    modules = {alias.name: str(node.module) for node in nodes if node.col_offset for alias in node.names}

    def find(name: str) -> Any:
        if name not in modules:
            from ctxexp.errors import near

            if not name.startswith("_") and find_spec(f"{package}.{name}"):
                return import_module(f"{package}.{name}")
            raise AttributeError(f"{package} has no {name!r}{near(name, modules)}", name=name, obj=sys.modules[package])
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def verb(name: str) -> Callable[..., Any]:
    """The verb of that name as a function; AttributeError without one. By the name of its module, as all here is."""
    found: Callable[..., Any] = import_module("ctxexp.command.verb").python_verb(name)
    return found


class VerbPackage(ModuleType):
    """A package by whose name the command has a verb too: called, it is that one, as `ctxexp.sinks("gpt2")`."""

    def __call__(self, *args: object, **keys: object) -> Any:
        return verb(self.__name__.rpartition(".")[2])(*args, **keys)
