"""Who supplies what: hook specifications, the plugin manager and the registry of names.

Everything that a config can name comes through these hooks, ctxexp's own models and metrics included. A hook gets a
callback `register(name, factory)`; the factory's keyword arguments are the config keys of that name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from ctxexp.errors import PluginError, UnknownName

Factory = Callable[..., Any]
Register = Callable[[str, Factory], None]

KINDS = ("model", "dataset", "metric", "baseline")
FIRST_PARTY = ("ctxexp.models", "ctxexp.datasets", "ctxexp.metrics", "ctxexp.baselines")
GROUP = "ctxexp"  # the entry-point group of plugins

hookspec = pluggy.HookspecMarker("ctxexp")
hookimpl = pluggy.HookimplMarker("ctxexp")


class Hooks:
    """What a plugin may implement; each function gets `register(name, factory)`."""

    @hookspec
    def register_models(self, register: Register) -> None:
        """Offer encoders: factory(**config) -> ctxexp.encoder.Encoder."""

    @hookspec
    def register_datasets(self, register: Register) -> None:
        """Offer corpora: factory(**config) -> ctxexp.corpus.Corpus."""

    @hookspec
    def register_metrics(self, register: Register) -> None:
        """Offer metrics: factory(**config) -> ctxexp.metric.Metric."""

    @hookspec
    def register_baselines(self, register: Register) -> None:
        """Offer baselines: factory(**config) -> ctxexp.baselines.Baseline."""

    @hookspec
    def config_folders(self) -> str:  # type: ignore[empty-body]  # a specification has no body
        """Offer an absolute folder of extra config files (model/*.yaml, experiment/*.yaml ...)."""


@dataclass(frozen=True)
class Offer:
    """One registered name: what builds it and who brought it."""

    kind: str
    name: str
    factory: Factory
    plugin: str


@dataclass(frozen=True)
class Source:
    """A plugin that took part: its name, distribution and version."""

    plugin: str
    distribution: str
    version: str


@dataclass
class Registry:
    """Every name that can be built, by kind."""

    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def names(self, kind: str) -> list[str]:
        return sorted(name for k, name in self.offers if k == kind)

    def find(self, kind: str, name: str) -> Offer:
        try:
            return self.offers[kind, name]
        except KeyError:
            raise UnknownName(kind, name, self.names(kind)) from None

    def add(self, offer: Offer) -> None:
        held = self.offers.get((offer.kind, offer.name))
        if held is not None:
            raise PluginError(
                f"plugin {offer.plugin!r} registers {offer.kind} {offer.name!r}, which plugin {held.plugin!r} "
                "already supplies; rename one of them"
            )
        self.offers[offer.kind, offer.name] = offer


def _first_party() -> list[tuple[str, object]]:
    return [(name, import_module(name)) for name in FIRST_PARTY]


def _load(entry: EntryPoint) -> object:
    return entry.load()


def build_registry(extra: list[tuple[str, object]] | None = None, *, installed: bool = True) -> Registry:
    """The registry of ctxexp's own names, those of installed plugins and of `extra` (name, module or object).

    A broken plugin is left out, named in `registry.broken` and warned about; the rest goes on.
    """
    registry = Registry()
    for name, plugin in _first_party():
        _adopt(registry, name, plugin)
    found: list[tuple[str, object, Source]] = []
    for entry in entry_points(group=GROUP) if installed else ():
        dist = entry.dist
        source = Source(entry.name, dist.name if dist else "?", dist.version if dist else "?")
        try:
            found.append((entry.name, _load(entry), source))
        except Exception as error:  # a stranger's import may raise anything
            _report(registry, source, f"could not be loaded: {type(error).__name__}: {error}", entry.value)
    for name, plugin in extra or []:
        found.append((name, plugin, Source(name, "-", "-")))
    for name, plugin, source in found:
        trial = Registry(offers=dict(registry.offers), folders=list(registry.folders))
        try:
            _adopt(trial, name, plugin)
        except Exception as error:  # likewise
            _report(registry, source, f"is ignored: {type(error).__name__}: {error}", name)
        else:
            registry.offers, registry.folders = trial.offers, trial.folders
            registry.sources.append(source)
    return registry


def _report(registry: Registry, source: Source, what: str, where: str) -> None:
    message = f"plugin {source.plugin!r} ({where}) of distribution {source.distribution} {source.version} {what}"
    registry.broken.append(message)
    warnings.warn(message, stacklevel=3)


def _adopt(registry: Registry, name: str, plugin: object) -> None:
    """Call one plugin's hooks, checking their signatures against the specification first."""
    manager = pluggy.PluginManager("ctxexp")
    manager.add_hookspecs(Hooks)
    manager.register(plugin, name)
    manager.check_pending()
    for kind in KINDS:

        def register(offered: str, factory: Factory, kind: str = kind) -> None:
            if not callable(factory):
                raise PluginError(f"{kind} {offered!r}: expected a callable factory, got {type(factory).__name__}")
            registry.add(Offer(kind, offered, factory, name))

        getattr(manager.hook, f"register_{kind}s")(register=register)
    registry.folders.extend(str(folder) for folder in manager.hook.config_folders())
