"""Options that are YAML files, ctxexp's, a plugin's: the registered name that they configure, and its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command.names import config_folder
from ctxexp.errors import ConfigError, UnknownName, line, suggestions
from ctxexp.plugins import CONFIG_KINDS, Registry

Option = tuple[str, dict[str, object]]  # its kind, and the node with `name` and arguments


def find_option(registry: Registry, name: str) -> Option:
    """The option of this name, `KIND/NAME` or `NAME`: a registered name or a YAML file. Raises ConfigError for one that
    is none, or several."""
    kind, _, rest = name.partition("/")
    kinds = [kind] if kind in CONFIG_KINDS and rest else list(CONFIG_KINDS)
    option = rest if kinds == [kind] else name
    files = dict(_option_files(registry))
    hits = [k for k in kinds if (k, option) in registry.offers or (k, option) in files]
    if len(hits) > 1:
        raise ConfigError(f"{name!r} is the name of several things; say {' or '.join(f'{k}/{option}' for k in hits)}")
    if hits and (hits[0], option) in registry.offers:
        return hits[0], {"name": option}
    if hits:
        return hits[0], _node(files[hits[0], option])
    if kinds == [kind]:
        raise UnknownName(kind, option, {n for k, n in (*registry.offers, *files) if k == kind})
    every = {n for k, n in (*registry.offers, *files) if k in CONFIG_KINDS}
    close = suggestions(name, every) or suggestions(name.rpartition("/")[2], every)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ";"
    if rest and (near_kinds := suggestions(kind, CONFIG_KINDS)):
        hint = f"; did you mean {near_kinds[0]}/{rest}?"
    raise ConfigError(f"no name {name!r}{hint} ctxexp --help lists the names of each kind ({', '.join(CONFIG_KINDS)})")


def _option_files(registry: Registry) -> Iterator[tuple[tuple[str, str], Path]]:
    """Kind and name of each option that is a YAML file; of two files the one that Hydra takes."""
    for folder in reversed([config_folder(), *map(Path, registry.folders)]):
        for kind in CONFIG_KINDS:
            for path in sorted((folder / kind).rglob("*.yaml")):
                yield (kind, path.relative_to(folder / kind).with_suffix("").as_posix()), path


def _node(path: Path) -> dict[str, object]:
    """The file's node, with the values of the config's own keys in it. Raises ConfigError unless it configures one
    name."""
    try:
        base = OmegaConf.load(config_folder() / "ctxexp.yaml")
        assert isinstance(base, DictConfig)
        own = {str(key): base[key] for key in base if key not in ("defaults", "hydra")}
        whole = OmegaConf.create({**own, "weights": {"name": "mini"}, "option": OmegaConf.load(path)})
        node = OmegaConf.to_container(whole.option, resolve=True)
    except (OSError, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{path} can't be read: {line(str(error))}") from error
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        raise ConfigError(f"{path} is no option of one name, which the kit could check: expected a key `name`")
    return {str(key): value for key, value in node.items() if key != "defaults"}  # Hydra's
