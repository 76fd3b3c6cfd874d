"""The names of a run in charts, tables and its `RunInfo`, from its config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ctxexp.command.config import Config
from ctxexp.control import Control
from ctxexp.models.choices import AS_TOKENIZER
from ctxexp.models.transformer.checkpoints import label_of
from ctxexp.plugins import PluginVersion
from ctxexp.results.run_info import CorpusInfo, FitInfo, ModelInfo, PluginInfo, RunInfo, TransformInfo

TOLD = (
    "weights", "checkpoint", "revision", "path", "point", "prefix", "layers", "seed", "device", "device_map", "linear",
    "unused",
)  # fmt: skip  # arguments of models that titles tell in another way, or that change no vector


def run_title(config: Config, control: Control) -> str:
    """The run's name in charts, such as `bert (random) (prefix bos) + drop_top (k=3) fitted on polysemy`: the model, or
    the checkpoint that the user gave in its place; then each of its choices, control and transform that isn't the
    default."""
    choice = config.model.arguments.get("weights")
    parts = [config.model.name]
    if checkpoint := _checkpoint_name(config):
        parts = [checkpoint] if config.model.arguments.get("checkpoint") else [*parts, checkpoint]
        parts += [str(revision)] if (revision := config.model.arguments.get("revision")) else []
        parts += ["(untrained)"] if choice == "untrained" else []
    elif choice not in (None, "mini"):
        parts.append(f"({choice})")
    if (point := config.model.arguments.get("point", "residual")) != "residual":
        parts.append(str(point))
    if prefix := _prefix(config):
        parts.append(f"(prefix {prefix})")
    parts += _other_choices(config)
    if control.label:
        parts.append(f"({control.label})")
    if (transform := transform_label(config)) != "none":
        parts += ["+", transform]
        if config.fit_on != "target":
            parts.append(f"fitted on {fit_text_name(config.fit_on)}")
    return " ".join(parts)


def _other_choices(config: Config) -> list[str]:
    """What else of the model isn't the default, as it is typed: `pooling=first`."""
    defaults = {key: default for key, (_, default) in (config.model.signature() or {}).items()}
    chosen = config.model.arguments.items()
    return [f"{key}={value}" for key, value in chosen if key not in TOLD and key in defaults and value != defaults[key]]


def run_info(config: Config, title: str, fit: FitInfo | None) -> RunInfo:
    """The part of the run's metadata that its config tells: names and labels of what it chooses."""
    return RunInfo(
        title=title,
        model=ModelInfo(name=config.model.name, weights=weights_label(config) or ""),
        corpus=CorpusInfo(choices={key: str(value) for key, value in vars(config.words).items()}),
        transform=TransformInfo(
            name=transform_label(config),
            arguments={"name": config.transform.name, **config.transform.arguments},
            fit=fit and replace(fit, text=fit_text_name(config.fit_on)),
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
    defaults = {key: default for key, (_type, default) in (part.signature() or {}).items()}
    defaults["device"] = part.arguments.get("device")
    arguments = {k: v for k, v in part.arguments.items() if not (k in defaults and defaults[k] == v)}
    listed = ", ".join(f"{key}={value}" for key, value in arguments.items())
    return f"{part.name} ({listed})" if listed else part.name


def plugins_used(config: Config) -> tuple[PluginInfo, ...]:
    """The plugins that supply parts of this run, each with the parts that it supplies."""
    names_by_source: dict[PluginVersion, dict[str, None]] = {}
    for part in config.result_components():
        if source := part.source:
            names_by_source.setdefault(source, {})[f"{part.kind} {part.name}"] = None
    return tuple(PluginInfo(**vars(source), supplies=tuple(names)) for source, names in names_by_source.items())
