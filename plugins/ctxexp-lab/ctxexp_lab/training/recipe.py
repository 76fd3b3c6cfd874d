"""A training's choices: checked before any work, and compared with those of the training that a folder holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from ctxexp.errors import ConfigError, UnknownName
from ctxexp.models import resolve_device

PRECISIONS = ("bf16", "float32")
PENALTIES = ("cosine_penalty", "context_penalty")
PLACES = ("text", "cache", "folder", "start", "tracking", "stop_after", "minutes", "hydra")  # no part of the recipe
LEAST = {
    "steps": 1, "keep": 1, "warmup": 0, "log_every": 1, "held_out_every": 1, "held_out_limit": 1, "stop_after": 0,
    "words": 1, "skip": 0, "threads": 1, "seed": 0,
}  # fmt: skip
# What may differ where a training is gone on with: how it is watched, where it runs, how long it lasts.
FREE = (
    "steps", "warmup", "decay", "keep", "device", "threads", "log_every", "held_out_every", "held_out_limit",
    "save_every", "model.extend", "model.long_share",
)  # fmt: skip


def check_options(cfg: DictConfig) -> None:
    """Raise ConfigError for a value that no training can use."""
    if (cfg.steps is None) == (cfg.minutes is None):
        raise ConfigError(f"give either steps= or minutes=, not steps={cfg.steps} minutes={cfg.minutes}")
    for key, least in LEAST.items():
        value = cfg[key]
        if value is not None and (type(value) is not int or value < least):
            raise ConfigError(f"{key}={value!r}: expected a whole number from {least} on")
    for key in PENALTIES:
        if cfg[key] and cfg.model.name == "elmo":
            raise ConfigError(f"{key}={cfg[key]} is of model=bert and gpt2, whose training has it; not of elmo")
        if cfg[key] and cfg.contrastive is not None:
            raise ConfigError(
                f"{key}={cfg[key]} is a penalty on a language model's loss, which objective=contrastive hasn't: leave "
                "one of the two out"
            )
    if cfg.precision not in PRECISIONS:
        raise UnknownName("precision", str(cfg.precision), PRECISIONS)
    resolve_device(str(cfg.device))


def recipe_of(cfg: DictConfig) -> dict[str, object]:
    """All choices but the places of files, with nested ones as dictionaries."""
    choices = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(choices, dict)
    return {str(key): value for key, value in choices.items() if key not in PLACES}


def check_same(recipe: Mapping[str, object], other: Mapping[str, object], folder: Path) -> None:
    """Raise ConfigError where the training in `folder`, of the recipe `other`, is no earlier part of this one."""
    ours, theirs = flat_choices(recipe), flat_choices(other)
    differing = [key for key in ours if key not in FREE and key in theirs and ours[key] != theirs[key]]
    if differing:
        listing = ", ".join(f"{key}={theirs[key]!r}, not {ours[key]!r}" for key in differing[:4])
        raise ConfigError(f"{folder} holds a training with {listing}: choose another folder=, or delete that one")


def flat_choices(choices: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested choices by dotted key."""
    flat: dict[str, object] = {}
    for key, value in choices.items():
        flat |= flat_choices(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
