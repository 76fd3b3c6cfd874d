"""From the words of a command line to a config, by Hydra: where its options come from, and every error in one line."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from ctxexp.command.config import (
    Config,
    key_names,
    leaves,
    parse_config,
    plain_values,
    refuse_written_secrets,
    section_error,
    section_names,
)
from ctxexp.command.experiment import Experiment
from ctxexp.command.options import (
    LOCATION_OPTIONS,
    Option,
    find_location,
    find_option,
    group_of,
    is_place,
    plain_config,
    unknown_option,
)
from ctxexp.command.overrides import OWN, no_word, quote, read_choices, take_plugins
from ctxexp.command.short_keys import full_key, is_short
from ctxexp.errors import SYNONYMS, ConfigError, CtxexpError, error_text, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND, CONFIG_KINDS
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    LOCATION_ARGUMENTS,
    add_config_folder,
    config_folder,
    config_folders,
    load_plugin_files,
    option_names,
    own_config_folder,
    plugin_files,
    refuse_typed_secrets,
    registry,
)
from ctxexp.progress import Progress

log = logging.getLogger("ctxexp")


class OptionSource(ConfigSource):  # type: ignore[misc]  # Hydra is untyped to us
    """Where Hydra looks options of our groups up: each with all of its keys, whether a file, a plugin or a location. It
    takes the user's plugin files and config folder to the workers of a sweep."""

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider, path)
        self.options: dict[str, Option | None] = {}  # by path: a sweep asks for each of them dozens of times
        self.plugins, self.folder = [str(file) for file in plugin_files()], own_config_folder()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        load_plugin_files(self.plugins)
        add_config_folder(self.folder)

    @staticmethod
    def scheme() -> str:
        return "ctxexp"

    def load_config(self, config_path: str) -> ConfigResult:
        option = self._option(config_path)
        assert option is not None
        node = OmegaConf.create({"defaults": option.defaults, **option.values} if option.defaults else option.values)
        return ConfigResult(self.provider, self.full_path(), node, {"package": option.package})

    def is_config(self, config_path: str) -> bool:
        return self._option(config_path) is not None

    def _option(self, config_path: str) -> Option | None:
        if config_path not in self.options:
            group, _, name = config_path.partition("/")
            self.options[config_path] = find_option(group, name) if name and group in CONFIG_KINDS else None
        return self.options[config_path]

    def is_group(self, config_path: str) -> bool:
        return config_path in CONFIG_KINDS

    def available(self) -> bool:
        return True

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        return [] if results_filter is ObjectType.GROUP else option_names(config_path)


class _Places(SearchPathPlugin):  # type: ignore[misc]
    """Adds our options, and the config folders that plugins offer; before all others the user's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        # Of an application of Hydra's beside ours in the process, such as a verb's own, the configs are its own.
        if not any(one.path.endswith(str(config_folder())) for one in search_path.get_path()):
            return
        folders = config_folders()
        ours = folders.index(config_folder())
        for folder in folders[:ours]:
            search_path.prepend("ctxexp-user", f"file://{folder}")
        search_path.prepend("ctxexp", "ctxexp://")
        for folder in folders[ours + 1 :]:
            search_path.append("ctxexp-plugin", f"file://{folder}")


def prepare() -> None:
    """Make the options known to Hydra."""
    Plugins.instance().register(OptionSource)
    Plugins.instance().register(_Places)
    # So that Hydra's own files lie where ours do: it knows no `~`.
    OmegaConf.register_new_resolver("ctxexp.folder", lambda folder: str(user_path(folder)), replace=True)


def read_overrides(words: Sequence[str]) -> list[str]:
    """The words of a command line, less its flags, as Hydra's overrides, plugins loaded; a line of the log says what is
    read as a model of the hub. Raises ConfigError, for a secret in clear too."""
    prepare()
    parts = (part for word in words for part in _parts(word))
    overrides = [as_override(word) for word in take_plugins([*parts])]
    refuse_typed_secrets(overrides)
    for override in overrides:
        group, _, names = override.partition("=")
        for name in [names.strip("'\"")] if is_place(names.strip("'\"")) else names.split(","):
            if group == "model" and (option := find_location(group, name)):
                log.info("%s is read as model=%s model.%s=%s", name, option, LOCATION_ARGUMENTS[group], name)
    choices = _choices(overrides)
    return [_with_full_key(override, choices) for override in overrides]


def _parts(word: str) -> list[str]:
    """The words of a model that is quoted with its options, as verbs take it: `"bert dtype=bfloat16"`."""
    model, blank, _ = word.partition(" ")
    return shlex.split(word) if blank and not is_place(word) and group_of(model) == "model" else [word]


def _choices(overrides: Iterable[str]) -> dict[str, Any]:
    """The options that the overrides choose, by group; of a sweep the first."""
    choices: dict[str, Any] = {}
    for group, _, names in (override.partition("=") for override in overrides):
        name = names.strip("[]'\"")
        if group in GROUPS:
            choices[group] = name if group in LISTS or is_place(name) else name.partition(",")[0]
    return choices


def _with_full_key(override: str, choices: Mapping[str, Any]) -> str:
    """The override with the dotted key that its last part stands for."""
    key, sign, text = override.partition("=")
    if not sign or not is_short(key):
        return override
    return f"{full_key(key, read_choices([f'value={text}'])['value'], choices)}={text}"


def as_override(word: str) -> str:
    """A word as Hydra's grammar takes it: a name or a place alone with its group, `text=` and `+experiment=` as the
    groups that they mean, and quotes around a path that needs them.

    Example:
        >>> as_override("bert-base-uncased"), as_override("text=~/mine.txt")
        ('model=bert-base-uncased', "dataset='~/mine.txt'")
    """
    if group := group_of(word):
        word = f"{group}={word}"
    word = re.sub("^text=", "dataset=", re.sub(r"^\++experiment=", "experiment=", word))
    key, sign, value = word.partition("=")
    is_odd_place = key in LOCATION_OPTIONS and is_place(value) and not re.fullmatch(r"[\w./-]+", value, re.ASCII)
    is_home = re.fullmatch(r"[\w.+]+=~[^'\",\[\]{}]*", word)
    return f"{key}={quote(value)}" if sign and (is_odd_place or is_home) else word


def check_overrides(overrides: Iterable[str]) -> list[Override]:
    """The overrides as Hydra reads them. Raises ConfigError for a word that is none, and for several options of a group
    of which a run has one."""
    parsed: list[Override] = []
    first: dict[str, str] = {}
    for text in overrides:
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(no_word(text))
        one = _parse_one(text)
        key = one.get_key_element()
        if key.startswith(("hydra.run.", "hydra.sweep.")):
            raise ConfigError(f"{key}= changes nothing: results lie in the folder that tracking.folder= names")
        if key in GROUPS and (before := first.setdefault(key, text)) != text:
            raise ConfigError(
                f"{key} is given twice, {line(before, 80)} and {line(text, 80)}: leave one out, or sweep with "
                f"-m {key}=NAME,NAME{'; several files of one text are a folder' * (key == 'dataset')}"
            )
        if key in GROUPS and key not in LISTS and isinstance(one.value(), list):
            raise ConfigError(f"{line(text, 80)}: a run has one {key}; sweep with -m {key}=NAME,NAME")
        if key in GROUPS and isinstance(one.value(), int | float):  # Hydra's own words don't say of which key
            raise unknown_option(key, text.partition("=")[2])
        if key in section_names() and not text.partition("=")[2].startswith(("{", "'{", '"{')):
            raise section_error(key, text.partition("=")[2])
        parsed.append(one)
    return parsed


def _parse_one(text: str) -> Override:
    """The override as Hydra reads it. Raises ConfigError."""
    hydra = GlobalHydra.instance()
    loader = hydra.config_loader() if hydra.is_initialized() else None  # it knows what a glob stands for
    try:
        (override,) = OverridesParser.create(config_loader=loader).parse_overrides(overrides=[text])
    except Exception as error:  # RecursionError and what else its parser makes of odd values
        message = re.sub(r"\s*\^?\s*See https://\S+ for details", "", str(error))
        message = message.replace("LexerNoViableAltException: ", "Error parsing override ")
        hint = "odd characters need quotes, as in 'key=\"~/a b\"'"
        if text.count("[") > text.count("]"):  # the shell parted it
            hint = "a list is typed without spaces, as in key=[a,b]"
        raise ConfigError(f"{line(message, 600)}; {hint}") from None
    return override


def first_job(parsed: Iterable[Override]) -> list[str]:
    """The overrides of a sweep's first job. Raises ConfigError."""
    job: list[str] = []
    for o in parsed:
        key, text = o.key_or_group, o.input_line or ""
        if o.is_sweep_override() and key == "sink":
            raise ConfigError(
                f"{line(text, 80)}: all jobs of a sweep have the same sinks; several are a list, as in sink=[a,b]"
            )
        if not o.is_sweep_override():
            job.append(text)
            continue
        try:
            job.append(f"{o.get_key_element()}={next(o.sweep_string_iterator())}")
        except Exception as error:  # none, a step of 0, a bound that is no number
            raise ConfigError(f"{line(text, 80)}: it gives no values ({error_text(error)})") from None
    return job


def compose_run(overrides: Sequence[str]) -> tuple[DictConfig, Experiment]:
    """The composed config of one run, with Hydra's own part, and its experiment, checked.

    Raises CtxexpError for what the run would fail at, before torch is loaded.
    """
    with hydra_configs():
        for one in check_overrides(overrides):
            if one.is_sweep_override():
                raise ConfigError(_several(one, overrides))
        composed, config = _compose(overrides)
    experiment = Experiment(config, Progress())
    experiment.check()
    return composed, experiment


def _several(override: Override, overrides: Sequence[str]) -> str:
    """The message on several values of one run: they are a sweep's, or a list."""
    key, _, values = (override.input_line or "").partition("=")
    if "." not in key and key not in (*GROUPS, *key_names()):
        return _unknown_key(key, overrides)
    is_list = key in (*LISTS, "plugins") or "." in key
    as_list = f", or all in one run: {key}=[{values}]" if override.is_choice_sweep() and is_list else ""
    return f"{line(f'{key}={values}', 80)}: a run for each value is a sweep, ctxexp -m {key}={values}{as_list}"


def compose_sweep(overrides: Sequence[str]) -> Config:
    """The config of a sweep's first job; files, devices and other jobs are left to the jobs. Raises CtxexpError."""
    with hydra_configs():
        _, config = _compose(first_job(check_overrides(overrides)))
    return Experiment(config).config


def _compose(overrides: Sequence[str]) -> tuple[DictConfig, Config]:
    """The composed config, and the checked one. Raises ConfigError: for odd values Hydra and resolvers raise
    ValueError, TypeError, ..."""
    try:
        composed = compose("ctxexp", overrides=list(overrides), return_hydra_config=True)
        refuse_written_secrets(composed)
        values = plain_values(composed)
    except CtxexpError:
        raise
    except Exception as error:
        raise ConfigError(explain(error, overrides)) from None
    config = parse_config(values, registry())
    if [Path(file) for file in config.plugins] != list(plugin_files()):
        raise ConfigError(
            f"plugins={config.plugins}: files of plugins are named on the command line only, since their names must be "
            "known before configs are read"
        )
    return composed, config


@contextmanager
def hydra_configs() -> Iterator[None]:
    """Hydra with our configs."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_folder()), version_base="1.3"):
        yield
    GlobalHydra.instance().clear()


def explain(error: Exception, overrides: Sequence[str] = ()) -> str:
    """One line for an error of Hydra's or OmegaConf's, with the nearest of the chosen options' keys, or names."""
    text = str(error) or type(error).__name__
    if match := re.search(r"Could not override '([^']+)'", text):
        return _unknown_key(match[1], overrides)
    if match := re.search(r"Could not (?:find|load) '([^']+)'", text):
        group, _, name = match[1].partition("/") if match[1].partition("/")[0] in GROUPS else match[1].rpartition("/")
        return str(unknown_option(group, name, None if group in GROUPS else _hydras_options(group)))
    return line(text)


def _hydras_options(group: str) -> Sequence[str]:
    """The names of a group of Hydra's, or of a plugin's own."""
    if not GlobalHydra.instance().is_initialized():
        with hydra_configs():
            return _hydras_options(group)
    return list(GlobalHydra.instance().config_loader().get_group_options(group))


def _unknown_key(key: str, overrides: Sequence[str]) -> str:
    """The message on a key that no chosen option has."""
    if key == "dataset.path":
        return "dataset.path: the data set that is chosen has no path; a file of text is dataset=FILE"
    keys = [*GROUPS, *(path for path, _ in leaves(plain_config(_choices(overrides))))]
    same = [one for one in keys if one.rpartition(".")[2] == key.rpartition(".")[2]]
    verbs = registry().names(COMMAND)
    named = [one for one in SYNONYMS.get(key, ()) if "." in one or one in (*keys, *verbs, *OWN, "text")]
    meant = [f"ctxexp {one}" if one in verbs and one not in keys else repr(one) for one in named]
    close = meant or [*map(repr, same[:2] or suggestions(key, keys))]
    hint = f"; did you mean {' or '.join(close)}?" if close else "; ctxexp --help values lists them"
    return f"no config key {short(key)}{hint}"
