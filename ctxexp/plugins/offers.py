"""Offers of plugins: a name with its factory, and the plugin that supplies it, which may be a single file."""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
import types
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import cast

from ctxexp.errors import FILE_MODULE, CtxexpError, PluginError, error_text, plugin_call, suggestions
from ctxexp.files.paths import user_path
from ctxexp.plugins.hookspecs import COMMAND, FIRST_PARTY, REPORT, Factory


@dataclass(frozen=True)
class PluginVersion:
    """A plugin with its version: its name, distribution and version (of a file: its path and content hash)."""

    plugin: str
    distribution: str
    version: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file, which may lie anywhere: its version is its content's."""
        return self.version.startswith("sha256:")

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} ({self.distribution} {self.version})"


@dataclass(frozen=True)
class Offer:
    """One registered name, its factory (of a verb or report: its function), and the plugin that supplies it."""

    kind: str
    name: str
    source: Factory | str  # the factory, or its place (`module:name`)
    plugin: str
    supplier: PluginVersion | None = None  # None: ctxexp itself, or Python

    @property
    def secrets(self) -> Sequence[str]:
        """The arguments of a sink that it declares to be credentials (`ctxexp.Sink.secrets`)."""
        declared: Sequence[str] = getattr(self.factory, "secrets", ())
        return declared

    @cached_property
    def factory(self) -> Factory:
        """The factory, imported when it is first needed. Raises PluginError where that fails."""
        if not isinstance(self.source, str):
            return self.source
        part = f"{self.kind} {self.name!r} of {self.origin}"

        def failure(error: BaseException) -> str:
            return f"{part}: {self.source} can't be imported: {error_text(error)}"

        with redirect_stdout(sys.stderr), plugin_call("plugin", self.plugin, failure):
            target: object = resolve_name(self.source)
        if not callable(target):
            got = type(target).__name__
            raise PluginError(f"{part}: {self.source} is of type {got}, expected a callable factory")
        return cast(Factory, target)

    @property
    def problem(self) -> str:
        """The error of importing the factory; empty if there is none."""
        try:
            self.factory  # noqa: B018  # the import is what is asked for
        except CtxexpError as error:
            return str(error)
        return ""

    @property
    def origin(self) -> str:
        """Its plugin in words, with distribution and version where it has some."""
        return str(self.supplier or f"plugin {self.plugin!r}")

    @property
    def usage(self) -> str:
        """The text by which a user chooses it: `metric=name`, of a command `ctxexp name`; of a table or figure its
        file."""
        file = f"{self.name}.md" if self.is_table else f"{self.name}.png"
        return {COMMAND: f"ctxexp {self.name}", REPORT: file}.get(self.kind, f"{self.kind}={self.name}")

    @property
    def is_table(self) -> bool:
        """Whether it gives a table of a sweep's runs."""
        return self.kind == REPORT and self.name.startswith("table_")

    @property
    def builtin(self) -> bool:
        """Whether it ships with ctxexp."""
        return self.plugin in FIRST_PARTY

    @property
    def summary(self) -> str:
        """The first sentence of the factory's docstring, empty if it has none of its own; `problem` where there is
        one."""
        if self.problem:
            return self.problem
        doc = vars(self.factory).get("__doc__") if isinstance(self.factory, type) else self.factory.__doc__
        paragraph = " ".join((doc if isinstance(doc, str) else "").strip().partition("\n\n")[0].split())
        return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z])", paragraph, maxsplit=1)[0]


def load_plugin_file(path: Path) -> tuple[types.ModuleType, PluginVersion]:
    """The file's module, and its source for the record: its stem, absolute path, and the hash of its bytes.

    Raises PluginError naming the file and the line where it fails. Nothing is written beside the file.
    """
    path = user_path(path).absolute()
    if not path.is_file():
        beside = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        close = " or ".join(suggestions(path.name, beside))
        raise PluginError(f"no plugin file {path}" + (f"; did you mean {close}?" if close else ""))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PluginError(f"plugin file {path} can't be read: {error.strerror}") from error
    digest = hashlib.sha256(content).hexdigest()[:16]
    module = types.ModuleType(f"{FILE_MODULE}{path.stem}_{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and type hints look names up

    def message(error: BaseException) -> str:
        text = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else error_text(error)
        return f"plugin file {location(path, error)}: {text}"

    try:
        with plugin_call("plugin file", failure=message, within=message):
            exec(compile(content, str(path), "exec"), module.__dict__)
    except PluginError:
        del sys.modules[module.__name__]
        raise
    return module, PluginVersion(path.stem, str(path), f"sha256:{digest}")


def location(path: Path, error: BaseException) -> str:
    """`<path>, line <n>`: the last line of the file that `error` passed through; the path alone if it passed none."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return f"{path}, line {lines[-1]}" if lines else str(path)
