"""Hydra and the registry: where configs lie, which options plugins add, and every error as one sentence."""

from __future__ import annotations

import copy
import inspect
import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.basecontainer import BaseContainer
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command.build import Built
from ctxexp.command.config import (
    MEANT,
    MISSING,
    Config,
    parse_config,
    plain_values,
    refuse_typed,
    refuse_written,
)
from ctxexp.command.names import config_folder, config_folders, option_names, spread_models
from ctxexp.command.overrides import (
    expand_locations,
    expand_sweeps,
    flatten_keys,
    idle_choices,
    normalize_overrides,
    parse,
    take_plugins,
)
from ctxexp.errors import ConfigError, CtxexpError, line, near, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND, CONFIG_KINDS, Factory
from ctxexp.plugins.registry import GROUPS, LISTS, arguments, install_hint, plugin_files, registry

log = logging.getLogger("ctxexp")
SHARED = {"device": "${device}", "dtype": "${dtype}", "seed": "${seed}"}  # arguments that follow the run's own keys
SHARED_DATASET = {"tokenizer": "${words.tokenizer}", "lower": "${words.lower}"}
OPTIMISING = ("optuna", "ax", "nevergrad")  # sweepers
MAX_CHECKED = 64  # jobs of a sweep that are composed and checked before the first one starts
HYDRAS_CONFIGS = ("hydra", "_dummy_empty_config_.yaml")  # in its store

_stored: WeakKeyDictionary[ConfigStore, set[tuple[str, str]]] = (
    WeakKeyDictionary()
)  # group, name of what `prepare` made
_listed_options: WeakKeyDictionary[ConfigLoader, dict[str, list[str]]] = WeakKeyDictionary()  # by group
_own_state: dict[type, Any] = {}  # Hydra's singletons while `own_hydra` composes


def read_overrides(words: Sequence[str]) -> list[str]:
    """The words of a command line, less its flags, as Hydra's overrides: locations written out, which a line of the
    log says, plugins loaded, and every registered name an option. Raises ConfigError, for a secret in clear too."""
    overrides = take_plugins(normalize_overrides([*spread_models(words)]))
    refuse_typed(overrides)
    overrides, locations = expand_locations(overrides, option_names)
    for place in dict.fromkeys(locations):
        log.info("%s is read as %s", place.place, " ".join(place.overrides))
    prepare()
    return overrides


class _PluginConfigs(SearchPathPlugin):  # type: ignore[misc]  # Hydra is untyped to us
    """Adds the config folders that plugins offer, and before all others the user's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        folders = config_folders()
        ours = folders.index(config_folder())
        for folder in folders[:ours]:
            search_path.prepend("ctxexp-user", f"file://{folder}")
        for folder in folders[ours + 1 :]:
            search_path.append("ctxexp-plugin", f"file://{folder}")


def prepare() -> None:
    """Make every registered name a Hydra option: from its YAML, else from its factory's signature. Idempotent."""
    Plugins.instance().register(_PluginConfigs)
    # So that Hydra's own files lie where ours do: it knows no `~`.
    OmegaConf.register_new_resolver("ctxexp.folder", lambda folder: str(user_path(folder)), replace=True)
    store = ConfigStore.instance()
    stored = _stored.setdefault(store, set())
    while stored:
        group, name = stored.pop()
        store.repo.get(group, {}).pop(f"{name}.yaml", None)
    folders = config_folders()
    for (kind, name), offer in registry().offers.items():
        if kind not in CONFIG_KINDS or any((folder / kind / f"{name}.yaml").is_file() for folder in folders):
            continue
        # One that can't be imported fails where it is chosen, not every command.
        node = {"name": name, **({} if offer.problem else _defaults(offer.factory, kind))}
        package = f"{kind}.{name}" if kind in LISTS else None
        store.store(group=kind, name=name, node=node, package=package, provider=offer.plugin)
        stored.add((kind, name))


def _defaults(factory: Factory, kind: str) -> dict[str, object]:
    shared: dict[str, str] = SHARED_DATASET if kind == "dataset" else SHARED if kind == "model" else {}
    return {
        key: shared.get(key, MISSING if default is inspect.Parameter.empty else default)
        for key, (_type, default) in (arguments(factory) or {}).items()
        if default is inspect.Parameter.empty or _is_plain(default)
    }


def _is_plain(value: object) -> bool:
    """Whether a config can hold the value; an argument whose default it can't hold is left to its factory."""
    if value is None or isinstance(value, bool | int | float):
        return True
    try:
        OmegaConf.create({"value": value})
    except OmegaConfBaseException:
        return False
    return True


def check_command(overrides: Sequence[str], *, multirun: bool) -> list[str]:
    """Reasons why jobs of this command will fail, a sentence each: values, files or devices that they can't have.

    Every job that the command line asks for is composed and checked before any of them starts. Raises ConfigError with
    one sentence for what is no config at all: what is wrong and which names are near. Warns of choices without effect.
    """
    problems: dict[str, None] = {}
    idle: dict[str, None] = {}
    with _hydra() as loader:
        parsed = parse(normalize_overrides(overrides), _options, loader)
        planned = _planned(parsed, loader) if multirun else []
        jobs = itertools.product(*expand_sweeps([*planned, *parsed], _options, multirun=multirun))
        for job in itertools.islice(jobs, MAX_CHECKED):
            whole = _compose_job(job)
            try:
                _check_hydra(whole.hydra, multirun=multirun, objective=whole.get("objective"))
                values = plain_values(whole)
            except ConfigError:
                raise
            except Exception as error:  # an interpolation's, whatever its resolver raises
                raise ConfigError(explain(error, job)) from None
            config = parse_config(values, registry())
            if [Path(file) for file in config.plugins] != list(plugin_files()):
                raise ConfigError(
                    f"plugins={config.plugins}: files of plugins are named on the command line only, since their "
                    "names must be known before configs are read"
                )
            built = Built(config)
            built.check_objective()
            idle |= dict.fromkeys(idle_choices(whole, job))
            try:
                built.check()
            except CtxexpError as error:
                problems[line(str(error))] = None
    for choice in idle:
        log.warning(choice)
    return list(problems)


def _compose_job(overrides: Sequence[str]) -> DictConfig:
    """The job's config with Hydra's part. Raises ConfigError: for odd values Hydra raises ValueError, TypeError, ..."""
    from hydra import compose

    try:
        config: DictConfig = compose("ctxexp", overrides=list(overrides), return_hydra_config=True)
    except Exception as error:
        raise ConfigError(explain(error, overrides)) from None
    refuse_written(config)
    return config


def _check_hydra(hydra: DictConfig, *, multirun: bool, objective: object) -> None:
    """Raise ConfigError for what Hydra allows and a run can't have."""
    if OmegaConf.select(hydra, "job.chdir", throw_on_missing=False):
        raise ConfigError(
            "hydra.job.chdir=true: runs stay in the folder where the command was typed, since paths are relative to it"
        )
    sweeper = OmegaConf.select(hydra, "runtime.choices.hydra/sweeper", throw_on_missing=False)
    if multirun and not objective and sweeper in OPTIMISING:
        raise ConfigError(
            f"hydra/sweeper={sweeper} needs a number to optimise, as in objective=self_similarity/adjusted@last"
        )
    mode = OmegaConf.select(hydra, "mode", throw_on_missing=False)
    if mode == RunMode.MULTIRUN and not multirun:
        raise ConfigError("hydra.mode=MULTIRUN: a sweep needs -m")


def config_of(overrides: Sequence[str]) -> Config:
    """The complete, checked config of one run that these overrides ask for.

    Raises ConfigError with one sentence. Hydra is left as it was.
    """
    with own_hydra():
        overrides = read_overrides(overrides)
        with _hydra() as loader:
            expand_sweeps(parse(overrides, _options, loader), _options, multirun=False)
            return parse_config(plain_values(_compose_job(overrides)), registry())


@contextmanager
def own_hydra() -> Iterator[None]:
    """Set Hydra's and OmegaConf's state of the process aside, and leave it as it was: a host may be a Hydra application
    itself, with a job, stored configs and search paths of its own, which say nothing about ours."""
    theirs, resolvers = Singleton._instances, BaseContainer._resolvers
    if not _own_state:
        plugins = copy.deepcopy(Plugins.instance())  # not found anew: that would import its modules a second time
        for classes in plugins.plugin_type_to_subclass_list.values():
            classes[:] = [one for one in classes if one.__module__.startswith(("hydra._internal.", "hydra_plugins."))]
        store = copy.deepcopy(ConfigStore.instance())
        store.repo = {key: node for key, node in store.repo.items() if key in HYDRAS_CONFIGS}
        _own_state.update({Plugins: plugins, ConfigStore: store, SourcesRegistry: SourcesRegistry.instance()})
    Singleton._instances, BaseContainer._resolvers = _own_state, dict(resolvers)
    try:
        yield
    finally:
        Singleton._instances, BaseContainer._resolvers = theirs, resolvers


@contextmanager
def _hydra() -> Iterator[ConfigLoader]:
    """Hydra's config loader, for look-ups beside the application, which isn't started yet."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_folder()), version_base="1.3"):
        yield GlobalHydra.instance().config_loader()
    GlobalHydra.instance().clear()


def _planned(parsed: Sequence[Override], loader: ConfigLoader) -> list[Override]:
    """Overrides of the config's own sweep (hydra.sweeper.params), as an experiment may have; keys that the command line
    gives are left out."""
    first = [values[0] for values in expand_sweeps(parsed, _options, multirun=True)]
    try:
        params = _compose_job(first).hydra.sweeper.get("params") or {}
    except ConfigError:
        return []  # the check of the jobs says what is wrong
    own_keys = {o.get_key_element() for o in parsed}
    return parse([f"{key}={value}" for key, value in params.items() if key not in own_keys], _options, loader)


def explain(error: Exception, overrides: Sequence[str] = ()) -> str:
    """One sentence for an error of Hydra's or OmegaConf's, with the near matches among the chosen options' keys."""
    from hydra.core.global_hydra import GlobalHydra

    text = str(error) or type(error).__name__
    if GlobalHydra.instance().is_initialized():
        return _explain(text, overrides)
    with _hydra():
        return _explain(text, overrides)


def _explain(text: str, overrides: Sequence[str]) -> str:
    from hydra import compose

    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1)
        if key in MEANT:
            return f"no config key {key!r}; did you mean {MEANT[key]}?"
        if key.startswith("hydra"):
            return f"no config key {key!r}; python -m ctxexp --hydra-help lists Hydra's own"
        if key == "dataset.path":
            return "dataset.path: the data set that is chosen has no path; a file of text needs dataset=text beside it"
        if "@" in key or "No match in the defaults list" in text:
            return f"no config group {key!r}{near(key, GROUPS)}"
        group_choices = [o for o in overrides if o.partition("=")[0] in GROUPS]
        config = compose("ctxexp", overrides=group_choices, return_hydra_config=True)
        all_keys = flatten_keys(plain_values(config, resolve=False))
        place, _, last = key.rpartition(".")
        choice = f"={config.hydra.runtime.choices[place]}" if place in CONFIG_KINDS and place not in LISTS else ""
        siblings = [k.rpartition(".")[2] for k in all_keys if k.rpartition(".")[0] == place]
        close = [f"{place}.{k}" if place else k for k in suggestions(last, siblings)] or suggestions(key, all_keys)
        hint = "; did you mean " + " or ".join(map(repr, close)) + "?" if close else "."
        return f"no config key {key!r}{hint} ({place or 'top level'}{choice}: {', '.join(siblings) or 'no such place'})"
    if match := re.search(r"Could not (?:find|load) '([^']+)'", text):
        group, _, name = match.group(1).rpartition("/")
        return f"no {group} {name!r}{install_hint(group, name)}{near(name, _options(group))}"
    if match := re.search(r"Environment variable '([^']+)' not found", text):
        key = re.search(r"full_key: (\S+)", text)
        where = f"{key.group(1)}: " if key else ""
        return f"{where}the environment has no variable {match.group(1)!r}; export it first"
    if match := re.search(r"You must specify '([^']+)'", text):
        return f"{match.group(1)} needs a value, as in {match.group(1)}=NAME"
    return line(text)


def _options(group: str) -> list[str]:
    """The names of a config group, those in its folders (`flow/0`) included; of COMMAND, the verbs."""
    from hydra.core.global_hydra import GlobalHydra

    if group == COMMAND:
        return registry().names(COMMAND)
    return group_options(GlobalHydra.instance().config_loader(), group)


def group_options(loader: ConfigLoader, group: str) -> list[str]:
    """The names of a group, those in its folders (`flow/0`) included."""
    listed = _listed_options.setdefault(loader, {})
    if group not in listed:
        # A loader copies its repository of folders at each question: the repository is asked itself.
        folders = loader.repository if isinstance(loader, ConfigLoaderImpl) else loader
        inner = folders.get_group_options(group, results_filter=ObjectType.GROUP)
        names = [*folders.get_group_options(group)]
        names += [f"{folder}/{name}" for folder in inner for name in group_options(loader, f"{group}/{folder}")]
        listed[group] = [str(name) for name in names if ":" not in name]  # no locations of a sweep
    return listed[group]
