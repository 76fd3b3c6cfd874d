"""`ctxexp conform NAME [key=value ...]`: the conformance kit on a registered name, or on an option that is a YAML
file, ctxexp's or a plugin's: the name that it configures, and its arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command.config import Component, component_of
from ctxexp.command.names import config_folder
from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, DataError, UnknownName, line, suggestions
from ctxexp.files.credentials import mask, refuse_clear
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import Registry, build_registry, convert_value, plugin_files
from ctxexp.testing import check
from ctxexp.testing.encoders import neighbour_values

FIXED = ("device", "weights")  # arguments that the kit doesn't vary: where it runs, and which files there must be
Option = tuple[str, dict[str, object]]  # its kind, and the node with `name` and arguments


def conform(name: str, values: Mapping[str, object]) -> str:
    """The report of a registered name under these arguments, as text; raises ConformanceError if a law is broken."""
    component = _component_of_name(name, values)
    title = mask(f"{component.kind} {component.name}" + "".join(f" {k}={v}" for k, v in component.arguments.items()))
    title += f" of {component.source}" if component.source else ""
    files = values.get("plugins") or [str(file) for file in plugin_files()]
    values = {**component.arguments, **values, "plugins": files}
    again = partial(_fingerprint_in_subprocess, f"{component.kind}/{component.name}", json.dumps(values))
    more: dict[str, dict[str, object]] = {
        "model": {"others": dict(_variants(component)), "neighbours": dict(_neighbours(component))},
        "dataset": {"elsewhere": again},
    }
    return str(check(component.kind, component.make, name=title, **more.get(component.kind, {})))


def _component_of_name(name: str, values: Mapping[str, object]) -> Component:
    """The configured plugin of that name, after loading the files in `values["plugins"]`; other values are its
    arguments."""
    files = values.get("plugins") or [str(file) for file in plugin_files()]  # these stood before the verb
    files = [files] if isinstance(files, str) else files
    paths = cast(list[str], convert_value("plugins", files, list[str]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "plugin", UserWarning)
        registry = build_registry(files=[Path(path) for path in paths])
    for broken in registry.broken:
        print(f"warning: {line(broken)}", file=sys.stderr)
    kind, node = find_option(registry, name)
    arguments = {key: value for key, value in values.items() if key != "plugins"}
    secrets = registry.find(kind, str(node["name"])).secrets if kind == "sink" else ()
    refuse_clear([f"sink.{key}={value}" for key, value in arguments.items()], secrets)
    resolved = cast(dict[str, object], OmegaConf.to_container(OmegaConf.create(arguments), resolve=True))
    return component_of(kind, kind, {**node, **resolved}, registry)


def _fingerprint_in_subprocess(name: str, values: str) -> str:
    """The fingerprint of the data set in a process with another hash seed, so that sets iterate in another order;
    `values` is JSON."""
    code = "import sys; from ctxexp.testing.by_name import fingerprint; print(fingerprint(*sys.argv[1:]))"
    env = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", code, name, values], env=env, capture_output=True, text=True)
    if done.returncode:
        raise DataError(f"another process can't build it: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout.strip()


def fingerprint(name: str, values: str) -> str:
    """The fingerprint of the data set of this name, with these arguments as JSON."""
    corpus: Corpus = _component_of_name(name, json.loads(values)).make()
    return corpus.fingerprint


def _variants(component: Component) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Factories of the model with one argument changed, for each choice of each argument."""
    for key, (kind, default) in (component.signature() or {}).items():
        choices = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
        for choice in choices:
            if key not in FIXED and choice != component.arguments.get(key, default):
                yield f"{key}={choice}", partial(component.make, **{key: choice})


def _neighbours(component: Component) -> Iterator[tuple[str, dict[str, Callable[[], Any]]]]:
    """Each argument of the model that has no list of choices, with builders that give it a value beside its own."""
    for key, (kind, default) in (component.signature() or {}).items():
        if key not in FIXED and kind is not bool and get_origin(kind) is not Literal:
            values = neighbour_values(key, component.arguments.get(key, default))
            yield key, {f"{key}={value}": partial(component.make, **{key: value}) for value in values}


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
