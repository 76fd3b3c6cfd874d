"""The registry of names: those of ctxexp, of installed plugins and of plugin files; and errors of broken plugins.

What is registered is an offer: a name with its factory and the plugin that supplies it, which may be one file. Names
that published plugins would supply are known too.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import re
import shlex
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import cast

import pluggy

from ctxexp.errors import (
    FILE_MODULE,
    ConfigError,
    CtxexpError,
    PluginError,
    UnknownName,
    error_text,
    near,
    plugin_call,
    plugin_line,
    short,
    suggestions,
)
from ctxexp.files import user_path
from ctxexp.files.credentials import refuse_clear
from ctxexp.plugins import COMMAND, CONFIG_KINDS, HOOKS, READER, REPORT, Factory, HookSpecs, Register, shipped

LOCATION_ARGUMENTS = {"model": "checkpoint", "dataset": "path"}  # what takes a location, by group
SHARED = {  # arguments that follow the run's own keys, by group
    "model": {"device": "${device}", "dtype": "${dtype}", "seed": "${seed}"},
    "dataset": {"tokenizer": "${words.tokenizer}", "lower": "${words.lower}"},
}
SHIPPED = "ctxexp"  # the plugin of what ships
GROUP = "ctxexp"  # the entry-point group of plugins
HOOK_GROUP = "ctxexp.hooks"  # of classes like `HookSpecs`, by which a distribution has hooks of its own
PUBLISHED = Path(__file__).with_name("published.json")  # pip's names by kind and name; plugins/published.py writes it
HYDRAS = ("ray-launcher", "rq-launcher", "submitit-launcher")
GROUPS = (*CONFIG_KINDS, "weights", "experiment")
LISTS = ("metric", "sink")  # groups of which a run may have several
_files: tuple[Path, ...] = ()  # files of plugins=[...], absolute
_folder: Path | None = None  # of --config-dir


@dataclass(frozen=True)
class PluginVersion:
    """A plugin with its version: its name, distribution and version (of a file: its path and content hash)."""

    plugin: str
    distribution: str
    version: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file, which may lie anywhere: its version is its content's."""
        return self.version.startswith("sha256:")

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} ({self.distribution} {self.version})"


@dataclass(frozen=True)
class Offer:
    """One registered name, its factory (of a verb or report: its function), and the plugin that supplies it."""

    kind: str
    name: str
    source: Factory | str  # the factory, or its place (`module:name`)
    plugin: str
    supplier: PluginVersion | None = None  # None: ctxexp itself, or Python

    @property
    def secrets(self) -> Sequence[str]:
        """The arguments of a sink that it declares to be credentials (`ctxexp.Sink.secrets`)."""
        return getattr(self.factory, "secrets", ())

    @cached_property
    def factory(self) -> Factory:
        """The factory, imported when it is first needed. Raises PluginError where that fails."""
        if not isinstance(self.source, str):
            return self.source
        failure = f"offers {self.kind} {self.name!r}, but {self.source} can't be imported"
        with redirect_stdout(sys.stderr), plugin_call("plugin", self.plugin, failure):
            target: object = resolve_name(self.source)
        if not callable(target):
            raise PluginError(f"{self.source} of {self.origin} is {short(target)}, expected a callable factory")
        return cast(Factory, target)

    @property
    def problem(self) -> str:
        """The error of importing the factory; empty if there is none."""
        try:
            self.factory  # noqa: B018  # the import is what is asked for
        except CtxexpError as error:
            return str(error)
        return ""

    @property
    def origin(self) -> str:
        """Its plugin in words, with distribution and version where it has some."""
        return str(self.supplier or f"plugin {self.plugin!r}")

    @property
    def usage(self) -> str:
        """The text by which a user chooses it: `metric=name`, of a command `ctxexp name`; of a table or figure its
        file."""
        file = f"{self.name}.md" if self.is_table else f"{self.name}.png"
        return {COMMAND: f"ctxexp {self.name}", REPORT: file, READER: f"{self.name}="}.get(
            self.kind, f"{self.kind}={self.name}"
        )

    @property
    def is_table(self) -> bool:
        """Whether it gives a table of a sweep's runs."""
        return self.kind == REPORT and self.name.startswith("table_")

    @property
    def builtin(self) -> bool:
        """Whether it ships with ctxexp."""
        return self.plugin == SHIPPED

    @contextmanager
    def plugin_call(self) -> Iterator[None]:
        """The guard `ctxexp.errors.plugin_call`, with messages that name the plugin which supplied this."""
        part = f"{self.kind} {self.name!r}"

        def failure(error: BaseException) -> str:
            hint = f"; check it with: python -m ctxexp conform {self.kind}/{self.name}"
            said = f"{error_text(error)}{plugin_line(error)}{hint if self.kind in CONFIG_KINDS else ''}"
            return f"{part} of {self.origin} could not be built: {said}"

        try:
            with plugin_call("plugin", self.name, failure):
                yield
        except CtxexpError as error:
            if self.supplier is not None and str(self.supplier) not in str(error):
                error.args = (f"{error} [{part} is of {self.supplier}]",)
            raise

    @property
    def docstring(self) -> str:
        """The factory's own docstring, empty if it has none; of one that isn't imported yet, read from its file."""
        if isinstance(self.source, str):
            with suppress(CtxexpError), plugin_call("plugin", self.plugin):  # else its import says what is wrong
                module, _, name = self.source.partition(":")
                spec = find_spec(module) if module not in sys.modules else None
                source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
                for node in ast.parse(source).body:
                    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                        return ast.get_docstring(node) or ""
        if self.problem:
            return ""
        doc = vars(self.factory).get("__doc__") if isinstance(self.factory, type) else self.factory.__doc__
        return inspect.cleandoc(doc) if isinstance(doc, str) else ""

    @property
    def summary(self) -> str:
        """The first sentence of the factory's docstring."""
        paragraph = " ".join(self.docstring.partition("\n\n")[0].split())
        return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z])", paragraph, maxsplit=1)[0]


def load_plugin_file(path: Path) -> tuple[types.ModuleType, PluginVersion]:
    """The file's module, and its source for the record: its stem, absolute path, and the hash of its bytes.

    Raises PluginError naming the file and the line where it fails. Nothing is written beside the file.
    """
    if not path.is_file():
        beside = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        close = " or ".join(suggestions(path.name, beside))
        raise PluginError(f"no plugin file {path}" + (f"; did you mean {close}?" if close else ""))
    with plugin_call("plugin file", str(path), "can't be loaded"):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        module = types.ModuleType(f"{FILE_MODULE}{path.stem}_{digest}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # where dataclasses and type hints look names up
        exec(compile(content, str(path), "exec"), module.__dict__)
    return module, PluginVersion(path.stem, str(path), f"sha256:{digest}")


def install_hint(kind: str, name: str) -> str:
    """A hint which plugin supplies the name and how to install it; empty where no published one does."""
    hydras = f"{name.partition('_')[0]}-{kind.removeprefix('hydra/')}"  # plugins of Hydra that others publish
    published: dict[str, dict[str, str]] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    plugin = f"hydra-{hydras}" if hydras in HYDRAS else published.get(kind, {}).get(name, "")
    if not plugin:
        return ""
    own = plugin.startswith("ctxexp-")  # which is on no index
    way = f"in a clone pip install {shlex.quote(f'./plugins/{plugin}')}" if own else f"pip install {plugin}"
    return f"; the plugin {plugin.partition('[')[0]} brings it: {way}"


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

    def add(self, *offers: Offer) -> None:
        """Add the offers, or none where one of them has a name that is taken (PluginError)."""
        known = dict(self.offers)
        for offer in offers:
            if other := known.get((offer.kind, offer.name)):
                raise PluginError(
                    f"{offer.origin} registers {offer.kind} {offer.name!r}, which {other.origin} already supplies; "
                    "rename one of them"
                )
            known[offer.kind, offer.name] = offer
        self.offers = known

    def adopt(self, name: str, plugin: object, supplier: PluginVersion | None = None) -> None:
        """Add all that a plugin offers, and its folder of config files. Raises PluginError where a hook of it isn't as
        specified."""
        manager = pluggy.PluginManager("ctxexp")
        for spec in self.hooks:
            manager.add_hookspecs(spec)
        hooks = [hook for spec in self.hooks for hook in vars(spec) if hook.startswith("register_")]
        for hook in hooks:
            if hasattr(plugin, hook) and not manager.parse_hookimpl_opts(plugin, hook):
                raise PluginError(f"{hook} lacks its mark: put @ctxexp.hookimpl above it")
        try:
            manager.register(plugin, name)
            manager.check_pending()
        except pluggy.PluginValidationError as error:
            unknown = re.search(r"unknown hook '(\w+)'", str(error))
            hint = near(unknown[1], hooks) if unknown else "; a hook takes one argument, register"
            raise PluginError(f"{' '.join(str(error).split())}{hint}") from None
        offers: list[Offer] = []
        for hook in hooks:
            kind = hook.removeprefix("register_").removesuffix("s")
            vars(manager.hook)[hook](register=_collect(offers, kind, name, supplier))
        folder = _config_folder(plugin)
        if not offers and not folder:
            raise PluginError(f"it offers nothing: mark a function {HOOKS[0]}(register) with @ctxexp.hookimpl")
        self.add(*offers)
        self.folders += [folder] if folder else []
        self.sources += [supplier] if supplier else []

    @contextmanager
    def report(self, supplier: PluginVersion, problem: str) -> Iterator[None]:
        """Note what is wrong with this plugin in the block, and go on without it."""
        failure = f"of distribution {supplier.distribution} {supplier.version} {problem}"
        try:
            with plugin_call("plugin", supplier.plugin, failure, within=f" {failure}"):
                yield
        except PluginError as error:
            self.broken.append(str(error))


def build_registry(
    extra: Sequence[tuple[str, object]] = (), *, installed: bool = True, files: Sequence[Path] = ()
) -> Registry:
    """The registry of ctxexp's own names, those of installed plugins, of `extra` (name, module or object) and of
    `files`.

    A broken plugin is left out and named in `registry.broken`; the rest goes on. A broken file raises PluginError,
    since it was asked for by name.
    """
    registry = Registry()
    for entry in entry_points(group=HOOK_GROUP):
        with registry.report(PluginVersion(entry.name, entry.value, ""), "could not be loaded"):
            registry.hooks.append(entry.load())
    registry.adopt(SHIPPED, shipped)
    plugins: list[tuple[object, PluginVersion]] = []
    for entry in entry_points(group=GROUP) if installed else ():
        assert entry.dist is not None
        source = PluginVersion(entry.name, entry.dist.name, entry.dist.version)
        with registry.report(source, "could not be loaded"):
            plugins.append((entry.load(), source))
    plugins += [(plugin, PluginVersion(name, "-", "-")) for name, plugin in extra]
    for plugin, source in plugins:
        with registry.report(source, "is ignored"):
            registry.adopt(source.plugin, plugin, source)
    for path in dict.fromkeys(files):
        module, source = load_plugin_file(path)
        with plugin_call("plugin file", str(path), "can't be loaded", within=" can't be loaded"):
            registry.adopt(source.plugin, module, source)
    return registry


def _config_folder(plugin: object) -> Path | None:
    """The folder of a plugin's config files, if there is one: `ctxexp_conf` beside its module."""
    module = inspect.getmodule(plugin)
    file = vars(module).get("__file__") if module is not None else None  # a module may have none, as one without a file
    if file and not Path(file).exists():
        raise PluginError(f"its module {file} lies in an archive: install it unpacked, as pip does")
    folder = Path(file).with_name("ctxexp_conf") if file else None
    return folder.absolute() if folder is not None and folder.is_dir() else None


def _collect(offers: list[Offer], kind: str, plugin: str, supplier: PluginVersion | None) -> Register:
    """The callback that a hook of this kind gets."""

    def register(offered: str, factory: Factory | str) -> None:
        if not isinstance(offered, str) or not re.fullmatch(r"(?!null$)[A-Za-z0-9_][A-Za-z0-9_.-]{,99}", offered):
            raise PluginError(f"{kind} {short(offered)}: expected a name of letters, digits, _ . - that is not null")
        if not (callable(factory) or (isinstance(factory, str) and re.fullmatch(r"[\w.]+:\w+", factory))):
            raise PluginError(f"{kind} {offered!r}: expected a callable factory, or module:name, got {short(factory)}")
        offers.append(Offer(kind, offered, factory, plugin, supplier))

    return register


@cache
def registry() -> Registry:
    """The registry of this process. Broken plugins are listed in its `broken`; the command reports them once, workers
    don't."""
    with redirect_stdout(sys.stderr):  # a plugin may print at its import
        return build_registry(files=_files)


def load_plugin_files(files: object) -> None:
    """Put the names of these plugin files into the registry, in place of those of earlier files, which stay where one
    can't be loaded. Raises ConfigError."""
    global _files
    files = () if files is None else files
    if not isinstance(files, list | tuple) or not all(isinstance(file, str) for file in files):
        raise ConfigError(f"plugins={files}: expected a list of files, as in plugins=[./my_plugin.py]")
    paths = tuple(user_path(file).absolute() for file in files)
    if paths != _files:
        before, _files = _files, paths
        registry.cache_clear()
        try:
            registry()
        except CtxexpError:
            _files = before
            registry.cache_clear()
            raise


def offers_in_file(file: str) -> list[Offer]:
    """The offers of a plugin file, which is loaded beside the other ones. Raises ConfigError."""
    path = user_path(file).absolute()
    if path not in _files:
        load_plugin_files([*map(str, _files), str(path)])
    return [one for one in registry().offers.values() if one.supplier and one.supplier.distribution == str(path)]


def names_in_file(kind: str, file: str) -> str:
    """The names of this kind that a plugin file offers, by comma. Raises ConfigError where there is none."""
    offers = offers_in_file(file)
    names = [one.name for one in offers if one.kind == kind]
    if not names:
        has = ", ".join(one.usage for one in offers)
        raise ConfigError(f"{kind}={file}: the plugin file offers no {kind}, but {has}")
    return ",".join(names)


def refuse_typed_secrets(words: Sequence[str]) -> None:
    """Raise ConfigError for a secret in clear among the words of a command line."""
    of_sinks = any("sink" in word and "=" in word for word in words)  # else no plugin is imported for its names
    offers = (registry().find("sink", name) for name in registry().names("sink") if of_sinks)
    refuse_clear(words, {key for offer in offers if not offer.problem for key in offer.secrets})


def plugin_files() -> tuple[Path, ...]:
    """The plugin files whose names are in the registry, absolute."""
    return _files


def config_folder() -> Path:
    """`conf`: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def config_folders() -> list[Path]:
    """Folders in which config files are looked up, the first that has one first: the user's, our own, those of
    plugins."""
    return [*([_folder] if _folder else []), config_folder(), *map(Path, registry().folders)]


def own_config_folder() -> str | None:
    """The user's folder of config files, absolute; None without one."""
    return str(_folder) if _folder else None


def add_config_folder(folder: str | None) -> None:
    """Look up config files in this folder first, in place of an earlier one; None: in no such folder."""
    global _folder
    _folder = Path(folder).absolute() if folder else None


def option_text(group: str, name: str) -> str:
    """The text of the option's file; empty where it has none, as what is written like a path."""
    if {"", ".", ".."} & {*name.split("/")}:
        return ""
    paths = [path for folder in config_folders() if (path := folder / group / f"{name}.yaml").is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""


def option_names(group: str) -> list[str]:
    """The group's options: YAML files, and names that need none."""
    places = [folder / group for folder in config_folders()]
    files = {path.relative_to(at).with_suffix("").as_posix() for at in places for path in at.rglob("*.yaml")}
    return sorted(files | set(registry().names(group)))
