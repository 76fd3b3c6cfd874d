"""The names of this process: its registry, with the files that were asked for, and where config files lie."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from ctxexp.errors import ConfigError
from ctxexp.files.paths import user_path
from ctxexp.plugins import KINDS, Registry, build_registry

GROUPS = (*KINDS, "weights", "experiment")
LISTS = ("metric", "sink")  # groups of which a run may have several

_files: tuple[Path, ...] = ()  # what plugins=[...] named, absolute
_folder: Path | None = None  # what --config-dir named


@cache
def registry() -> Registry:
    """The registry of this process. What is broken is in its `broken`; the command says it once, not every worker."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "plugin", UserWarning)
        return build_registry(files=_files)


def use(files: object) -> None:
    """Take the names that these plugin files bring into the registry; what was asked for before stays out."""
    global _files
    files = () if files is None else files
    if not isinstance(files, list | tuple) or not all(isinstance(file, str) for file in files):
        raise ConfigError(f"plugins={files}: expected a list of files, as in plugins=[./my_plugin.py]")
    wanted = tuple(user_path(file).absolute() for file in files)
    if wanted != _files:
        _files = wanted
        registry.cache_clear()


def used() -> tuple[Path, ...]:
    """The files whose names are in the registry."""
    return _files


def config_folder() -> Path:
    """`conf`: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def config_folders() -> list[Path]:
    """The folders that config files are looked up in: our own, those of plugins, the user's."""
    return [config_folder(), *map(Path, registry().folders), *([_folder] if _folder else [])]


def look_in(folder: str | None) -> None:
    """Look config files up in this folder too; None: no longer."""
    global _folder
    _folder = Path(folder).absolute() if folder else None
