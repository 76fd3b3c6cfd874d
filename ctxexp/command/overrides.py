"""The words of the command line: hints, choices that exist, the jobs of a sweep, and choices that change nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice

from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, QuotedString, Sweep
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from ctxexp.command.config import MEANT
from ctxexp.command.names import Location, as_overrides, locate, long_form, quote
from ctxexp.errors import ConfigError, UnknownName, error_text, line, short, suggestions
from ctxexp.files import user_path
from ctxexp.plugins import COMMAND
from ctxexp.plugins.registry import ARGUMENTS, GROUPS, LISTS, install_hint, load_plugin_files

LONGEST = 200  # letters of a key
MAX_VALUES = 100_000  # of one key in a sweep
REFERENCES = {"weights": "${weights.name}", "dtype": "${dtype}", "device": "${device}"}  # how a part follows the run's
HARMLESS = ("float32", "auto", "cpu")  # values that also hold for what takes none

HUB_NAME = r"(?!\d+$)[\w.-]{2,96}"
VERBS = {"help": "ctxexp --help", "version": "ctxexp --version", "measure": "ctxexp run", "list": "ctxexp models"}
Options = Callable[[str], list[str]]
"""A group's names: `Options("model")` -> ["bert", ...]."""
_SEVERAL = re.compile(rf"({'|'.join(ARGUMENTS)})=(['\"]?)(\w+):(.*)\2", re.DOTALL)  # a location among a sweep's names


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
        try:
            (override,) = OverridesParser.create().parse_overrides(overrides=[text])
        except HydraException as error:
            raise ConfigError(line(str(error))) from None
        if override.is_sweep_override():
            raise ConfigError(f"{text}: plugins are for the whole command, a list in brackets: plugins=[a.py,b.py]")
        value = override.value()
        value = [value] if isinstance(value, str | QuotedString) else value
        if not isinstance(value, list) or not all(isinstance(v, str | QuotedString) for v in value):
            raise ConfigError(f"{text}: expected a list of files, as in plugins=[./my_plugin.py]")
        files = [str(user_path(v.text if isinstance(v, QuotedString) else v).absolute()) for v in value]
        load_plugin_files(files)
        args.append(f"plugins=[{','.join(map(quote, files))}]")
    return args


def expand_locations(texts: Sequence[str], options: Options) -> tuple[list[str], list[Location]]:
    """The overrides with every location in its long form, and the locations: `model=bert-base-uncased`, that word
    alone, and `dataset.path=mine.txt` where nothing names a data set. One that is swept beside names, or beside those
    of another option, is made an option of Hydra's instead, which `write_out` turns back. Raises ConfigError where one
    is given twice."""
    overrides: list[str] = []
    locations: list[Location] = []
    texts = as_overrides(texts, options)
    if not any(re.match(r"\+*(dataset|experiment)=", text) for text in texts):
        texts = [_with_dataset(text, options) for text in texts]
    by_group = {
        group: [text for text in texts if text.startswith(f"{group}.{key}=")] for group, key in ARGUMENTS.items()
    }
    for text in texts:
        group = text.partition("=")[0]
        names = _values(text) if group in ARGUMENTS else []
        own = {name: place for name in names if (place := locate(group, name, options(group)))}
        if own and by_group[group]:
            raise ConfigError(f"{by_group[group][0]} and {line(text, 80)}: two of one {group}; leave one out")
        locations += own.values()
        if own:
            by_group[group].append(text)
        if not own:
            overrides.append(text)
        elif len(own) == len(set(names)) and len({place.option for place in own.values()}) == 1:
            overrides += long_form(group, own[names[0]].option, [own[name].place for name in names])
        else:
            overrides.append(f"{group}={','.join(_as_option(own[name]) if name in own else name for name in names)}")
    return overrides, locations


def _with_dataset(text: str, options: Options) -> str:
    """`dataset=mine.txt` in place of `dataset.path=mine.txt`, which needs a data set that reads the file."""
    key, _, value = text.partition("=")
    names = _values(text) if key == "dataset.path" else []
    known = options("dataset")
    return f"dataset={value}" if names and all(locate("dataset", name, known) for name in names) else text


def _values(text: str) -> list[str]:
    """The texts that an override gives its key, one, or a sweep's; of a path that exists that path, however it is
    spelt."""
    value = text.partition("=")[2]
    with suppress(ConfigError, OSError):
        if user_path(value).exists():
            return [value]
    try:
        (parsed,) = OverridesParser.create().parse_overrides(overrides=[text])
        choices = parsed.value()
    except Exception:  # as `parse` says
        return []
    values = choices.list if isinstance(choices, ChoiceSweep) and not choices.shuffle else [choices]
    texts = [value.text if isinstance(value, QuotedString) else value for value in values]
    return texts if all(isinstance(text, str) for text in texts) else []


def _as_option(location: Location) -> str:
    """The name under which Hydra gets an option of its own for the location: that of its option, with its argument."""
    group, option, place = location
    path, _, name = f"{group}/{option}:{place}".rpartition("/")
    node = {"defaults": [f"/{group}/{option}@_here_", "_self_"], ARGUMENTS[group]: place}
    ConfigStore.instance().store(group=path, name=name, node=node, provider="ctxexp")
    return quote(f"{option}:{place}")


def write_out(overrides: Sequence[str]) -> list[str]:
    """A job's overrides with its locations in their long form."""
    every: list[str] = []
    for text in overrides:
        if match := _SEVERAL.fullmatch(text):
            place = match[4].replace("\\'", "'") if match[2] else match[4]
            every += long_form(match[1], match[3], [place])
        else:
            every.append(text)
    return every


def parse(texts: Sequence[str], options: Options, loader: ConfigLoader | None) -> list[Override]:
    """The overrides as Hydra reads them, every choice of a group among the group's names. Raises ConfigError."""
    parsed: list[Override] = []
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{text[:60]!a}: expected UTF-8") from None
        if len(key := text.partition("=")[0]) > LONGEST:
            raise ConfigError(f"no config key {short(key)}")
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(f"{short(text)} is no override, which is key=value{_suggestion(text, options)}")
        try:
            parsed += OverridesParser.create(config_loader=loader).parse_overrides(overrides=[text])
        except HydraException as error:
            message = re.sub(r"\s*\^?\s*See https://\S+ for details", "", str(error))
            message = message.replace("LexerNoViableAltException: ", "Error parsing override ")
            raise ConfigError(f"{line(message, 600)}; odd characters need quotes, as in 'key=\"~/a b\"'") from None
        except Exception as error:  # RecursionError and what else its parser makes of odd values
            raise ConfigError(f"{line(text, 80)}: it can't be read ({error_text(error)})") from None
    first: dict[str, str] = {}
    for one in parsed:
        _check_choice(one, options)
        key = one.get_key_element()
        if key in GROUPS and (before := first.setdefault(key, one.input_line or "")) != one.input_line:
            raise ConfigError(
                f"{key} is given twice, {line(before, 80)} and {line(one.input_line or '', 80)}: leave one out, or "
                f"sweep with -m {key}=NAME,NAME"
            )
    return parsed


def expand_sweeps(parsed: Iterable[Override], options: Options, *, multirun: bool) -> list[list[str]]:
    """The texts `key=value` that each override stands for, one list per override, none for an interval of a search;
    their product is the sweep's jobs. Raises ConfigError."""
    values: list[list[str]] = []
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
            values.append([text])
        elif o.is_discrete_sweep():
            if not 0 < (n := _count(o)) <= MAX_VALUES:
                raise ConfigError(
                    f"{line(text, 80)}: expected 1 to {MAX_VALUES:,} values, got {'more' if n else 'none'}"
                )
            texts = [v for v in o.sweep_string_iterator() if not (isinstance(o.value(), Glob) and ":" in v)]
            values.append([f"{o.get_key_element()}={v}" for v in texts])  # a glob stands for no location named before
        # else an interval for some sweeper: it is checked in its job
    return values


def _count(o: Override) -> int:
    """The number of values of a sweep, in [0, MAX_VALUES + 1]; a long range is not written out. Raises ConfigError."""
    choices = o.value()
    if isinstance(choices, ChoiceSweep) and any(isinstance(value, Sweep) for value in choices.list):
        text = line(o.input_line or "", 80)
        raise ConfigError(f"{text}: a range, interval or choice can't be one of several values; write them out")
    try:
        values = o.value().range() if o.is_range_sweep() else o.sweep_iterator()
        return sum(1 for _ in islice(values, MAX_VALUES + 1))
    except Exception as error:  # a step of 0, a bound that is no number
        raise ConfigError(f"{line(o.input_line or '', 80)}: it can't be read ({error_text(error)})") from None


def _check_choice(o: Override, options: Options) -> None:
    """Raise ConfigError unless the names that a group's override chooses are among the group's."""
    group, group_options = o.key_or_group, []
    if group in GROUPS or group.startswith("hydra/"):
        group_options = options(group)
    if not group_options or o.is_delete() or o.is_interval_sweep() or o.is_range_sweep():
        return
    if o.is_add() and group in GROUPS and o.package is None:
        raise ConfigError(
            f"{line(o.input_line or '', 80)}: a run has a {group} already; leave the + out to choose another"
        )
    if isinstance(o.value(), list) and group in GROUPS and group not in LISTS:
        names = list(map(str, o.value()))
        raise ConfigError(f"{group}={names}: a run has one {group}; sweep with -m {group}={','.join(names)}")
    values = o.sweep_iterator() if o.is_sweep_override() else [o.value()]
    for value in values:
        for name in value if isinstance(value, list) else [value]:
            name = name.text if isinstance(name, QuotedString) else name
            if name is not None and not isinstance(name, str):
                raise ConfigError(f"{group}={short(name)}: expected a name ({', '.join(group_options)})")
            is_location = isinstance(name, str) and _SEVERAL.fullmatch(f"{group}={name}")
            if name not in (None, "???") and name not in group_options and not is_location:
                raise UnknownName(
                    group, name, group_options, install_hint(group, name) or _elsewhere(group, name, group_options)
                )


def _elsewhere(group: str, name: str, names: Sequence[str]) -> str:
    """A hint on how a checkpoint or a file is given, where it may be one in place of a name; else empty."""
    if group not in ARGUMENTS or not re.fullmatch(rf"{HUB_NAME}|[\w.~/-]+/[\w./-]+|~[\w.-]+", name[:97]):
        return ""
    is_path, is_new = re.search(r"[/.~]", name), not suggestions(name, names)
    if group == "model" and (is_path or is_new or "-" in name):
        return f"; a checkpoint of the hub or a folder: model=huggingface model.checkpoint={name}"
    if group == "dataset" and is_path:
        return f"; a file of text: dataset=text dataset.path={name}"
    return f"; a data set of the hub: dataset=huggingface dataset.path={name}" if group == "dataset" and is_new else ""


def _suggestion(word: str, options: Options) -> str:
    """`; did you mean ...?`: the command, or the option of some group, that the word is or resembles."""
    verbs = {verb: f"ctxexp {verb}" for verb in options(COMMAND)} | VERBS
    commands = dict(verbs)
    for group in GROUPS:
        commands |= {name: f"{group}={name}" for name in options(group) if name not in commands}
    name = word.strip().lstrip("-")
    hints = [install_hint(kind, name) for kind in (COMMAND, *GROUPS)] if name not in commands else []
    if plugin := next(filter(None, hints), ""):
        return plugin
    if name in MEANT and name not in commands:
        return f"; did you mean {MEANT[name]}?"
    if name.removesuffix("s") in GROUPS:
        return f"; ctxexp --help {name.removesuffix('s')} lists them, and {name.removesuffix('s')}=NAME chooses"
    close = [commands[one] for one in ([name] if name in commands else suggestions(name, commands))]
    close = close or [verbs[one] for one in get_close_matches(name, verbs, n=2, cutoff=0.5)]
    if close:
        return f"; did you mean {' or '.join(close)}?"
    place = re.search(r"[./]", name) and "; no such file or folder is here"
    if place and os.path.isdir(os.path.expanduser(name)):  # noqa: PTH112, PTH111  # these raise nothing
        place = "; this folder holds neither a model (config.json) nor texts"
    hub = re.fullmatch(HUB_NAME, name) and f", and model=huggingface model.checkpoint={name} is the hub's of that name"
    return f"{place or ''}; ctxexp --help lists what there is{hub or ''}"


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
