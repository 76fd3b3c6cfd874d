"""A config without its secrets: before Hydra writes it, and as runs record it."""

from __future__ import annotations

import re
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.resolvers import oc

from ctxexp.sinks.disk.credentials import redact, whole


def hide(config: DictConfig) -> None:
    """Take credentials out of a composed config and its overrides, before Hydra writes them; `whole` has them again."""
    job = _plain(config.hydra.job)
    overrides = [str(text) for text in _plain(config.hydra.overrides)["task"]]
    clean = [redact(text) if re.match(r"\+*sink\.[^=]*=", text) else text for text in overrides]
    with read_write(config), open_dict(config):
        for label, node in _plain(config.sink).items():
            given = str(node.get("uri") or "")
            if redact(given) != given:
                whole(str(config.sink[label].uri))
                config.sink[label].uri = redact(given)
        if clean != overrides:
            config.hydra.overrides.task = clean
            names = str(job.get("override_dirname"))
            for old, new in zip(overrides, clean, strict=True):
                names = names.replace(old, new)
            config.hydra.job.override_dirname = names


def _plain(config: DictConfig, resolve: bool = False) -> dict[str, Any]:
    plain = OmegaConf.to_container(config, resolve=resolve)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def as_written(config: DictConfig) -> dict[str, object]:
    """The config as plain values, interpolations resolved but for those of the environment, which stay as written."""
    OmegaConf.register_new_resolver("oc.env", lambda *words: f"${{oc.env:{','.join(map(str, words))}}}", replace=True)
    try:
        return {key: value for key, value in _plain(config, resolve=True).items() if key != "hydra"}
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)
