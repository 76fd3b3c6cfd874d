"""Settings that decide a model's vectors beside its weights and tokenizer, and the place where they were computed."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ctxexp import Encoder
from ctxexp_compare.pins.pin import Fact

SETTINGS = ("pooling", "prefix", "start", "final_norm", "window", "causal", "architecture", "state")
LIBRARIES = ("ctxexp", "numpy", "torch", "transformers", "tokenizers")
MODES = {"cls_token": "cls", "mean_tokens": "mean", "lasttoken": "last"}  # of sentence-transformers, by our names


def settings(encoder: Encoder, view: Encoder | None) -> dict[str, Fact]:
    """The settings of an encoder, and of its view of sentences."""
    facts: dict[str, Fact] = {key: encoder.details[key] for key in SETTINGS if key in encoder.details}
    if view is not None:
        facts |= {"sentence limit": view.details.get("window", 0), "sentence pooling": declared_pooling(encoder)}
    return facts


def environment(encoder: Encoder) -> dict[str, Fact]:
    """Where an encoder computes: device, kernels, versions."""
    facts: dict[str, Fact] = {key: encoder.details[key] for key in ("device", "attention") if key in encoder.details}
    for name in LIBRARIES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**facts, "machine": f"{platform.system()} {platform.machine()}"}


def sentence_pooling(encoder: Encoder, view: Encoder | None) -> str:
    """The pooling of the sentence vectors that are pinned: the declared one where the encoder's view of sentences has
    it; empty without a view."""
    if view is None:
        return ""
    declared = declared_pooling(encoder)
    return declared if declared in view.poolings else view.poolings[0]


def declared_pooling(encoder: Encoder) -> str:
    """The pooling that the checkpoint's files name for sentence vectors, in sentence-transformers' format; `mean` where
    they name none."""
    folder = getattr(getattr(encoder, "checkpoint", None), "folder", None)
    if not isinstance(folder, Path) or folder == Path() or not folder.is_dir():
        return "mean"
    for place in (folder, folder.parent):  # the transformer may lie in a folder of its own
        for file in sorted(place.glob("*_Pooling/config.json")):
            try:
                config = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            return _mode(config) if isinstance(config, Mapping) else "mean"
    return "mean"


def _mode(config: Mapping[str, object]) -> str:
    if isinstance(named := config.get("pooling_mode"), str):
        return {"lasttoken": "last"}.get(named, named)
    modes = [key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on]
    return "+".join(MODES.get(mode, mode) for mode in modes) or "mean"


def differences(then: Mapping[str, Fact], now: Mapping[str, Fact]) -> list[str]:
    """`window 512 -> 128`, for each fact that isn't what it was."""
    keys = [*then, *(key for key in now if key not in then)]
    return [f"{key} {then.get(key, '-')} -> {now.get(key, '-')}" for key in keys if then.get(key) != now.get(key)]
