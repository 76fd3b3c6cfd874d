"""Plugins that are single files: `plugins=[./my_plugin.py]` on the command line, without packaging."""

from __future__ import annotations

import hashlib
import sys
import traceback
import types
from pathlib import Path

from ctxexp.errors import FILE_MODULE, PluginError, error_text, plugin_call, suggestions
from ctxexp.files.paths import user_path
from ctxexp.plugins.offers import PluginVersion


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
