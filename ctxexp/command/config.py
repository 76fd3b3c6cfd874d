"""Checks a composed config before any work: names, arguments and types, each mistake one sentence.

A node that names something (`model`, `dataset`, `transform`, each `metric`, `baseline`) holds `name` and the arguments
of the factory that was registered under it; they are checked against the factory's signature.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from ctxexp.command.types import type_text, typed
from ctxexp.control import Control
from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.files.paths import user_path
from ctxexp.plugins import Registry, arguments
from ctxexp.sink import Sink
from ctxexp.vectors.mixes import check_mixes

MISSING = "???"
Node = dict[str, Any]

# What config.yaml itself holds, by type; the groups' nodes are checked against their factories.
SCALARS: dict[str, Any] = {
    "seed": int,
    "device": str,
    "dtype": Literal["float32", "bfloat16", "float16"],
    "batch_tokens": int,
    "min_contexts": int,
    "bootstrap": int,
    "resume": bool,
    "fit_on": str,
    "sentence.pooling": str,
    "sentence.mixes": list,
    "words.tokenizer": Literal["english", "unicode", "whitespace"],
    "words.lower": bool,
    "words.fold_case": bool,
    "words.punctuation": Literal["drop", "keep"],
    "words.deduplicate": bool,
    "cache.folder": str | None,
    "cache.limit_gb": float | None,
    "tracking.folder": str,
    "tracking.sweep": str | None,
    "figures.published": bool,
    "weights.name": str,
    "plugins": list[str],
}
LEAST = {"seed": 0, "batch_tokens": 1, "min_contexts": 2, "bootstrap": 0, "cache.limit_gb": 0}
MOST = {"seed": 2**63 - 1, "bootstrap": 10**6, "cache.limit_gb": 10**9}  # torch's seeds; what no memory or disk holds
DEVICES = ("auto", "cpu", "cuda", "cuda:1", "mps")
FIT_ON = ("target", "train", "all", "nli:<path>")
NAMED = ("model", "dataset", "control", "transform", "baseline")


def check(config: Node, registry: Registry) -> None:
    """Raise ConfigError (or UnknownName) for the first thing in `config` that can't be used."""
    known = {key.split(".")[0] for key in SCALARS} | {*NAMED, "metric", "sink", "experiment"}
    for key in config:
        if key not in known:
            raise ConfigError(f"no config key {key!r}{near(key, known)}")
    for dotted, expected in SCALARS.items():
        value = _at(config, dotted)
        typed(dotted, value, expected)
        _check_range(dotted, value, dotted)
    _check_places(config)
    if not re.fullmatch(r"target|train|all|nli:(?!<).+", config["fit_on"]):
        raise ConfigError(f"fit_on={config['fit_on']!r}: no such choice{near(config['fit_on'], FIT_ON)}")
    check_mixes(config["sentence"]["mixes"])
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", config["device"]):
        raise ConfigError(f"device={config['device']!r}: no such choice{near(config['device'], DEVICES)}")
    for kind in NAMED:
        node = config.get(kind, {})
        if not _named(node):
            raise ConfigError(f"{kind}: expected one option, as in {kind}=NAME ({', '.join(registry.names(kind))})")
        check_node(kind, kind, node, registry)
    _check_built("control", config["control"], registry, Control)
    metrics = config.get("metric")
    if not isinstance(metrics, dict) or not metrics:
        raise ConfigError(f"metric: expected at least one of {', '.join(registry.names('metric'))}")
    _check_labelled("metric", metrics, registry)
    _check_labelled("sink", config["sink"], registry)
    for node in config["sink"].values():
        _check_built("sink", node, registry, Sink)


def _check_built(kind: str, node: Node, registry: Registry, contract: type) -> None:
    """Raise ConfigError for what a factory says of its values, or if it makes something else than the kind."""
    with registry.credit(kind, node["name"]):
        if not isinstance(made := build(kind, node, registry), contract):
            raise ConfigError(f"{kind} {node['name']!r}: expected a {contract.__name__}, got {type(made).__name__}")


def _check_labelled(kind: str, nodes: Any, registry: Registry) -> None:
    """Raise ConfigError unless the nodes of a group that takes several have names and right arguments."""
    if not isinstance(nodes, dict):
        raise ConfigError(f"{kind}: expected options by label, as in {kind}=[NAME] ({', '.join(registry.names(kind))})")
    for label, node in nodes.items():
        if not re.fullmatch(r"\w[\w-]*", str(label)):
            raise ConfigError(f"{kind}.{short(label)}: expected a name of letters, digits, _ and -")
        if not _named(node):
            raise ConfigError(f"{kind}.{label}: expected a node with a name, got {short(node)}")
        check_node(kind, f"{kind}.{label}", node, registry)


def _named(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get("name"), str)


def _check_range(place: str, value: Any, bounds: str) -> None:
    """Raise ConfigError unless the number, if it is one, lies in the range that a key of config.yaml has."""
    if not isinstance(value, int | float):
        return
    if bounds in LEAST and value < LEAST[bounds]:
        raise ConfigError(f"{place}={value}: expected at least {LEAST[bounds]}")
    if bounds in MOST and value > MOST[bounds]:
        raise ConfigError(f"{place}={short(value)}: expected at most {MOST[bounds]}")


def _check_places(config: Node) -> None:
    """Raise ConfigError for places where a run would write that are none, or lie outside of those that were given."""
    tracking, cache = config["tracking"], config["cache"]["folder"]
    for key, folder in (("tracking.folder", tracking["folder"]), ("cache.folder", cache)):
        if folder is not None and not folder.strip():
            raise ConfigError(f"{key}={folder!r}: expected a folder; . is the one where the command is typed")
        user_path(folder or ".")
    if not re.fullmatch(r"\w[\w.-]*", tracking["sweep"] or "_"):
        raise ConfigError(
            f"tracking.sweep={short(tracking['sweep'])}: expected letters, digits, _ . - (a sweep sets it for its jobs)"
        )


def named(config: Node) -> list[tuple[str, str]]:
    """(kind, name) of everything that the config names, in the order of the flow."""
    nodes = [(kind, config[kind]) for kind in NAMED] + [("metric", node) for node in config["metric"].values()]
    return list(dict.fromkeys((kind, str(node["name"])) for kind, node in nodes))


def build(kind: str, node: Node, registry: Registry) -> Any:
    """What the factory registered under `node['name']` makes of the node's other keys."""
    arguments = {key: value for key, value in node.items() if key != "name"}
    try:
        return registry.find(kind, node["name"]).factory(**arguments)
    except (ConfigError, MetricError) as error:
        whose = re.search(rf"\b({kind}|{re.escape(node['name'])})\b", str(error))
        if whose or type(error) not in (ConfigError, MetricError):
            raise
        raise type(error)(f"{kind} {node['name']!r}: {error}") from error  # whose argument it speaks of


def supplied(kind: str, node: Node, registry: Registry) -> Any:
    """What `build` makes; what a stranger's factory raises is named as theirs."""
    with registry.credit(kind, node["name"]):
        return build(kind, node, registry)


def job_key(config: Node, fingerprint: str, encoder: str, version: str, plugins: Sequence[Node] = ()) -> str:
    """Hex digest (16 digits) of what decides a job's numbers: config less the places, data, encoder, versions.

    `encoder` is the encoder's name, which changes with the content of a checkpoint that kept its path.
    `plugins` are those that supply something to the job: their versions count, files of theirs by content.
    """
    places = ("tracking", "sink", "cache", "resume", "figures", "experiment", "plugins")
    decisive = {k: v for k, v in config.items() if k not in places}
    others = sorted((p["plugin"], p["version"]) for p in plugins)
    text = json.dumps([decisive, fingerprint, encoder, version, *others], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def check_node(kind: str, place: str, node: Node, registry: Registry) -> None:
    """Raise ConfigError unless the node's keys are arguments of what it names, of their types, and complete."""
    expected = arguments(registry.find(kind, str(node["name"])).factory)
    if expected is None:
        return  # takes anything
    for key, value in node.items():
        if key == "name":
            continue
        if key not in expected:
            raise ConfigError(f"{kind} {node['name']!r} has no argument {key!r}{near(key, expected)}")
        if value == MISSING:
            needed = type_text(expected[key][0]).removesuffix(" | null")
            raise ConfigError(f"{kind} {node['name']!r} needs {place}.{key}=<{needed}>")
        typed(f"{place}.{key}", value, expected[key][0])
        if key == "seed":
            _check_range(f"{place}.seed", value, "seed")
    for key, (kind_of, default) in expected.items():
        if default is inspect.Parameter.empty and key not in node:
            raise ConfigError(f"{kind} {node['name']!r} needs {place}.{key}=<{type_text(kind_of)}>")


def _at(config: Node, dotted: str) -> Any:
    value: Any = config
    for key in dotted.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ConfigError(f"{dotted} is missing from the config")
        value = value[key]
    return value
