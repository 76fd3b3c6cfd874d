"""Configs as the command composes them."""

from __future__ import annotations

from typing import Any

from ctxexp import Corpus
from ctxexp.command import compose
from ctxexp.command.config import Config, parse_config
from ctxexp.plugins import Registry


def composed(*overrides: str, registry: Registry | None = None, **nodes: Any) -> Config:
    """The config that these words make, with plain nodes in place of theirs, of the registry's names (None: the
    command's)."""
    from hydra import compose as hydra_compose

    compose.prepare()
    with compose._hydra():
        values = compose.plain_values(hydra_compose("ctxexp", overrides=list(overrides)))
    return parse_config({**values, **nodes}, registry or compose.registry())


def of(config: Config, corpus: Corpus) -> Config:
    """The config with this corpus as its data set."""
    return config.with_factories("dataset", {corpus.name: lambda: corpus})
