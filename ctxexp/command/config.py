"""A run's config with types: each key of ctxexp.yaml with its type and range, and a part for each option it chooses.
Its secrets are refused in clear, and unresolved where the config is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, cast, get_type_hints

from annotated_types import Ge, Le
from omegaconf import DictConfig, OmegaConf
from omegaconf.resolvers import oc

from ctxexp.baselines import Baseline
from ctxexp.command.options import MISSING, find_option
from ctxexp.controls import Control
from ctxexp.engines import Engine
from ctxexp.errors import ConfigError, MetricError, UnknownKey, error_text, near, short
from ctxexp.files.credentials import remember
from ctxexp.maths.word_mix import BANDS, Weights, WordMix
from ctxexp.metrics import OF_RUN
from ctxexp.plugins import CONFIG_KINDS, Factory
from ctxexp.plugins.arguments import Seed, arguments, convert_value, type_text
from ctxexp.plugins.registry import GROUPS, LISTS, Offer, Registry, load_plugin_files, refuse_typed_secrets
from ctxexp.sinks import Sink
from ctxexp.vectors.stores import check_mixes

DEVICES = ("auto", "cpu", "cuda", "cuda:1", "mps")
FIT_ON = ("target", "train", "all", "nli:<path>")
MAX_CONTEXTS, SHARDS = "words.max_contexts", "one_pass.shards"  # which ask for a reader
# Base classes that instances are checked against.
CONTRACTS = {
    "baseline": Baseline,
    "control": Control,
    "engine": Engine,
    "sink": Sink,
}
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """From text to words, the same for every model."""

    tokenizer: Literal["english", "unicode", "whitespace"]
    lower: bool
    fold_case: bool
    punctuation: Literal["drop", "keep"]
    deduplicate: bool
    max_contexts: Annotated[int | None, Ge(2)]
    max_sentences: Annotated[int, Ge(2)]
    sample: Annotated[int | None, Ge(1)]
    mean: Weights = "bands"
    bands: list[float] | None = None

    def __post_init__(self) -> None:
        _ = self.mix

    @property
    def mix(self) -> WordMix:
        """How words are weighed in means over them."""
        return WordMix(weights=self.mean, bands=self.bands or BANDS)


@dataclass(frozen=True, kw_only=True)
class OnePassOptions:
    """Whether a text is measured while it is encoded, without storing a row."""

    shards: Annotated[int | None, Ge(1), Le(4096)] = None  # of the text; None: rows are stored


@dataclass(frozen=True, kw_only=True)
class PoolingOptions:
    """How a sentence gets one vector."""

    pooling: str | None  # None: the model's own
    mixes: list[Any]

    def __post_init__(self) -> None:
        check_mixes(self.mixes)


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Where vectors are kept, and how many."""

    folder: str | None
    limit_gb: Annotated[float, Ge(0), Le(10**9)] | Literal["auto"] | None  # no disk holds more


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Where results go."""

    folder: str
    sweep: str | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Contents of figures beside the run itself."""

    published: bool
    explorer: Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class WeightsGroup:
    """Which checkpoints models take."""

    name: str


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The config's own keys."""

    seed: Seed
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    batch_tokens: Annotated[int, Ge(1)]
    min_contexts: Annotated[int, Ge(2)]
    bootstrap: Annotated[int, Ge(0), Le(10**6)]  # what no memory holds
    resume: bool
    fit_on: str
    sentence: PoolingOptions
    words: WordOptions
    cache: Cache
    tracking: Tracking
    figures: Figures
    weights: WeightsGroup
    plugins: list[str]
    one_pass: OnePassOptions = OnePassOptions()
    intervals: Literal["new_text", "these_words"] = "new_text"
    experiment: object = None
    verbose: bool = False

    def __post_init__(self) -> None:
        self._check_bounds()
        most = self.words.max_contexts
        if most is not None and most < self.min_contexts:
            raise ConfigError(
                f"words.max_contexts={most} is below min_contexts={self.min_contexts}: no word could have enough"
            )
        if not re.fullmatch(r"target|train|all|nli:(?!<).+", self.fit_on):
            raise ConfigError(f"fit_on={short(self.fit_on)}: no such choice{near(self.fit_on, FIT_ON)}")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device):
            raise ConfigError(f"device={short(self.device)}: no such choice{near(self.device, DEVICES)}")

    def _check_bounds(self) -> None:
        """Raise ConfigError for bounds of the text that exclude each other."""
        words = self.words
        bounds = {MAX_CONTEXTS: words.max_contexts, SHARDS: self.one_pass.shards}
        keys = [key for key, value in bounds.items() if value is not None]
        if not keys and words.sample is not None:
            raise ConfigError(f"words.sample={words.sample} needs words.max_contexts, such as 256: both bound the text")
        if len(keys) == 2:
            raise ConfigError(f"{SHARDS} takes all contexts, words.max_contexts bounds them; leave one out")
        if keys and not words.deduplicate:
            raise ConfigError(f"{keys[0]} counts equal sentences as one context: leave deduplicate=false out")


def key_names(kind: Any = RunOptions) -> Iterator[str]:
    """The dotted names of the config's own keys."""
    for key, expected in get_type_hints(kind).items():
        yield from (f"{key}.{inner}" for inner in key_names(expected)) if is_dataclass(expected) else [key]


@dataclass(frozen=True)
class Component:
    """The option that a config chooses for a kind (model, metric, ...), with the arguments that the config gives it."""

    offer: Offer
    arguments: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return self.offer.kind

    @property
    def name(self) -> str:
        return self.offer.name

    @property
    def factory(self) -> Factory:
        """The factory with its arguments, for more of what `make` has checked."""
        return partial(self.offer.factory, **self.arguments)

    def make(self, **overrides: object) -> Any:
        """Build the part from its arguments and `overrides`, which win over arguments of the same name."""
        with self.offer.plugin_call():
            try:
                instance = self.factory(**overrides)
            except (ConfigError, MetricError) as error:
                names_part = re.search(rf"\b({self.kind}|{re.escape(self.name)})\b", str(error))
                if names_part or type(error) not in (ConfigError, MetricError):
                    raise
                raise type(error)(f"{self.kind} {self.name!r}: {error}") from error
            if (contract := CONTRACTS.get(self.kind)) and not isinstance(instance, contract):
                got = type(instance).__name__
                raise ConfigError(f"{self.kind} {self.name!r}: expected a ctxexp.{contract.__name__}, got {got}")
            return instance

    def signature(self) -> dict[str, tuple[object, object]] | None:
        """Type and default of each argument that the factory takes; None: it takes any."""
        return arguments(self.offer.factory)

    @property
    def choices(self) -> dict[str, Any]:
        """The arguments that aren't the factory's defaults."""
        defaults = {key: default for key, (_, default) in (self.signature() or {}).items()}
        return {key: value for key, value in self.arguments.items() if key not in defaults or value != defaults[key]}


@dataclass(frozen=True, kw_only=True)
class Config(RunOptions):
    """A complete, checked config: its own keys, and its parts."""

    model: Component
    dataset: Component
    control: Component
    transform: Component
    baseline: Component
    metric: Mapping[str, Component]
    sink: Mapping[str, Component]
    engine: Component
    registry: Registry = field(repr=False, compare=False)

    def result_components(self) -> Iterator[Component]:
        """The parts that can change the run's numbers (no sink, no engine), in the order of the flow; baselines that
        metrics name besides the run's come last."""
        yield from (self.model, self.dataset, self.control, self.transform, self.baseline, *self.metric.values())
        named = {name for metric in self.metric.values() for name in metric.arguments.get("baselines", ())} - {OF_RUN}
        yield from map(self.named_baseline, sorted(named))

    def named_baseline(self, name: str) -> Component:
        """The baseline that `baseline=NAME` chooses, for metrics that name it besides the run's. Raises UnknownName."""
        option = find_option("baseline", name)
        return component_of("baseline", "baseline", option.values if option else {"name": name}, self.registry)


def own_component(kind: str, name: str, factory: Factory) -> Component:
    """A part that Python gave, by its factory, in place of an option. Raises ConfigError for a label that names no
    curve."""
    if kind in LISTS:
        _check_label(kind, name)
    return Component(Offer(kind, name, factory, "python"), {})


def plain_values(cfg: DictConfig, *, resolve: bool = True) -> dict[str, object]:
    """The config as plain values, interpolations resolved unless `resolve` is false, Hydra's own part left out."""
    own = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    values = OmegaConf.to_container(own, resolve=resolve)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def values_of_run(folder: Path) -> dict[str, object]:
    """The config of a run's folder as plain values, its plugins' files loaded. Raises ConfigError."""
    try:
        config = OmegaConf.load(folder / "config.yaml")
        assert isinstance(config, DictConfig)
        values = plain_values(config)
        assert isinstance(values["model"], dict)
    except Exception as error:  # YAML's, OmegaConf's, a disk's
        raise ConfigError(f"{folder} holds no run's config.yaml that can be read: {error_text(error)}") from error
    load_plugin_files(values.get("plugins"))
    words = values.get("words")
    if isinstance(words, dict) and "weights" in words:  # as older runs called it
        words["mean"] = words.pop("weights")
    return values


def parse_config(node: Mapping[str, object], registry: Registry) -> Config:
    """The typed config of these plain values. Raises ConfigError (or UnknownName) for the first unusable one."""
    own = {key: value for key, value in node.items() if key not in CONFIG_KINDS}
    choices = _filled(RunOptions, own)
    parts: dict[str, Any] = {}
    for kind in CONFIG_KINDS:
        if kind in LISTS:
            parts[kind] = components_of(kind, node.get(kind), registry)
        elif _is_named(one := node.get(kind)):
            parts[kind] = component_of(kind, kind, one, registry)
        else:
            raise ConfigError(f"{kind}: expected one option, as in {kind}=NAME ({', '.join(registry.names(kind))})")
    if not parts["metric"]:
        raise ConfigError(f"metric: expected at least one of {', '.join(registry.names('metric'))}")
    return Config(**vars(choices), **parts, registry=registry)


def components_of(kind: str, nodes: object, registry: Registry) -> dict[str, Component]:
    """The parts of a group of which a run may have several, by label. Raises ConfigError for a value that isn't a
    mapping of labels to nodes with a `name`."""
    if not isinstance(nodes, Mapping):
        raise ConfigError(f"{kind}: expected options by label, as in {kind}=[NAME] ({', '.join(registry.names(kind))})")
    for label, node in nodes.items():
        _check_label(kind, label)
        if not _is_named(node):
            raise ConfigError(f"{kind}.{label}: expected a node with a name, got {short(node)}")
    return {label: component_of(kind, f"{kind}.{label}", node, registry) for label, node in nodes.items()}


def _check_label(kind: str, label: object) -> None:
    """Raise ConfigError unless the label consists of letters, digits, _ and -: curves and files are named by it."""
    if not isinstance(label, str) or not re.fullmatch(r"\w[\w-]*", label):
        raise ConfigError(f"{kind}.{short(label)}: expected a name of letters, digits, _ and -")


def _filled(kind: type[T], node: Mapping[str, object], place: str = "") -> T:
    """An instance of the dataclass `kind` with these values, converted to their types; nested dataclasses likewise.
    `place` is the path of the node in the config, for messages."""
    hints = get_type_hints(kind, include_extras=True)
    for key in node:
        if key not in hints:
            raise UnknownKey(f"no config key {place + str(key)!r}{near(str(key), [*hints, *CONFIG_KINDS])}")
    values: dict[str, object] = {}
    for key, expected in hints.items():
        if key not in node:
            if key not in vars(kind):  # it has no default
                raise ConfigError(f"{place}{key} is missing from the config")
        elif is_dataclass(expected):
            if not isinstance(inner := node[key], Mapping):
                raise section_error(key, inner)
            values[key] = _filled(cast(type, expected), inner, f"{key}.")
        else:
            values[key] = convert_value(place + key, node[key], expected)
    return kind(**values)


def section_error(key: str, value: object) -> ConfigError:
    """The error of a value for a key that holds others."""
    names = ", ".join(each.name for each in fields(get_type_hints(RunOptions)[key]))
    error = f"{key}={short(value)}: expected keys with values, as in {key}.KEY=... ({names})"
    if key == "words":
        error += "; a word's own curve is on the page (--open), and in Python "
        error += 'results.tables[...].set_index("word").loc["bank"]'
    return ConfigError(error)


def section_names() -> list[str]:
    """The config's own keys that hold others, and aren't chosen by name."""
    hints = get_type_hints(RunOptions)
    return [key for key, expected in hints.items() if is_dataclass(expected) and key not in GROUPS]


def _is_named(node: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(node, Mapping) and isinstance(node.get("name"), str)


def component_of(kind: str, place: str, node: Mapping[str, object], registry: Registry) -> Component:
    """The part that a node describes. Raises ConfigError unless its keys are arguments of the factory that it names, of
    the right types, and complete. `place` is the path of the node in the config, for messages."""
    offer = registry.find(kind, str(node["name"]))
    part = Component(offer, {key: value for key, value in node.items() if key != "name"})
    if kind == "sink":  # whoever makes one comes by here, a sweep's workers too, before any error can quote a value
        remember(part.arguments, offer.secrets)
    signature = part.signature()
    expected = signature or {}
    required = dict.fromkeys((key for key, (_, default) in expected.items() if default is Parameter.empty), MISSING)
    for key, value in {**required, **part.arguments}.items() if signature is not None else ():
        if key not in expected:
            raise ConfigError(f"{kind} {part.name!r} has no argument {key!r}{near(key, expected)}")
        if value == MISSING:
            needed = type_text(expected[key][0]).removesuffix(" | null")
            raise ConfigError(f"{kind} {part.name!r} needs {place}.{key}=<{needed}>")
        convert_value(f"{place}.{key}", value, Seed if key == "seed" and expected[key][0] is int else expected[key][0])
    return part


def refuse_written_secrets(config: DictConfig) -> None:
    """Raise ConfigError for a secret in clear in a composed config, whichever file it stands in."""
    refuse_typed_secrets([f"{path}={value}" for path, value in leaves(plain_values(config, resolve=False))])


def leaves(node: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Path and value of all that stands in the dictionaries of a config."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@contextmanager
def environment_unresolved() -> Iterator[None]:
    """While the block runs, interpolations of the environment resolve to themselves."""
    OmegaConf.register_new_resolver("oc.env", lambda *args: f"${{oc.env:{','.join(map(str, args))}}}", replace=True)
    try:
        yield
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def as_written(config: DictConfig) -> dict[str, object]:
    """The config as plain values, interpolations resolved but for those of the environment, which stay as written."""
    with environment_unresolved():
        return plain_values(config)
