"""Plugins that are single files: `plugins=[./my_plugin.py]` on the command line, without packaging."""

from __future__ import annotations

import hashlib
import sys
import traceback
import types
from pathlib import Path

from ctxexp.errors import PluginError, said, stranger, suggestions
from ctxexp.files.paths import user_path
from ctxexp.plugins.offers import Source


def load(path: Path) -> tuple[types.ModuleType, Source]:
    """The file's module and what records it: its stem, absolute path, and the hash of the bytes that were run.

    Raises PluginError naming file and line of what it raises. Nothing is written beside the file.
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
    module = types.ModuleType(f"ctxexp_plugin_{path.stem}_{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and type hints look names up
    try:
        with stranger():
            exec(compile(content, str(path), "exec"), module.__dict__)
    except Exception as error:  # a stranger's file may raise anything
        del sys.modules[module.__name__]
        raise PluginError(f"plugin file {place(path, error)}: {_words(error)}") from error
    return module, Source(path.stem, str(path), f"sha256:{digest}")


def place(path: Path, error: BaseException) -> str:
    """`<path>, line <n>`: the last line of the file that `error` passed through; the path alone if it passed none."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}"
    error = error.__cause__ if isinstance(error.__cause__, SystemExit) else error  # `stranger` had caught that
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else said(error)
