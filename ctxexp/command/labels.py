"""What a run is called in charts and tables, told from its config."""

from __future__ import annotations

from pathlib import Path

from ctxexp.command.config import Config
from ctxexp.models.choices import AS_TOKENIZER
from ctxexp.models.transformer.checkpoints import called


def label(config: Config) -> str:
    """What charts call the run: the model, by its checkpoint where one was given, weights and a prefix that aren't the
    default, the control and the transform unless they are none, with the text that it was fitted on."""
    chosen = config.model.arguments.get("weights")
    parts = [config.model.name]
    if given := _given(config):
        parts = [given] if config.model.arguments.get("checkpoint") else [*parts, given]
        parts += ["(untrained)"] if chosen == "untrained" else []
    elif chosen not in (None, "mini"):
        parts.append(f"({chosen})")
    if prefix := _prefix(config):
        parts.append(f"(prefix {prefix})")
    if words := config.control.make().words:
        parts.append(f"({words})")
    if (transform := calibration(config)) != "none":
        parts += ["+", transform]
        if config.fit_on != "target":
            parts.append(f"fitted on {text_name(config.fit_on)}")
    return " ".join(parts)


def weights(config: Config) -> str | None:
    """Which weights the run used: the group's choice, or the user's own files in its place."""
    chosen, given = config.model.arguments.get("weights"), _given(config)
    return f"untrained {given}" if given and chosen == "untrained" else given or chosen


def _prefix(config: Config) -> str:
    """What the config puts before each text, a text of its own in quotes; empty where it leaves that to the
    tokenizer."""
    chosen = str(config.model.arguments.get("prefix") or AS_TOKENIZER)
    if chosen == AS_TOKENIZER:
        return ""
    return chosen if chosen in ("none", "bos") else repr(chosen)


def _given(config: Config) -> str:
    """The name of a checkpoint or file that the user gave; empty if none."""
    files = (config.model.arguments.get(key) for key in ("checkpoint", "weight_file", "options_file", "path"))
    given = next(filter(None, files), "")
    return called(str(given)) if given else ""


def text_name(fit_on: str) -> str:
    """The choice of the fitted text, a path by its last part."""
    return Path(fit_on.removeprefix("nli:")).name if fit_on.startswith("nli:") else fit_on


def calibration(config: Config) -> str:
    """The transform and its arguments, those that differ from its factory's defaults: `none`, `drop_top (k=3)`; where
    it was computed says nothing about the space."""
    part = config.transform
    defaults = {key: default for key, (_type, default) in (part.known() or {}).items()}
    defaults["device"] = part.arguments.get("device")
    said = {k: v for k, v in part.arguments.items() if not (k in defaults and defaults[k] == v)}
    listed = ", ".join(f"{key}={value}" for key, value in said.items())
    return f"{part.name} ({listed})" if listed else part.name
