"""The registry of names: those of ctxexp, of installed plugins and of plugin files; and errors of broken plugins."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pluggy

from ctxexp.errors import (
    ConfigError,
    CtxexpError,
    PluginError,
    UnknownName,
    error_text,
    near,
    plugin_call,
    plugin_line,
    short,
)
from ctxexp.files import user_path
from ctxexp.files.code_version import damaged
from ctxexp.plugins import CONFIG_KINDS, FIRST_PARTY, HOOKS, Factory, HookSpecs, Register
from ctxexp.plugins.offers import Offer, PluginVersion, install_hint, load_plugin_file, location

ARGUMENTS = {"model": "checkpoint", "dataset": "path"}  # what takes a location, by group
GROUP = "ctxexp"  # the entry-point group of plugins
HOOK_GROUP = "ctxexp.hooks"  # of classes like `HookSpecs`, by which a distribution has hooks of its own


@dataclass
class Registry:
    """Every registered offer by (kind, name), and the plugins that supplied them."""

    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    sources: list[PluginVersion] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    hooks: list[type] = field(default_factory=lambda: [HookSpecs])  # specifications, distributions' own among them

    def names(self, kind: str) -> list[str]:
        return sorted(name for k, name in self.offers if k == kind)

    def find(self, kind: str, name: str) -> Offer:
        try:
            return self.offers[kind, name]
        except KeyError:
            raise UnknownName(kind, name, self.names(kind), install_hint(kind, name)) from None

    def add(self, offer: Offer) -> None:
        other = self.offers.get((offer.kind, offer.name))
        if other is not None:
            raise PluginError(
                f"{offer.origin} registers {offer.kind} {offer.name!r}, which {other.origin} already supplies; rename "
                "one of them"
            )
        self.offers[offer.kind, offer.name] = offer

    def source(self, kind: str, name: str) -> PluginVersion | None:
        """The plugin that supplied this name; None if it is ctxexp's own, or unknown."""
        offer = self.offers.get((kind, name))
        return offer.supplier if offer is not None else None

    @contextmanager
    def plugin_call(self, kind: str, name: str) -> Iterator[None]:
        """The guard `ctxexp.errors.plugin_call`, with messages that name the plugin which supplied `name`."""
        source = self.source(kind, name)

        def failure(error: BaseException) -> str:
            hint = f"; check it with: python -m ctxexp conform {kind}/{name}" if kind in CONFIG_KINDS else ""
            part = f"{kind} {name!r} of {self.find(kind, name).origin}"
            return f"{part} could not be built: {error_text(error)}{plugin_line(error)}{hint}"

        try:
            with plugin_call("plugin", name, failure):
                yield
        except CtxexpError as error:
            if source is not None and str(source) not in str(error):
                error.args = (f"{error} [{kind} {name!r} is of {source}]",)
            raise


def build_registry(
    extra: list[tuple[str, object]] | None = None, *, installed: bool = True, files: Sequence[Path] = ()
) -> Registry:
    """The registry of ctxexp's own names, those of installed plugins, of `extra` (name, module or object) and of
    `files`.

    A broken plugin is left out, named in `registry.broken` and warned about; the rest goes on. A broken file raises
    PluginError, since it was asked for by name.
    """
    registry = Registry()
    for entry, source in _entries(registry, HOOK_GROUP):
        with _reported(registry, source, entry.value, "could not be loaded"):
            registry.hooks.append(entry.load())
    for name in FIRST_PARTY:
        _adopt(registry, name, import_module(name))
    for text in damaged if installed else ():
        _warn(registry, text)
    entries: list[tuple[object, PluginVersion]] = []
    for entry, source in _entries(registry, GROUP) if installed else ():
        with _reported(registry, source, entry.value, "could not be loaded"):
            entries.append((entry.load(), source))
    for name, plugin in extra or []:
        entries.append((plugin, PluginVersion(name, "-", "-")))
    for plugin, source in entries:
        with _reported(registry, source, source.plugin, "is ignored"):
            _join(registry, plugin, source)
    for path in dict.fromkeys(files):
        module, source = load_plugin_file(path)

        def failure(error: BaseException, path: Path = path) -> str:
            text = str(error) if isinstance(error, CtxexpError) else error_text(error)
            return f"plugin file {location(path, error)}: {text}"

        with plugin_call("plugin file", failure=failure, within=failure):
            _join(registry, module, source)
    return registry


def _entries(registry: Registry, group: str) -> Iterator[tuple[EntryPoint, PluginVersion]]:
    """The entry points of a group, each with its distribution; one without name or version is reported."""
    for entry in entry_points(group=group):
        source = PluginVersion(entry.name, str(getattr(entry.dist, "_path", "?")), "")  # its folder, which is private
        with _reported(registry, source, entry.value, "is ignored"):
            if entry.dist is None or not (entry.dist.name and entry.dist.version):
                raise PluginError("its METADATA has no name or no version")
            source = PluginVersion(entry.name, entry.dist.name, entry.dist.version)
            yield entry, source


@contextmanager
def _reported(registry: Registry, source: PluginVersion, where: str, problem: str) -> Iterator[None]:
    """Report errors of this plugin in the block, and go on without it."""
    part = f"plugin {source.plugin!r} ({where}) of distribution {source.distribution} {source.version} {problem}"

    def failure(error: BaseException) -> str:
        return f"{part}: {error_text(error)}"

    try:
        with plugin_call("plugin", source.plugin, failure, within=failure):
            yield
    except PluginError as error:
        _warn(registry, str(error))


def _warn(registry: Registry, text: str) -> None:
    registry.broken.append(text)
    warnings.warn(text, stacklevel=4)


def _join(registry: Registry, plugin: object, source: PluginVersion) -> None:
    """Register all offers of a plugin, or none where one of them is refused."""
    trial = Registry(offers=dict(registry.offers), folders=list(registry.folders), hooks=registry.hooks)
    _adopt(trial, source.plugin, plugin, source)
    if len(trial.offers) == len(registry.offers) and len(trial.folders) == len(registry.folders):
        raise PluginError(f"it offers nothing: mark a function {HOOKS[0]}(register) with @ctxexp.hookimpl")
    registry.offers, registry.folders = trial.offers, trial.folders
    registry.sources.append(source)


def _adopt(registry: Registry, name: str, plugin: object, source: PluginVersion | None = None) -> None:
    """Call one plugin's hooks, checking their signatures against the specification first."""
    manager = pluggy.PluginManager("ctxexp")
    for spec in registry.hooks:
        manager.add_hookspecs(spec)
    marked = {hook for hook in dir(plugin) if manager.parse_hookimpl_opts(plugin, hook)}
    if unmarked := [hook for hook in HOOKS if hook in dir(plugin) and hook not in marked]:
        raise PluginError(f"{unmarked[0]} lacks its mark: put @ctxexp.hookimpl above it")
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        text = " ".join(str(error).split())
        for unknown in marked - set(HOOKS):
            hint = "; config files: in the folder ctxexp_conf beside the plugin's module" if "conf" in unknown else ""
            raise PluginError(f"no hook {unknown!r}{near(unknown, HOOKS)}{hint}") from None
        raise PluginError(f"{text}; a hook takes one argument, register") from None
    for hook in (hook for spec in registry.hooks for hook in vars(spec) if hook.startswith("register_")):
        kind = hook.removeprefix("register_").removesuffix("s")
        vars(manager.hook)[hook](register=_register(registry, kind, name, source))
    if (folder := _config_folder(plugin)) is not None:
        registry.folders.append(folder)


def _config_folder(plugin: object) -> Path | None:
    """The folder of a plugin's config files, if there is one: `ctxexp_conf` beside its module."""
    module = inspect.getmodule(plugin)
    file = vars(module).get("__file__") if module is not None else None  # a module may have none, as one without a file
    if file and not Path(file).exists():
        raise PluginError(f"its module {file} lies in an archive: install it unpacked, as pip does")
    folder = Path(file).with_name("ctxexp_conf") if file else None
    return folder.absolute() if folder is not None and folder.is_dir() else None


def _register(registry: Registry, kind: str, plugin: str, supplier: PluginVersion | None) -> Register:
    """The callback that a hook of this kind gets."""

    def register(offered: str, factory: Factory | str) -> None:
        if not isinstance(offered, str) or not re.fullmatch(r"(?!null$)[A-Za-z0-9_][A-Za-z0-9_.-]{,99}", offered):
            raise PluginError(f"{kind} {short(offered)}: expected a name of letters, digits, _ . - that is not null")
        if not (callable(factory) or (isinstance(factory, str) and re.fullmatch(r"[\w.]+:\w+", factory))):
            got = short(factory) if isinstance(factory, str) else type(factory).__name__
            raise PluginError(f"{kind} {offered!r}: expected a callable factory, or module:name, got {got}")
        registry.add(Offer(kind, offered, factory, plugin, supplier))

    return register


GROUPS = (*CONFIG_KINDS, "weights", "experiment")

LISTS = ("metric", "sink")  # groups of which a run may have several

_files: tuple[Path, ...] = ()  # files of plugins=[...], absolute


@cache
def registry() -> Registry:
    """The registry of this process. Broken plugins are listed in its `broken`; the command reports them once, workers
    don't."""
    with redirect_stdout(sys.stderr), warnings.catch_warnings():  # a plugin may print at its import
        warnings.filterwarnings("ignore", "plugin|metadata", UserWarning)
        return build_registry(files=_files)


def load_plugin_files(files: object) -> None:
    """Put the names of these plugin files into the registry, in place of those of earlier files. Raises ConfigError."""
    global _files
    files = () if files is None else files
    if not isinstance(files, list | tuple) or not all(isinstance(file, str) for file in files):
        raise ConfigError(f"plugins={files}: expected a list of files, as in plugins=[./my_plugin.py]")
    paths = tuple(user_path(file).absolute() for file in files)
    if paths != _files:
        _files = paths
        registry.cache_clear()


def plugin_files() -> tuple[Path, ...]:
    """The plugin files whose names are in the registry, absolute."""
    return _files
