"""A run's config, typed: each key of config.yaml with its type and range, and a part for each thing that it names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeGuard, TypeVar, cast, get_type_hints

from ctxexp.command.names import LISTS
from ctxexp.command.options import RENAMED, RunOptions
from ctxexp.control import Control
from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.metric import RUN
from ctxexp.plugins import KINDS, Factory, Offer, Registry, Source, arguments
from ctxexp.plugins.types import Seed, convert_value, type_text
from ctxexp.sink import Sink

MISSING = "???"
CONTRACTS = {"control": Control, "engine": Engine, "sink": Sink}
# No number comes from these.
PLACES = ("tracking", "sink", "cache", "engine", "resume", "figures", "objective", "experiment", "plugins")

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """An option that a config chooses of a kind (model, metric, ...), and the arguments that the config gives it."""

    kind: str
    name: str
    arguments: Mapping[str, Any]
    registry: Registry = field(repr=False, compare=False)

    @property
    def offer(self) -> Offer:
        """The registered offer: its supplier and its factory. Raises UnknownName."""
        return self.registry.find(self.kind, self.name)

    @property
    def source(self) -> Source | None:
        """The plugin that supplied the part; None: ctxexp itself, or an object of Python."""
        return self.registry.source(self.kind, self.name)

    def plugin_call(self) -> AbstractContextManager[None]:
        """A context whose errors name the plugin that supplied the part."""
        return self.registry.plugin_call(self.kind, self.name)

    def make(self, **others: object) -> Any:
        """Build the part from its arguments, with `others` in place of those of the same name."""
        with self.plugin_call():
            try:
                instance = self.offer.factory(**{**self.arguments, **others})
            except (ConfigError, MetricError) as error:
                whose = re.search(rf"\b({self.kind}|{re.escape(self.name)})\b", str(error))
                if whose or type(error) not in (ConfigError, MetricError):
                    raise
                raise type(error)(f"{self.kind} {self.name!r}: {error}") from error  # whose argument it speaks of
            if (contract := CONTRACTS.get(self.kind)) and not isinstance(instance, contract):
                got = type(instance).__name__
                raise ConfigError(f"{self.kind} {self.name!r}: expected a {contract.__name__}, got {got}")
            return instance

    def signature(self) -> dict[str, tuple[object, object]] | None:
        """Type and default of each argument that the factory takes; None: it takes any."""
        return arguments(self.offer.factory)


@dataclass(frozen=True, kw_only=True)
class Config(RunOptions):
    """A whole, checked config: its own keys, and its parts."""

    model: Part
    dataset: Part
    control: Part
    transform: Part
    baseline: Part
    metric: Mapping[str, Part]
    sink: Mapping[str, Part]
    engine: Part

    def parts(self) -> Iterator[Part]:
        """The parts that decide the run's numbers, in the order of the flow."""
        yield from (self.model, self.dataset, self.control, self.transform, self.baseline, *self.metric.values())
        named = {name for metric in self.metric.values() for name in metric.arguments.get("baselines", ())} - {RUN}
        yield from (Part("baseline", name, {}, self.baseline.registry) for name in sorted(named))

    def with_factories(self, kind: str, factories: Mapping[str, Factory]) -> Config:
        """The config with these factories, by name, in place of the options that it chooses of the kind."""
        registry = replace(self.model.registry, offers=dict(self.model.registry.offers))
        for name, factory in factories.items():
            if kind in LISTS:
                _check_label(kind, name)
            registry.offers[kind, name] = Offer(kind, name, factory, "python")
        parts = {name: Part(kind, name, {}, registry) for name in factories}
        changed: dict[str, Any] = {kind: parts if kind in LISTS else parts[next(iter(factories))]}
        return replace(self, **changed)


def check(node: Mapping[str, object], registry: Registry) -> Config:
    """The typed config of these plain values. Raises ConfigError (or UnknownName) for the first that can't be used."""
    own = {key: value for key, value in node.items() if key not in KINDS}
    choices = _filled(RunOptions, _with_present_names(own))
    parts: dict[str, Any] = {}
    for kind in KINDS:
        if kind in LISTS:
            parts[kind] = parts_of(kind, node.get(kind), registry)
        elif _is_named(one := node.get(kind)):
            parts[kind] = part_of(kind, kind, one, registry)
        else:
            raise ConfigError(f"{kind}: expected one option, as in {kind}=NAME ({', '.join(registry.names(kind))})")
    if not parts["metric"]:
        raise ConfigError(f"metric: expected at least one of {', '.join(registry.names('metric'))}")
    return Config(**vars(choices), **parts)


def _with_present_names(node: dict[str, object]) -> dict[str, object]:
    """The node with the keys of former versions, as in an earlier run's config, under their present names."""
    for former, present in RENAMED.items():
        (section, key), (new_section, new_key) = former.split("."), present.split(".")
        if isinstance(values := node.get(section), Mapping) and key in values:
            rest = {name: value for name, value in values.items() if name != key}
            node = {**node, section: rest, new_section: {new_key: values[key]}}
    return node


def parts_of(kind: str, nodes: object, registry: Registry) -> dict[str, Part]:
    """The parts of a group that takes several, by label. Raises ConfigError for nodes that are none."""
    if not isinstance(nodes, Mapping):
        raise ConfigError(f"{kind}: expected options by label, as in {kind}=[NAME] ({', '.join(registry.names(kind))})")
    for label, one in nodes.items():
        _check_label(kind, label)
        if not _is_named(one):
            raise ConfigError(f"{kind}.{label}: expected a node with a name, got {short(one)}")
    return {label: part_of(kind, f"{kind}.{label}", one, registry) for label, one in nodes.items()}


def _check_label(kind: str, label: object) -> None:
    """Raise ConfigError for a label that names no curve and no file."""
    if not isinstance(label, str) or not re.fullmatch(r"\w[\w-]*", label):
        raise ConfigError(f"{kind}.{short(label)}: expected a name of letters, digits, _ and -")


def _filled(kind: type[T], node: Mapping[str, object], place: str = "") -> T:
    """The dataclass with these values, those that are dataclasses filled too."""
    hints = get_type_hints(kind, include_extras=True)
    for key in node:
        if key not in hints:
            raise ConfigError(f"no config key {place + str(key)!r}{near(str(key), [*hints, *KINDS])}")
    values: dict[str, object] = {}
    for key, expected in hints.items():
        if key not in node:
            if key not in vars(kind):  # it has no default
                raise ConfigError(f"{place}{key} is missing from the config")
        elif is_dataclass(expected):
            if not isinstance(inner := node[key], Mapping):
                keys = ", ".join(each.name for each in fields(expected))
                raise ConfigError(f"{key}={short(inner)}: expected keys with values ({keys})")
            values[key] = _filled(cast(type, expected), inner, f"{key}.")
        else:
            values[key] = convert_value(place + key, node[key], expected)
    return kind(**values)


def _is_named(node: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(node, Mapping) and isinstance(node.get("name"), str)


def part_of(kind: str, place: str, node: Mapping[str, object], registry: Registry) -> Part:
    """The part that a node describes. Raises ConfigError unless its keys are the arguments of what it names, of their
    types, and complete."""
    part = Part(kind, str(node["name"]), {key: value for key, value in node.items() if key != "name"}, registry)
    signature = part.signature()
    expected = signature or {}
    for key, value in part.arguments.items() if signature is not None else ():
        if key not in expected:
            raise ConfigError(f"{kind} {part.name!r} has no argument {key!r}{near(key, expected)}")
        if value == MISSING:
            needed = type_text(expected[key][0]).removesuffix(" | null")
            raise ConfigError(f"{kind} {part.name!r} needs {place}.{key}=<{needed}>")
        convert_value(f"{place}.{key}", value, Seed if key == "seed" and expected[key][0] is int else expected[key][0])
    for key, (type_of, default) in expected.items():
        if default is inspect.Parameter.empty and key not in node:
            raise ConfigError(f"{kind} {part.name!r} needs {place}.{key}=<{type_text(type_of)}>")
    return part
