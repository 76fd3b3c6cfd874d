"""The registry of names: what ships with ctxexp, what is installed, what files bring; and what is broken."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pluggy

from ctxexp.errors import CtxexpError, PluginError, UnknownName, near, said, short, stranger
from ctxexp.plugins.files import load, place
from ctxexp.plugins.hookspecs import FIRST_PARTY, HOOKS, KINDS, OFFERED, Factory, Hooks, Register
from ctxexp.plugins.offers import Offer, Source
from ctxexp.plugins.published import brought_by

GROUP = "ctxexp"  # the entry-point group of plugins


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
            raise UnknownName(kind, name, self.names(kind), brought_by(kind, name)) from None

    def add(self, offer: Offer) -> None:
        held = self.offers.get((offer.kind, offer.name))
        if held is not None:
            raise PluginError(
                f"plugin {offer.plugin!r} registers {offer.kind} {offer.name!r}, which plugin {held.plugin!r} "
                "already supplies; rename one of them"
            )
        self.offers[offer.kind, offer.name] = offer

    def source(self, kind: str, name: str) -> Source | None:
        """The plugin that brought this name; None if it is ctxexp's own, or unknown."""
        offer = self.offers.get((kind, name))
        return next((s for s in self.sources if offer is not None and s.plugin == offer.plugin), None)

    @contextmanager
    def credit(self, kind: str, name: str) -> Iterator[None]:
        """Whatever is raised inside names the plugin that supplied `name`; a stranger's exception is a PluginError."""
        source = self.source(kind, name)
        try:
            with stranger():
                yield
        except CtxexpError as error:
            if source is not None and str(source) not in str(error):
                error.args = (f"{error} [{kind} {name!r} is of {source}]",)
            raise
        except Exception as error:
            whose = source or f"plugin {self.find(kind, name).plugin!r}"
            raise PluginError(
                f"{kind} {name!r} of {whose} could not be built: {said(error)}"
                + (f"; check it with: python -m ctxexp conform {kind}/{name}" if kind in KINDS else "")
            ) from error


def build_registry(
    extra: list[tuple[str, object]] | None = None, *, installed: bool = True, files: Sequence[Path] = ()
) -> Registry:
    """The registry of ctxexp's own names, those of installed plugins, of `extra` (name, module or object) and of
    `files`.

    A broken plugin is left out, named in `registry.broken` and warned about; the rest goes on. A broken file raises
    PluginError, since it was asked for by name.
    """
    registry = Registry()
    for name in FIRST_PARTY:
        _adopt(registry, name, import_module(name))
    found: list[tuple[str, object, Source]] = []
    for entry in entry_points(group=GROUP) if installed else ():
        dist = entry.dist
        source = Source(entry.name, dist.name if dist else "?", dist.version if dist else "?")
        try:
            with stranger():
                found.append((entry.name, entry.load(), source))
        except Exception as error:  # a stranger's import may raise anything
            _report(registry, source, f"could not be loaded: {said(error)}", entry.value)
    for name, plugin in extra or []:
        found.append((name, plugin, Source(name, "-", "-")))
    for name, plugin, source in found:
        try:
            _join(registry, name, plugin, source)
        except Exception as error:  # likewise
            _report(registry, source, f"is ignored: {said(error)}", name)
    for path in dict.fromkeys(files):
        module, source = load(path)
        try:
            _join(registry, source.plugin, module, source)
        except Exception as error:
            what = str(error) if isinstance(error, CtxexpError) else said(error)
            raise PluginError(f"plugin file {place(path, error)}: {what}") from error
    return registry


def _report(registry: Registry, source: Source, what: str, where: str) -> None:
    message = f"plugin {source.plugin!r} ({where}) of distribution {source.distribution} {source.version} {what}"
    registry.broken.append(message)
    warnings.warn(message, stacklevel=3)


def _join(registry: Registry, name: str, plugin: object, source: Source) -> None:
    """Adopt a plugin whole or not at all."""
    trial = Registry(offers=dict(registry.offers), folders=list(registry.folders))
    with stranger():
        _adopt(trial, name, plugin)
    if len(trial.offers) == len(registry.offers) and len(trial.folders) == len(registry.folders):
        raise PluginError(f"it offers nothing: mark a function {HOOKS[0]}(register) with @ctxexp.hookimpl")
    registry.offers, registry.folders = trial.offers, trial.folders
    registry.sources.append(source)


def _adopt(registry: Registry, name: str, plugin: object) -> None:
    """Call one plugin's hooks, checking their signatures against the specification first."""
    manager = pluggy.PluginManager("ctxexp")
    manager.add_hookspecs(Hooks)
    marked = {hook for hook in dir(plugin) if manager.parse_hookimpl_opts(plugin, hook)}
    if unmarked := [hook for hook in HOOKS if hook in dir(plugin) and hook not in marked]:
        raise PluginError(f"{unmarked[0]} lacks its mark: put @ctxexp.hookimpl above it")
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        text = " ".join(str(error).split())
        for unknown in marked - set(HOOKS):
            raise PluginError(f"no hook {unknown!r}{near(unknown, HOOKS)}") from None
        raise PluginError(f"{text}; a hook takes one argument, register, and config_folders none") from None
    for kind in OFFERED:
        vars(manager.hook)[f"register_{kind}s"](register=_register(registry, kind, name))
    for folder in manager.hook.config_folders():
        if not Path(str(folder)).is_absolute():
            raise PluginError(f"config_folders gave {str(folder)!r}: expected an absolute folder")
        registry.folders.append(str(folder))


def _register(registry: Registry, kind: str, plugin: str) -> Register:
    """The callback that a hook of this kind gets."""

    def register(offered: str, factory: Factory | str) -> None:
        if not isinstance(offered, str) or not re.fullmatch(r"(?!null$)[A-Za-z0-9_][A-Za-z0-9_.-]{,99}", offered):
            raise PluginError(f"{kind} {short(offered)}: expected a name of letters, digits, _ . - that is not null")
        if not (callable(factory) or (isinstance(factory, str) and re.fullmatch(r"[\w.]+:\w+", factory))):
            got = short(factory) if isinstance(factory, str) else type(factory).__name__
            raise PluginError(f"{kind} {offered!r}: expected a callable factory, or module:name, got {got}")
        registry.add(Offer(kind, offered, factory, plugin))

    return register
