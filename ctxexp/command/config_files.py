"""Configs as Hydra finds them: the names of a group, listed once a command."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_loader import ConfigLoader
from hydra.core.object_type import ObjectType

_listed_options: WeakKeyDictionary[ConfigLoader, dict[str, list[str]]] = WeakKeyDictionary()  # by group


def group_options(loader: ConfigLoader, group: str) -> list[str]:
    """The names of a group, those in its folders (`flow/0`) included."""
    listed = _listed_options.setdefault(loader, {})
    if group not in listed:
        # A loader copies its repository of folders at each question: the repository is asked itself.
        folders = loader.repository if isinstance(loader, ConfigLoaderImpl) else loader
        inner = folders.get_group_options(group, results_filter=ObjectType.GROUP)
        names = [*folders.get_group_options(group)]
        names += [f"{folder}/{name}" for folder in inner for name in group_options(loader, f"{group}/{folder}")]
        listed[group] = [str(name) for name in names if ":" not in name]  # no locations of a sweep
    return listed[group]
