"""Hydra and the registry: where configs lie, which options plugins add, and every error as one line."""

from __future__ import annotations

import copy
import inspect
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.basecontainer import BaseContainer
from omegaconf.errors import OmegaConfBaseException

from ctxexp.command.config import MISSING, Config, leaves, parse_config, plain_values, refuse_written
from ctxexp.command.experiment import Experiment
from ctxexp.command.overrides import (
    expand_locations,
    first_job,
    normalize_overrides,
    parse,
    take_plugins,
    unknown_option,
)
from ctxexp.errors import SYNONYMS, ConfigError, CtxexpError, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import CONFIG_KINDS, Factory
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    config_folder,
    config_folders,
    plugin_files,
    refuse_typed,
    registry,
)

log = logging.getLogger("ctxexp")
SHARED = {"device": "${device}", "dtype": "${dtype}", "seed": "${seed}"}  # arguments that follow the run's own keys
SHARED_DATASET = {"tokenizer": "${words.tokenizer}", "lower": "${words.lower}"}
OPTIMISING = ("optuna", "ax", "nevergrad")  # sweepers
HYDRAS_CONFIGS = ("hydra", "_dummy_empty_config_.yaml")  # in its store

_own_state: dict[type, Any] = {}  # Hydra's singletons while `own_hydra` composes


def read_overrides(words: Sequence[str]) -> list[str]:
    """The words of a command line, less its flags, as Hydra's overrides: locations written out, which a line of the
    log says, plugins loaded, and every registered name an option. Raises ConfigError, for a secret in clear too."""
    overrides = take_plugins(normalize_overrides(words))
    refuse_typed(overrides)
    prepare()
    overrides, locations = expand_locations(overrides)
    for place in dict.fromkeys(locations):
        if place.group != "dataset":  # of a text the run says what it read
            log.info("%s is read as %s", place.place, " ".join(place.overrides))
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
    """Make every registered name a Hydra option: from its YAML, else from its factory's signature, and no other."""
    Plugins.instance().register(_PluginConfigs)
    # So that Hydra's own files lie where ours do: it knows no `~`.
    OmegaConf.register_new_resolver("ctxexp.folder", lambda folder: str(user_path(folder)), replace=True)
    store = ConfigStore.instance()
    for kind in CONFIG_KINDS:
        store.repo.pop(kind, None)  # an earlier command's, its locations too
    folders = config_folders()
    for (kind, name), offer in registry().offers.items():
        if kind not in CONFIG_KINDS or any((folder / kind / f"{name}.yaml").is_file() for folder in folders):
            continue
        # One that can't be imported fails where it is chosen, not every command.
        node = {"name": name, **({} if offer.problem else _defaults(offer.factory, kind))}
        package = f"{kind}.{name}" if kind in LISTS else None
        store.store(group=kind, name=name, node=node, package=package, provider=offer.plugin)


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


def check_command(overrides: Sequence[str], *, multirun: bool) -> Config:
    """The checked config, of a sweep its first job's: files, devices and other jobs are left to the jobs.

    Raises CtxexpError for what this command would fail at, before torch is loaded.
    """
    with _hydra():
        parsed = parse(overrides)
        hydra, config = _compose_job(first_job(parsed) if multirun else overrides)
        if multirun:
            _check_sweeper(hydra, config.objective)
    if [Path(file) for file in config.plugins] != list(plugin_files()):
        raise ConfigError(
            f"plugins={config.plugins}: files of plugins are named on the command line only, since their names must be "
            "known before configs are read"
        )
    experiment = Experiment(config)
    if not multirun:
        experiment.check()
    return config


def _compose_job(overrides: Sequence[str]) -> tuple[DictConfig, Config]:
    """Hydra's part of the job's config, and the checked config. Raises ConfigError: for odd values Hydra and resolvers
    raise ValueError, TypeError, ..."""
    from hydra import compose

    try:
        composed = compose("ctxexp", overrides=list(overrides), return_hydra_config=True)
        refuse_written(composed)
        values = plain_values(composed)
    except CtxexpError:
        raise
    except Exception as error:
        raise ConfigError(explain(error, overrides)) from None
    return composed.hydra, parse_config(values, registry())


def _check_sweeper(hydra: DictConfig, objective: object) -> None:
    """Raise ConfigError for a sweeper that optimises, without an objective."""
    sweeper = OmegaConf.select(hydra, "runtime.choices.hydra/sweeper", throw_on_missing=False)
    if not objective and sweeper in OPTIMISING:
        raise ConfigError(
            f"hydra/sweeper={sweeper} needs a number to optimise, as in objective=self_similarity/adjusted@last"
        )


def config_of(words: Sequence[str]) -> Config:
    """The complete, checked config of one run that these words of a command line ask for.

    Raises ConfigError with one sentence. Hydra is left as it was.
    """
    with own_hydra():
        overrides = read_overrides(words)
        with _hydra():
            parse(overrides)
            return _compose_job(overrides)[1]


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
        sources = {kind: one for kind, one in theirs.items() if kind.__name__ == "SourcesRegistry"}
        _own_state.update({Plugins: plugins, ConfigStore: store, **sources})
    Singleton._instances, BaseContainer._resolvers = _own_state, dict(resolvers)
    try:
        yield
    finally:
        Singleton._instances, BaseContainer._resolvers = theirs, resolvers


@contextmanager
def _hydra() -> Iterator[None]:
    """Hydra with our configs, for look-ups beside the application, which isn't started yet."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_folder()), version_base="1.3"):
        yield
    GlobalHydra.instance().clear()


def explain(error: Exception, overrides: Sequence[str] = ()) -> str:
    """One line for an error of Hydra's or OmegaConf's, with the nearest of the chosen options' keys, or names."""
    from hydra import compose
    from hydra.core.global_hydra import GlobalHydra

    text = str(error) or type(error).__name__
    with nullcontext() if GlobalHydra.instance().is_initialized() else _hydra():
        if match := re.search(r"Could not override '([^']+)'", text):
            key = match[1]
            if key == "dataset.path":
                return "dataset.path: the data set that is chosen has no path; a file of text is dataset=FILE"
            choices = [override for override in overrides if override.partition("=")[0] in GROUPS]
            composed = plain_values(compose("ctxexp", overrides=choices), resolve=False)
            keys = [*GROUPS, *(path for path, _ in leaves(composed))]
            same = [one for one in keys if one.rpartition(".")[2] == key.rpartition(".")[2]]
            close = [SYNONYMS[key]] if key in SYNONYMS else same[:2] or suggestions(key, keys)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "; ctxexp --help values lists them"
            return f"no config key {short(key)}{hint}"
        if match := re.search(r"Could not (?:find|load) '([^']+)'", text):
            group, _, name = match[1].rpartition("/")
            return str(unknown_option(group, name))
    return line(text)
