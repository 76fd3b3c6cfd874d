"""A job's identity, from its config: the title and metadata by which charts and tables call it, the params that sinks
show, and its key, which jobs with equal numbers share (config, contents of texts and files, model, code).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ctxexp.command.config import Component, Config
from ctxexp.controls import Control
from ctxexp.errors import ConfigError
from ctxexp.files import user_path
from ctxexp.files.code_version import __version__, package_digest
from ctxexp.jobs.names import RESULT_NEUTRAL_KEYS
from ctxexp.measuring.study import Study
from ctxexp.models.options import AS_TOKENIZER
from ctxexp.models.transformer.checkpoint import label_of
from ctxexp.plugins import CONFIG_KINDS
from ctxexp.plugins.registry import GROUP, LISTS, PluginVersion
from ctxexp.results.run_info import CorpusInfo, FitInfo, ModelInfo, PluginInfo, RunInfo, TransformInfo

# Arguments of models that titles have in another way, or that change no vector.
OTHERWISE_IN_TITLE = ("weights", "checkpoint", "revision", "path", "point", "prefix", "layers", "seed", "device",
                      "unused")  # fmt: skip
CODE = f"{__version__} {package_digest()}"  # of the running code: computed once, on import


def run_title(config: Config, control: Control) -> str:
    """The run's name in charts, such as `bert (random) (prefix bos) + drop_top (k=3) fitted on polysemy`: the model, or
    the checkpoint that the user gave in its place; then each of its choices, control and transform that isn't the
    default."""
    choice = config.model.arguments.get("weights")
    parts = [config.model.name]
    if checkpoint := _checkpoint_name(config):
        parts = [checkpoint] if config.model.arguments.get("checkpoint") else [*parts, checkpoint]
        if revision := config.model.arguments.get("revision"):
            parts.append(str(revision))
        if choice == "untrained":
            parts.append("(untrained)")
    elif choice not in (None, "mini"):
        parts.append(f"({choice})")
    if (point := config.model.arguments.get("point", "residual")) != "residual":
        parts.append(str(point))
    if prefix := _prefix(config):
        parts.append(f"(prefix {prefix})")
    listed = {*(config.model.signature() or {})} - {*OTHERWISE_IN_TITLE}
    parts += [f"{key}={value}" for key, value in config.model.choices.items() if key in listed]
    if control.label:
        parts.append(f"({control.label})")
    if (transform := transform_label(config)) != "none":
        parts += ["+", transform]
        if config.fit_on != "target":
            parts.append(f"fitted on {fit_text_name(config.fit_on)}")
    return " ".join(parts)


def run_info(config: Config, title: str) -> RunInfo:
    """The part of the run's metadata that its config tells: names and labels of what it chooses."""
    return RunInfo(
        title=title,
        model=ModelInfo(name=config.model.name, weights=weights_label(config) or ""),
        corpus=CorpusInfo(choices={key: str(value) for key, value in vars(config.words).items()}),
        transform=TransformInfo(
            name=transform_label(config),
            arguments={"name": config.transform.name, **config.transform.arguments},
            fit=FitInfo(text=fit_text_name(config.fit_on)),
        ),
        published=config.figures.published,
        plugins=plugins_used(config),
    )


def weights_label(config: Config) -> str | None:
    """The name of the run's weights: the checkpoint that the user gave, or the option `model.weights`; None where the
    model has no such option."""
    choice, checkpoint = config.model.arguments.get("weights"), _checkpoint_name(config)
    return f"untrained {checkpoint}" if checkpoint and choice == "untrained" else checkpoint or choice


def _prefix(config: Config) -> str:
    """The prefix that the config puts before each text, in quotes if it is a text; empty where that is left to the
    tokenizer."""
    prefix = str(config.model.arguments.get("prefix") or AS_TOKENIZER)
    if prefix == AS_TOKENIZER:
        return ""
    return prefix if prefix in ("none", "bos") else repr(prefix)


def _checkpoint_name(config: Config) -> str:
    """The name of a checkpoint or file that the user gave; empty if none."""
    files = (config.model.arguments.get(key) for key in ("checkpoint", "weight_file", "options_file", "path"))
    path = next(filter(None, files), "")
    return label_of(str(path)) if path else ""


def fit_text_name(fit_on: str) -> str:
    """The name of the text that the transform is fitted on: of `nli:PATH` the file's name, else `fit_on` itself."""
    return Path(fit_on.removeprefix("nli:")).name if fit_on.startswith("nli:") else fit_on


def transform_label(config: Config) -> str:
    """The transform with those of its arguments that differ from its factory's defaults: `none`, `drop_top (k=3)`. The
    device is left out, since it says nothing about the space."""
    part = config.transform
    listed = ", ".join(f"{key}={value}" for key, value in part.choices.items() if key != "device")
    return f"{part.name} ({listed})" if listed else part.name


def plugins_used(config: Config) -> tuple[PluginInfo, ...]:
    """The plugins that supply parts of this run, each with the parts that it supplies."""
    names_by_source: dict[PluginVersion, dict[str, None]] = {}
    for part in config.result_components():
        if source := part.offer.supplier:
            names_by_source.setdefault(source, {})[f"{part.kind} {part.name}"] = None
    return tuple(PluginInfo(**vars(source), supplies=tuple(names)) for source, names in names_by_source.items())


def run_params(document: Mapping[str, object], cfg: DictConfig, config: Config) -> dict[str, object]:
    """The config as written, less what says nothing about the numbers; with the versions of the plugins that it
    uses."""
    decisive = _own_values({key: value for key, value in document.items() if key not in RESULT_NEUTRAL_KEYS}, cfg)
    versions: dict[str, str] = {}
    for one in plugins_used(config):  # distributions may call their plugins by one name
        versions[one.plugin] = ", ".join(filter(None, [versions.get(one.plugin), f"{one.distribution} {one.version}"]))
    return {**_without_defaults(decisive, config), "plugins": versions}


def _without_defaults(document: Mapping[str, Any], config: Config) -> dict[str, object]:
    """The values less the options of parts that stand at their factory's default."""
    chosen = dict(document)
    for kind in {*CONFIG_KINDS} & {*document}:
        part = getattr(config, kind)
        if kind in LISTS:
            chosen[kind] = {label: _own_options(document[kind][label], one) for label, one in part.items()}
        else:
            chosen[kind] = _own_options(document[kind], part)
    return chosen


def _own_options(node: Mapping[str, object], part: Component) -> dict[str, object]:
    """A part's name, and those of its options that aren't its factory's defaults."""
    return {key: value for key, value in node.items() if key == "name" or key in part.choices}


def _own_values(document: Mapping[str, object], cfg: DictConfig) -> dict[str, object]:
    """The values that aren't taken from another key."""
    own: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            own[key] = _own_values(value, cfg[key])
        elif not OmegaConf.is_interpolation(cfg, key) or "${oc.env" in str(value):
            own[key] = value
    return own


def protocol_of(params: Mapping[str, object]) -> str:
    """Hex digest of the params less the seed: the same for jobs that differ in nothing else."""
    text = json.dumps({key: value for key, value in params.items() if key != "seed"}, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def key_of(config: Config, study: Study) -> str:
    """The job's key, which covers all that its numbers depend on: a finished job of the same key can stand for it."""
    data = study.corpus.content + (study.fit_on.content if study.fit_on else "") + files_digest(config)
    return job_key(config, data, study.encoder.name, CODE)


def job_key(config: Config, data_digest: str, encoder: str, version: str) -> str:
    """Hex digest (16 digits) of all that determines a job's numbers: the config without output and cache locations, the
    data, the encoder, versions.

    `data_digest` holds the digests of the contents of texts and files; `encoder` is the encoder's name, which changes
    with the content of a checkpoint; `version` is `CODE`, version and code digest of ctxexp. Plugins that supply
    something to the job are included with their versions and code digests.
    """
    neutral = (*RESULT_NEUTRAL_KEYS, "registry")
    decisive = {key: value for key, value in vars(config).items() if key not in neutral}
    others = sorted((p.plugin, p.version, code_of(p.distribution)) for p in plugins_used(config))
    text = json.dumps([decisive, data_digest, encoder, version, *others], sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def code_of(distribution: str) -> str:
    """Hex digits that change with the code of a distribution's plugins, since in an editable install the code changes
    while the version doesn't; empty for a plugin file, whose version is its content."""
    try:
        entries = metadata.distribution(distribution).entry_points.select(group=GROUP)
    except (metadata.PackageNotFoundError, ValueError):  # ValueError: of an empty name
        return ""
    modules = {entry.module.partition(".")[0] for entry in entries}
    files = [Path(spec.origin) for module in sorted(modules) if (spec := find_spec(module)) and spec.origin]
    return " ".join(package_digest(file.parent if file.name == "__init__.py" else file) for file in files)


def _plain(value: object) -> object:
    if isinstance(value, Component):
        return {"name": value.name, **value.arguments}
    return vars(value) if is_dataclass(value) else str(value)


def files_digest(config: Config) -> str:
    """Hex digest (16 digits) that changes with what lies at the paths among the arguments of a config's metrics,
    transform, baseline and control: a file's bytes; of a folder's files their names, sizes and times. An
    unreadable file is skipped here; using it raises an error."""
    digest = hashlib.blake2b(digest_size=8)
    # the contents of a dataset's and a model's files are in `data_digest` and the encoder's name
    parts = [part for part in config.result_components() if part.kind not in ("dataset", "model")]
    for path in sorted(set(_existing_paths([dict(part.arguments) for part in parts]))):
        digest.update(f"{path}\0".encode())
        with suppress(OSError):
            if path.is_file():
                digest.update(path.read_bytes())
            for file in sorted(path.rglob("*")):
                status = file.lstat()
                digest.update(f"{file.relative_to(path)}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _existing_paths(value: object) -> Iterator[Path]:
    """The paths among these values at which a file or folder exists."""
    if isinstance(value, dict):
        yield from _existing_paths(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _existing_paths(one)
    elif isinstance(value, str) and value:
        try:
            path = user_path(value)
            if path.exists():
                yield path
        except (ConfigError, OSError):
            return
