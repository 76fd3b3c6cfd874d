"""The names of this process: its registry, with the files that were asked for, and where config files lie."""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

from ctxexp.errors import ConfigError
from ctxexp.files.paths import user_path
from ctxexp.plugins import CONFIG_KINDS, Registry, build_registry

GROUPS = (*CONFIG_KINDS, "weights", "experiment")
LISTS = ("metric", "sink")  # groups of which a run may have several

_files: tuple[Path, ...] = ()  # files of plugins=[...], absolute
_folder: Path | None = None  # of --config-dir


@cache
def registry() -> Registry:
    """The registry of this process. Broken plugins are listed in its `broken`; the command reports them once, workers
    don't."""
    with redirect_stdout(sys.stderr), warnings.catch_warnings():  # a plugin may print at its import
        warnings.filterwarnings("ignore", "plugin|metadata", UserWarning)
        return build_registry(files=_files)


def load_plugin_files(files: object) -> None:
    """Put the names of these plugin files into the registry, in place of those of earlier files. Raises ConfigError."""
    global _files
    files = () if files is None else files
    if not isinstance(files, list | tuple) or not all(isinstance(file, str) for file in files):
        raise ConfigError(f"plugins={files}: expected a list of files, as in plugins=[./my_plugin.py]")
    paths = tuple(user_path(file).absolute() for file in files)
    if paths != _files:
        _files = paths
        registry.cache_clear()


def plugin_files() -> tuple[Path, ...]:
    """The plugin files whose names are in the registry, absolute."""
    return _files


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
