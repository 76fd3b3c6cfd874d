"""The words of the command line: hints, choices that exist, a sweep's first job, and choices that change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from ctxexp.command.names import Location, as_overrides, as_value, config_keys, locate, quote
from ctxexp.errors import ConfigError, UnknownName, error_text, is_text, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.registry import ARGUMENTS, GROUPS, LISTS, install_hint, load_plugin_files

REFERENCES = {"weights": "${weights.name}", "dtype": "${dtype}", "device": "${device}"}  # how a part follows the run's
HARMLESS = ("float32", "auto", "cpu")  # values that also hold for what takes none
HUB_NAME = r"(?!\d+$)[\w.-]{2,96}"
Options = Callable[[str], list[str]]
"""A group's names: `Options("model")` -> ["bert", ...]."""


def normalize_overrides(texts: Sequence[str]) -> list[str]:
    """The overrides with `experiment=NAME` where the usual Hydra idiom `+experiment=NAME` stood (the key is there),
    with `dataset=` where the verbs' `text=` stands, and with quotes around a path that begins with `~`, which Hydra's
    grammar needs."""
    texts = [re.sub("^text=", "dataset=", text) for text in texts]
    texts = [text.lstrip("+") if text.lstrip("+").startswith("experiment=") else text for text in texts]
    return [re.sub(r"^([\w.+]+)=(~[^'\",\[\]{}]*)$", r"\1='\2'", text) for text in texts]


def take_plugins(overrides: Sequence[str]) -> list[str]:
    """Load the files of `plugins=[...]`; returns the overrides with the paths of these files absolute, for workers.

    Hydra must know the names before it composes, so the command line is the only place for them. Raises ConfigError.
    """
    args: list[str] = []
    for text in overrides:
        if not text.lstrip("+").startswith("plugins="):
            args.append(text)
            continue
        value = (override := _parsed(text, None)).value()
        value = [v.text if isinstance(v, QuotedString) else v for v in (value if isinstance(value, list) else [value])]
        if override.is_sweep_override() or not all(isinstance(v, str) for v in value):
            raise ConfigError(
                f"{text}: expected a list of files, as in plugins=[./my_plugin.py]; plugins are for the whole command"
            )
        files = [str(user_path(v).absolute()) for v in value]
        load_plugin_files(files)
        args.append(f"plugins=[{','.join(map(quote, files))}]")
    return args


def expand_locations(texts: Sequence[str], options: Options) -> tuple[list[str], list[Location]]:
    """The overrides with a group's name before a location that stands alone, and the locations, each an option of
    Hydra's from now on: `model=bert-base-uncased`, one or among the names of a sweep."""
    overrides: list[str] = []
    locations: list[Location] = []
    for text in as_overrides(texts, options):
        group = text.partition("=")[0]
        names = _values(text) if group in ARGUMENTS else []
        places = {name: place for name in names if (place := locate(group, name, options(group)))}
        locations += places.values()
        chosen = ",".join(as_value(_store(places[name]) if name in places else name) for name in names)
        overrides.append(f"{group}={chosen}" if places else text)
    return overrides, locations


def _values(text: str) -> list[str]:
    """The texts that an override gives its key, one, or a sweep's; of a path that exists that path, however it is
    spelt."""
    value = text.partition("=")[2]
    with suppress(ConfigError, OSError):
        if user_path(value).exists():
            return [value]
    try:
        choices = _parsed(text, None).value()
    except ConfigError:  # as `parse` says
        return []
    values = choices.list if isinstance(choices, ChoiceSweep) and not choices.shuffle else [choices]
    texts = [value.text if isinstance(value, QuotedString) else value for value in values]
    return texts if all(isinstance(text, str) for text in texts) else []


def _store(location: Location) -> str:
    """The name of an option of Hydra's for the location: its option, with its argument. A path from here is absolute:
    Hydra would read `./bert` as our own option of that name."""
    group, option, place = location
    named = str(user_path(place).resolve()) if {".", ".."} & set(place.split("/")) else place.rstrip("/")
    path, _, name = re.sub("/+", "/", f"{group}/{named}").rpartition("/")
    node = {"defaults": [f"/{group}/{option}@_here_", "_self_"], ARGUMENTS[group]: place}
    ConfigStore.instance().store(group=path, name=name, node=node, provider="ctxexp")
    return named


def parse(texts: Sequence[str], options: Options, loader: ConfigLoader | None) -> list[Override]:
    """The overrides as Hydra reads them, every choice of a group among the group's names. Raises ConfigError."""
    parsed: list[Override] = []
    first: dict[str, str] = {}
    for text in texts:
        if not is_text(text):
            raise ConfigError(f"{text[:60]!a}: expected UTF-8")
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(f"{short(text)} is no override, which is key=value{_suggestion(text, options)}")
        one = _parsed(text, loader)
        _check_choice(one, options)
        key = one.get_key_element()
        if key in GROUPS and (before := first.setdefault(key, text)) != text:
            raise ConfigError(
                f"{key} is given twice, {line(before, 80)} and {line(text, 80)}: leave one out, or sweep with "
                f"-m {key}=NAME,NAME"
            )
        parsed.append(one)
    return parsed


def _parsed(text: str, loader: ConfigLoader | None) -> Override:
    """The override as Hydra reads it. Raises ConfigError."""
    try:
        (override,) = OverridesParser.create(config_loader=loader).parse_overrides(overrides=[text])
    except HydraException as error:
        message = re.sub(r"\s*\^?\s*See https://\S+ for details", "", str(error))
        message = message.replace("LexerNoViableAltException: ", "Error parsing override ")
        raise ConfigError(f"{line(message, 600)}; odd characters need quotes, as in 'key=\"~/a b\"'") from None
    except Exception as error:  # RecursionError and what else its parser makes of odd values
        raise ConfigError(f"{line(text, 80)!a}: it can't be read ({error_text(error)})") from None
    return override


def first_job(parsed: Iterable[Override], options: Options, *, multirun: bool) -> list[str]:
    """The overrides of a sweep's first job, or of the one run; an interval of a search is left out. Raises
    ConfigError."""
    job: list[str] = []
    for o in parsed:
        key, text = o.key_or_group, o.input_line or ""
        if key in GROUPS and key != "experiment" and o.value() is None and not o.is_delete():
            raise ConfigError(f"{key}=null: a run needs one ({', '.join(options(key))})")
        if o.is_sweep_override() and key == "sink":
            raise ConfigError(
                f"{line(text, 80)}: all jobs of a sweep have the same sinks; several are a list, as in sink=[a,b]"
            )
        if o.is_sweep_override() and not multirun:
            raise ConfigError(
                f"{line(key, 80)} has several values; a sweep needs -m, as in: python -m ctxexp -m {line(text, 80)}"
            )
        if not o.is_sweep_override():
            job.append(text)
        elif o.is_discrete_sweep():
            try:
                first = next(o.sweep_string_iterator(), None)
            except Exception as error:  # a step of 0, a bound that is no number
                raise ConfigError(f"{line(text, 80)}: it can't be read ({error_text(error)})") from None
            if first is None:
                raise ConfigError(f"{line(text, 80)}: expected values, got none")
            job.append(f"{o.get_key_element()}={first}")
    return job


def _check_choice(o: Override, options: Options) -> None:
    """Raise ConfigError unless the names that a group's override chooses are among the group's."""
    group, text = o.key_or_group, line(o.input_line or "", 80)
    names = options(group) if group in GROUPS or group.startswith("hydra/") else []
    if not names or o.is_delete() or o.is_interval_sweep() or o.is_range_sweep():
        return
    if group in GROUPS and o.is_add() and o.package is None:
        raise ConfigError(f"{text}: a run has a {group} already; leave the + out to choose another")
    if isinstance(o.value(), list) and group in GROUPS and group not in LISTS:
        raise ConfigError(f"{text}: a run has one {group}; sweep with -m {group}=NAME,NAME")
    for value in o.sweep_iterator() if o.is_sweep_override() else [o.value()]:
        for name in value if isinstance(value, list) else [value]:
            name = name.text if isinstance(name, QuotedString) else name
            if name is not None and not isinstance(name, str):
                raise ConfigError(f"{group}={short(name)}: expected a name ({', '.join(names)})")
            if name and name not in ("???", *names) and not locate(group, name, names):
                raise UnknownName(group, name, names, install_hint(group, name) or _elsewhere(group, name, names))


def _elsewhere(group: str, name: str, names: Sequence[str]) -> str:
    """A hint how one of the hub, or a file, is given, where the name may be that of one; else empty."""
    is_new = re.fullmatch(HUB_NAME, name[:97]) and ("-" in name or not suggestions(name, names))
    if group == "dataset" and re.search("[/~]", name):
        return f"; a file of text: dataset=text dataset.path={name}"
    option = f"{group}=huggingface {group}.{ARGUMENTS[group]}={name}" if group in ARGUMENTS else ""
    return f"; of the hub: {option}" if is_new and option else ""


def _suggestion(word: str, options: Options) -> str:
    """`; did you mean ...?`: the command, the option of some group, or the key that the word is or resembles."""
    name = word.strip().lstrip("-")
    meant = {verb: f"ctxexp {verb}" for verb in options(COMMAND)}
    for group in GROUPS:
        meant |= {option: f"{group}={option}" for option in options(group) if option not in meant}
    keys = {key.name: f"{key.name}=..." for key in config_keys()}
    if name not in meant and (hint := next(filter(None, (install_hint(k, name) for k in (COMMAND, *GROUPS))), "")):
        return hint
    if name.removesuffix("s") in GROUPS:
        return f"; ctxexp --help {name.removesuffix('s')} lists them, and {name.removesuffix('s')}=NAME chooses"
    if close := [name] if name in meant else suggestions(name, meant) or suggestions(name, keys):
        return f"; did you mean {' or '.join((meant | keys)[one] for one in close)}?"
    place = "; no such file or folder is here, or it holds neither a model nor texts" if re.search("[./]", name) else ""
    return f"{place}; ctxexp --help lists what there is{_elsewhere('model', name, [])}"


def flatten_keys(node: Mapping[str, object], prefix: str = "") -> list[str]:
    """The dotted keys of a config, outer ones first."""
    keys = []
    for key, value in node.items():
        keys.append(prefix + str(key))
        if isinstance(value, dict):
            keys += flatten_keys(value, f"{prefix}{key}.")
    return keys


def idle_choices(config: DictConfig, overrides: Sequence[str]) -> Iterator[str]:
    """A sentence for each of weights, dtype and device that the overrides choose and no part of the job takes."""
    text = OmegaConf.to_yaml(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]))
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key in REFERENCES and value not in HARMLESS and REFERENCES[key] not in text:
            yield (
                f"{key}= changes nothing for model {config.model.name!r}, which doesn't take it: jobs that differ in "
                "it alone are the same"
            )
