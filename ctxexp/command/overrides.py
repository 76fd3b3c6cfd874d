"""From the words of a command line to Hydra's overrides: hub names, folders and files become options of their groups.

A location is read as an option of its group with that location as its argument. What is nearly one of the group's
names is none: it is misspelt, and the hub is not asked for it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString
from omegaconf import DictConfig, OmegaConf

from ctxexp.command.config import key_names, values_of_run
from ctxexp.datasets.reading import is_text_file
from ctxexp.errors import ConfigError, UnknownName, error_text, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.arguments import arguments
from ctxexp.plugins.registry import (
    GROUPS,
    LISTS,
    LOCATION_ARGUMENTS,
    install_hint,
    load_plugin_files,
    option_names,
    plugin_files,
    registry,
)

REFERENCES = {"weights": "${weights.name}", "dtype": "${dtype}", "device": "${device}"}  # how a part follows the run's
HARMLESS = ("float32", "auto", "cpu")  # values that also hold for what takes none
HUB_NAME = r"(?!\d+$)[\w.-]{2,96}"


class Location(NamedTuple):
    """A location, with the group and the option that it stands for.

    Example:
        >>> Location("model", "huggingface", "bert-base-uncased").overrides
        ['model=huggingface', 'model.checkpoint=bert-base-uncased']
    """

    group: str
    option: str
    place: str

    @property
    def overrides(self) -> list[str]:
        """The two overrides that it abbreviates."""
        return [f"{self.group}={self.option}", f"{self.group}.{LOCATION_ARGUMENTS[self.group]}={as_value(self.place)}"]


def as_value(value: object) -> str:
    """The value in Hydra's grammar; a text is in quotes where it would not be read back as the same text."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {as_value(one)}' for key, one in value.items())}}}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{','.join(map(as_value, value))}]"
    if not isinstance(value, str | Path):
        return "null" if value is None else str(value)
    text = str(value)
    is_bare = re.fullmatch(r"[\w./-]*[/.a-zA-Z-][\w./-]*", text, re.ASCII)
    is_other = re.fullmatch(r"[\d._eE+-]+|null|true|false|nan|inf", text, re.IGNORECASE)
    return text if is_bare and not is_other else quote(text)


def quote(value: str) -> str:
    """The value as Hydra's override grammar reads it back unchanged."""
    return "'" + value.replace("\\'", "\\\\'").replace("'", "\\'") + "'"


def typed_model(text: str) -> tuple[str, list[str]]:
    """A model's name and the words behind it, as it is typed everywhere: `minilm dtype=bfloat16`; a run's folder is
    the model of that run. Raises ConfigError unless there is exactly one name.

    Example:
        >>> typed_model("bert model.pooling=first")
        ('bert', ['model.pooling=first'])
    """
    try:
        words = [text] if user_path(text).exists() else shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{text!r}: {error}") from error
    is_option = ["=" in word and not word.startswith("model=") and not user_path(word).exists() for word in words]
    named = [word.removeprefix("model=") for word, other in zip(words, is_option, strict=True) if not other]
    if len(named) != 1:
        raise ConfigError(f'{text!r}: expected a run\'s folder, or one model, as in "minilm dtype=bfloat16"')
    others = [word for word, other in zip(words, is_option, strict=True) if other]
    if not (user_path(named[0]) / "config.yaml").is_file():
        return named[0], others
    values = values_of_run(user_path(named[0]))
    model: Any = values["model"]
    taken = arguments(registry().find("model", model["name"]).factory) or {}
    chosen = {key: value for key, value in model.items() if key not in taken or taken[key][1] != value}
    own = [(key if key in values else f"model.{key}", value) for key, value in chosen.items() if value is not None]
    kept = [f"{key}={as_value(value)}" for key, value in own if key not in ("model.name", "device")]
    return model["name"], [*kept, *others]


def normalize_overrides(texts: Iterable[str]) -> list[str]:
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
        value = _parse_one(text).value()
        if isinstance(value, ChoiceSweep):
            meant = text.partition("=")[2].replace("[", "").replace("]", "")
            raise ConfigError(f"{text}: expected a list of files, as in plugins=[{meant}]")
        files = value if isinstance(value, list) else [value]
        load_plugin_files([file.text if isinstance(file, QuotedString) else file for file in files])
        args.append(f"plugins=[{','.join(quote(str(file)) for file in plugin_files())}]")
    return args


def expand_locations(texts: Iterable[str]) -> tuple[list[str], list[Location]]:
    """The overrides with a group's name before a name or location that stands alone, and the locations, each an option
    of Hydra's from now on: `model=bert-base-uncased`, one or among the names of a sweep."""
    overrides: list[str] = []
    locations: list[Location] = []
    for text in map(as_override, texts):
        group = text.partition("=")[0]
        names = _values(text) if group in LOCATION_ARGUMENTS else []
        places = {name: place for name in names if (place := locate(group, name, option_names(group)))}
        locations += places.values()
        chosen = ",".join(as_value(_store(places[name]) if name in places else name) for name in names)
        overrides.append(f"{group}={chosen}" if places else text)
    return overrides, locations


def as_override(word: str) -> str:
    """A word of a command line, as an override where it is alone and says which model or which text:
    `bert-base-uncased` becomes `model=bert-base-uncased`, `mine.txt` becomes `dataset=mine.txt`."""
    group = group_of(word)
    return f"{group}={quote(word) if word.startswith('~') else word}" if group else word


def group_of(word: str) -> str:
    """The group that a word of its own chooses from: `model` for names of models, repositories and folders of a model,
    `dataset` for files and folders of text; empty for any other word. Words with commas are several."""
    if re.match(r"[\w+.]+=|[-+=]|~[\w.@]+$", word) or not word:
        return ""
    parts = [word] if "," not in word or user_path(word).exists() else word.split(",")
    groups = {_group_of(part) for part in parts}
    return groups.pop() if len(groups) == 1 else ""


def _group_of(word: str) -> str:
    if word in (models := option_names("model")):
        return "model"
    try:
        path = user_path(word)
        if path.is_dir():
            has_texts = any(is_text_file(one) and one.suffix != ".json" for one in path.iterdir())
            is_model = any((path / name).is_file() for name in ("config.json", "adapter_config.json"))
            return "model" if is_model else "dataset" if has_texts else ""
        is_file = path.is_file()
    except (ConfigError, OSError):
        return ""
    if path.suffix != ".gguf" and (is_file or is_text_file(path)):
        return "dataset"
    return "model" if locate("model", word, models) else ""


def locate(group: str, text: str, names: Sequence[str]) -> Location | None:
    """The location that the text is, where one of the group's names is expected; None: it is one, or no location.

    Folders and files that exist are locations, as are texts written like a path and, of the hub, `owner/name` and a
    name with a dash that isn't nearly one of the group's.
    """
    if group not in LOCATION_ARGUMENTS or text in names or not text:
        return None
    try:
        path = user_path(text)
        exists = path.exists()
    except (ConfigError, OSError):
        return None
    is_path = exists or text.startswith(("/", "./", "../", "~")) or text.count("/") > 1
    if group == "dataset" and (is_path or is_text_file(path)):
        return Location(group, "text", text)
    is_file = group == "model" and (is_path or path.suffix == ".gguf")
    is_known = is_file or (_is_repository(text, names) and "huggingface" in names)
    return Location(group, "huggingface", text) if is_known else None


def _is_repository(text: str, names: Sequence[str]) -> bool:
    """Whether the text is written like a repository of the hub, and not nearly like one of the names."""
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", text, re.ASCII):
        return True
    if not re.fullmatch(r"\w[\w.]*(-[\w.]+)+", text, re.ASCII) or text.replace("-", "_") in names:
        return False
    return not suggestions(text, names) or any(text.startswith(f"{name}-") for name in names)


def _values(text: str) -> list[str]:
    """The texts that an override gives its key, one, or a sweep's; of a path that exists that path, however it is
    spelt."""
    value = text.partition("=")[2]
    with suppress(ConfigError, OSError):
        if user_path(value).exists():
            return [value]
    try:
        choices = _parse_one(text).value()
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
    node = {"defaults": [f"/{group}/{option}@_here_", "_self_"], LOCATION_ARGUMENTS[group]: place}
    ConfigStore.instance().store(group=path, name=name, node=node, provider="ctxexp")
    return named


def options(group: str) -> list[str]:
    """The names of a config group, those in its folders (`flow/0`) included; of COMMAND, the verbs."""
    if group == COMMAND:
        return registry().names(COMMAND)
    if group in GROUPS:
        return option_names(group)
    return list(GlobalHydra.instance().config_loader().get_group_options(group))


def parse(texts: Iterable[str]) -> list[Override]:
    """The overrides as Hydra reads them. Raises ConfigError for a word that is none, and for several options of a group
    of which a run has one."""
    parsed: list[Override] = []
    first: dict[str, str] = {}
    for text in texts:
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(f"{short(text)} is no override, which is key=value{_suggestion(text)}")
        one = _parse_one(text)
        key = one.get_key_element()
        if key in GROUPS and (before := first.setdefault(key, text)) != text:
            raise ConfigError(
                f"{key} is given twice, {line(before, 80)} and {line(text, 80)}: leave one out, or sweep with "
                f"-m {key}=NAME,NAME"
            )
        if key in GROUPS and key not in LISTS and isinstance(one.value(), list):
            raise ConfigError(f"{line(text, 80)}: a run has one {key}; sweep with -m {key}=NAME,NAME")
        if key in GROUPS and isinstance(one.value(), int | float):  # Hydra's own words don't say of which key
            raise unknown_option(key, text.partition("=")[2])
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
        raise ConfigError(f"{line(message, 600)}; odd characters need quotes, as in 'key=\"~/a b\"'") from None
    return override


def first_job(parsed: Iterable[Override]) -> list[str]:
    """The overrides of a sweep's first job; an interval of a search is left out. Raises ConfigError."""
    job: list[str] = []
    for o in parsed:
        key, text = o.key_or_group, o.input_line or ""
        if o.is_sweep_override() and key == "sink":
            raise ConfigError(
                f"{line(text, 80)}: all jobs of a sweep have the same sinks; several are a list, as in sink=[a,b]"
            )
        if not o.is_sweep_override():
            job.append(text)
        elif o.is_discrete_sweep():
            try:
                job.append(f"{o.get_key_element()}={next(o.sweep_string_iterator())}")
            except Exception as error:  # none, a step of 0, a bound that is no number
                raise ConfigError(f"{line(text, 80)}: it gives no values ({error_text(error)})") from None
    return job


def unknown_option(group: str, name: str) -> UnknownName:
    """The error of an option that the group doesn't have: who brings it, or how one of the hub is chosen."""
    names = options(group)
    return UnknownName(group, name, names, install_hint(group, name) or _hub_hint(group, name, names))


def _hub_hint(group: str, name: str, names: Sequence[str]) -> str:
    """A hint how a repository of the hub is given, where the name may be that of one; else empty."""
    is_new = re.fullmatch(HUB_NAME, name[:97]) and ("-" in name or not suggestions(name, names))
    option = f"{group}=huggingface {group}.{LOCATION_ARGUMENTS[group]}={name}" if group in LOCATION_ARGUMENTS else ""
    return f"; of the hub: {option}" if is_new and option else ""


def _suggestion(word: str) -> str:
    """`; did you mean ...?`: the command, the option of some group, or the key that the word is or resembles."""
    name = word.strip().lstrip("-")
    meant = {verb: f"ctxexp {verb}" for verb in options(COMMAND)}
    for group in GROUPS:
        meant |= {option: f"{group}={option}" for option in options(group) if option not in meant}
    keys = {key: f"{key}=..." for key in key_names()}
    if name not in meant and (hint := next(filter(None, (install_hint(k, name) for k in (COMMAND, *GROUPS))), "")):
        return hint
    if close := [name] if name in meant else suggestions(name, meant) or suggestions(name, keys):
        return f"; did you mean {' or '.join((meant | keys)[one] for one in close)}?"
    place = "; no such file or folder is here, or it holds neither a model nor texts" if re.search("[./]", name) else ""
    return f"{place}; ctxexp --help lists what there is{_hub_hint('model', name, [])}"


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
