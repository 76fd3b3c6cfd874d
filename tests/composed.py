"""The command in this process: its configs, its registry with a stranger's plugins, and its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxexp import Corpus
from ctxexp.command import cli, compose
from ctxexp.command.config import parse_config
from ctxexp.plugins.registry import Offer, build_registry, load_plugin_files


def composed(*overrides: str, registry: Any = None, **nodes: Any) -> Any:
    """The config that these words make, with plain nodes in place of theirs, of the registry's names (None: the
    command's)."""
    from hydra import compose as hydra_compose

    compose.prepare()
    with compose._hydra():
        values = compose.plain_values(hydra_compose("ctxexp", overrides=list(overrides)))
    return parse_config({**values, **nodes}, registry or compose.registry())


def of(config: Any, corpus: Corpus) -> Any:
    """The config with this corpus as its data set."""
    return config.with_factories("dataset", {corpus.name: lambda: corpus})


def check_command(words: Sequence[str], *, multirun: bool = False) -> None:
    """Raise CtxexpError for what a command of these words would fail at before torch is loaded."""
    compose.check_command(compose.read_overrides(words), multirun=multirun)


def planned(words: Sequence[str]) -> dict[str, str]:
    """The values that an experiment's own sweep gives each key."""
    from hydra import compose as hydra_compose

    with compose._hydra():
        whole = hydra_compose("ctxexp", overrides=list(words), return_hydra_config=True)
    return {key: str(values) for key, values in (whole.hydra.sweeper.get("params") or {}).items()}


def config_of(words: Sequence[str]) -> Any:
    """The config of these words, with the secrets that they refer to."""
    return compose.config_of(words)


def run_command_line(words: Sequence[str]) -> int | str | None:
    """The exit status of `ctxexp WORDS`, typed here."""
    return cli.run_command_line(words)


def registry_of(plugins: list[tuple[str, object]] | None = None, *, files: Sequence[Path] = ()) -> Any:
    """ctxexp's own names with those of plugins by name, and of plugin files; nothing that is installed."""
    return build_registry(plugins, installed=False, files=files)


def offer(registry: Any, kind: Any, name: str, factory: Any) -> Offer:
    """A name more in the registry."""
    made = Offer(kind, name, factory, "tests")
    registry.add(made)
    return made


def forget_plugin_files() -> None:
    """What `plugins=[...]` brought to this process is gone."""
    load_plugin_files([])
