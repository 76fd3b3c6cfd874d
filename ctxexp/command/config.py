"""A run's config, typed: each key of config.yaml with its type and range, and a part for each thing that it names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, cast, get_type_hints

from annotated_types import Ge, Le

from ctxexp.command.names import LISTS
from ctxexp.command.types import Seed, type_text, typed
from ctxexp.control import Control
from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.files.paths import user_path
from ctxexp.plugins import KINDS, Factory, Offer, Registry, Source, arguments
from ctxexp.results.objective import Objective
from ctxexp.results.run_info import PluginInfo
from ctxexp.sink import Sink
from ctxexp.vectors.mixes import check_mixes

MISSING = "???"
DEVICES = ("auto", "cpu", "cuda", "cuda:1", "mps")
FIT_ON = ("target", "train", "all", "nli:<path>")
CONTRACTS = {"control": Control, "engine": Engine, "sink": Sink}  # built at once: they say what they think of values
# No number comes from these.
PLACES = ("tracking", "sink", "cache", "engine", "resume", "figures", "objective", "experiment", "plugins")

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """What a config names of a kind, and the arguments that it gives it."""

    kind: str
    name: str
    arguments: Mapping[str, Any]
    registry: Registry = field(repr=False, compare=False)

    @property
    def offer(self) -> Offer:
        """Who supplies it, and what builds it. Raises UnknownName."""
        return self.registry.find(self.kind, self.name)

    @property
    def source(self) -> Source | None:
        """The plugin that brought it; None: ctxexp, or Python."""
        return self.registry.source(self.kind, self.name)

    def credit(self) -> AbstractContextManager[None]:
        """Whatever is raised inside names the plugin that brought it."""
        return self.registry.credit(self.kind, self.name)

    def make(self, **others: object) -> Any:
        """What its factory makes of its arguments, `others` in their place."""
        with self.credit():
            try:
                return self.offer.factory(**{**self.arguments, **others})
            except (ConfigError, MetricError) as error:
                whose = re.search(rf"\b({self.kind}|{re.escape(self.name)})\b", str(error))
                if whose or type(error) not in (ConfigError, MetricError):
                    raise
                raise type(error)(f"{self.kind} {self.name!r}: {error}") from error  # whose argument it speaks of

    def known(self) -> dict[str, tuple[object, object]] | None:
        """Type and default of each argument that its factory takes; None: any."""
        return arguments(self.offer.factory)


@dataclass(frozen=True, kw_only=True)
class Words:
    """From text to words, the same for every model."""

    tokenizer: Literal["english", "unicode", "whitespace"]
    lower: bool
    fold_case: bool
    punctuation: Literal["drop", "keep"]
    deduplicate: bool
    max_contexts: Annotated[int | None, Ge(2)]
    max_sentences: Annotated[int, Ge(2)]
    sample: Annotated[int | None, Ge(1)]
    one_pass: Annotated[int | None, Ge(1), Le(4096)] = None

    def __post_init__(self) -> None:
        read = [key for key in ("max_contexts", "one_pass") if vars(self)[key] is not None]
        if not read and self.sample is not None:
            raise ConfigError(f"words.sample={self.sample} needs words.max_contexts, such as 256: both bound the text")
        if len(read) == 2:
            raise ConfigError("words.one_pass takes all contexts, words.max_contexts bounds them; leave one out")
        if read and not self.deduplicate:
            raise ConfigError(f"words.{read[0]} counts equal sentences as one context: leave deduplicate=false out")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """How a sentence gets one vector."""

    pooling: str
    mixes: list[Any]

    def __post_init__(self) -> None:
        check_mixes(self.mixes)


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Where vectors are kept, and how many."""

    folder: str | None
    limit_gb: Annotated[float, Ge(0), Le(10**9)] | Literal["auto"] | None  # no disk holds more

    def __post_init__(self) -> None:
        _check_folder("cache.folder", self.folder)


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Where results go."""

    folder: str
    sweep: str | None

    def __post_init__(self) -> None:
        _check_folder("tracking.folder", self.folder)
        if not re.fullmatch(r"\w[\w.-]*", self.sweep or "_"):
            raise ConfigError(f"tracking.sweep={short(self.sweep)}: expected letters, digits, _ . - (a sweep sets it)")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What figures show beside the run."""

    published: bool
    explorer: Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Which checkpoints models take."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The config's own keys."""

    seed: Seed
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    batch_tokens: Annotated[int, Ge(1)]
    min_contexts: Annotated[int, Ge(2)]
    bootstrap: Annotated[int, Ge(0), Le(10**6)]  # what no memory holds
    resume: bool
    fit_on: str
    sentence: Sentence
    words: Words
    cache: Cache
    tracking: Tracking
    figures: Figures
    weights: Weights
    plugins: list[str]
    objective: str | None = None
    experiment: object = None

    def __post_init__(self) -> None:
        most = self.words.max_contexts
        if most is not None and most < self.min_contexts:
            raise ConfigError(
                f"words.max_contexts={most} is below min_contexts={self.min_contexts}: no word could have enough"
            )
        if not re.fullmatch(r"target|train|all|nli:(?!<).+", self.fit_on):
            raise ConfigError(f"fit_on={short(self.fit_on)}: no such choice{near(self.fit_on, FIT_ON)}")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device):
            raise ConfigError(f"device={short(self.device)}: no such choice{near(self.device, DEVICES)}")
        if self.objective is not None:
            Objective.read(self.objective)


@dataclass(frozen=True, kw_only=True)
class Config(Choices):
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
        """Everything that numbers come from, in the order of the flow."""
        yield from (self.model, self.dataset, self.control, self.transform, self.baseline, *self.metric.values())

    def having(self, kind: str, made: Mapping[str, Factory]) -> Config:
        """The config with what these factories of Python make, by name, in place of what it names of the kind."""
        registry = replace(self.model.registry, offers=dict(self.model.registry.offers))
        for name, factory in made.items():
            if kind in LISTS:
                _check_label(kind, name)
            registry.offers[kind, name] = Offer(kind, name, factory, "python")
        parts = {name: Part(kind, name, {}, registry) for name in made}
        changed: dict[str, Any] = {kind: parts if kind in LISTS else parts[next(iter(made))]}
        return replace(self, **changed)


def check(node: Mapping[str, object], registry: Registry) -> Config:
    """The typed config of these plain values. Raises ConfigError (or UnknownName) for the first that can't be used."""
    own = {key: value for key, value in node.items() if key not in KINDS}
    choices = _filled(Choices, own)
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
        if key not in node and key not in vars(kind):  # it has no default
            raise ConfigError(f"{place}{key} is missing from the config")
        if is_dataclass(expected):
            if not isinstance(inner := node[key], Mapping):
                keys = ", ".join(each.name for each in fields(expected))
                raise ConfigError(f"{key}={short(inner)}: expected keys with values ({keys})")
            values[key] = _filled(cast(type, expected), inner, f"{key}.")
        elif key in node:
            values[key] = typed(place + key, node[key], expected)
    return kind(**values)


def _is_named(node: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(node, Mapping) and isinstance(node.get("name"), str)


def part_of(kind: str, place: str, node: Mapping[str, object], registry: Registry) -> Part:
    """The part that a node describes. Raises ConfigError unless its keys are the arguments of what it names, of their
    types, and complete."""
    part = Part(kind, str(node["name"]), {key: value for key, value in node.items() if key != "name"}, registry)
    known = part.known()
    expected = known or {}
    for key, value in part.arguments.items() if known is not None else ():
        if key not in expected:
            raise ConfigError(f"{kind} {part.name!r} has no argument {key!r}{near(key, expected)}")
        if value == MISSING:
            needed = type_text(expected[key][0]).removesuffix(" | null")
            raise ConfigError(f"{kind} {part.name!r} needs {place}.{key}=<{needed}>")
        typed(f"{place}.{key}", value, Seed if key == "seed" and expected[key][0] is int else expected[key][0])
    for key, (type_of, default) in expected.items():
        if default is inspect.Parameter.empty and key not in node:
            raise ConfigError(f"{kind} {part.name!r} needs {place}.{key}=<{type_text(type_of)}>")
    if (contract := CONTRACTS.get(kind)) and not isinstance(made := part.make(), contract):
        with part.credit():
            raise ConfigError(f"{kind} {part.name!r}: expected a {contract.__name__}, got {type(made).__name__}")
    return part


def _check_folder(key: str, folder: str | None) -> None:
    if folder is not None and not folder.strip():
        raise ConfigError(f"{key}={folder!r}: expected a folder; . is the one where the command is typed")
    user_path(folder or ".")


def supplied_by(config: Config) -> tuple[PluginInfo, ...]:
    """The plugins that supply something to this run, with what they supply."""
    brought: dict[Source, dict[str, None]] = {}
    for part in config.parts():
        if source := part.source:
            brought.setdefault(source, {})[f"{part.kind} {part.name}"] = None
    return tuple(PluginInfo(**vars(source), supplies=tuple(names)) for source, names in brought.items())
