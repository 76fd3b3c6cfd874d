"""Configs as Hydra finds them: the names of a group, listed once a command, and each config, parsed once."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from weakref import WeakKeyDictionary

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource

_listed_options: WeakKeyDictionary[ConfigLoader, dict[str, list[str]]] = WeakKeyDictionary()  # by group
_parsed: dict[tuple[str, str, str], tuple[object, bytes]] = {}  # by place: state, and the pickled config


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


def parse_once(loader: ConfigLoader) -> None:
    """Let the loader take configs that this process has parsed before and that haven't changed since: by itself Hydra
    parses all of them, its own too, for each config that it composes."""
    if isinstance(loader, ConfigLoaderImpl):
        loader.repository = _ParsedOnce(loader.config_search_path)


class _ParsedOnce(ConfigRepository):  # type: ignore[misc]  # Hydra is untyped to us
    """Hydra's repository of configs, over those that this process has parsed."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        """A copy of the config that may be changed, as Hydra does."""
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        if source is None:
            return None
        key, state = (config_path, source.provider, source.path), _state(source, config_path)
        known, content = _parsed.get(key, (None, b""))
        if known is not state and (known != state or isinstance(state, ConfigNode)):
            content = pickle.dumps(super().load_config(config_path))
            _parsed[key] = state, content
        return pickle.loads(content)

    def __deepcopy__(self, memo: object) -> _ParsedOnce:
        """A repository whose sources can be set anew, which is why Hydra copies it."""
        clone = copy.copy(self)
        clone.sources = [*self.sources]
        return clone


def _state(source: ConfigSource, config_path: str) -> object:
    """A value that differs where the content does: a file's time and size, or the object that Python stored; a module's
    files stay as they are."""
    name = source._normalize_file_name(config_path)
    if source.scheme() == "file":
        file = Path(source.path, name).stat()
        return file.st_mtime_ns, file.st_size
    return ConfigStore.instance()._load(name) if source.scheme() == "structured" else ()
