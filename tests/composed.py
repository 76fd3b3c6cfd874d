"""The command in this process: its configs, its registry with a stranger's plugins, and its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxexp import Corpus
from ctxexp.command import cli, compose
from ctxexp.command import registry as registry_of_command
from ctxexp.command.config import own_component, parse_config
from ctxexp.command.options import plain_config
from ctxexp.command.overrides import read_choices
from ctxexp.plugins.registry import Offer, build_registry, load_plugin_files


def composed(*overrides: str, registry: Any = None, **nodes: Any) -> Any:
    """The config that these words make, the last one of a key, with plain nodes in place of theirs, of the registry's
    names (None: the command's)."""
    last = {word.partition("=")[0]: word for word in overrides}
    return parse_config({**plain_config(read_choices(last.values())), **nodes}, registry or registry_of_command())


def of(config: Any, corpus: Corpus) -> Any:
    """The config with this corpus as its data set."""
    return with_part(config, "dataset", corpus.name, lambda: corpus)


def with_part(config: Any, kind: str, name: str, factory: Any) -> Any:
    """The config with this part, by its factory, in place of its own."""
    return replace(config, **{kind: own_component(kind, name, factory)})


def check_command(words: Sequence[str], *, multirun: bool = False) -> None:
    """Raise CtxexpError for what a command of these words would fail at before torch is loaded."""
    overrides = compose.read_overrides(words)
    compose.compose_sweep(overrides) if multirun else compose.compose_run(overrides)


def planned(words: Sequence[str]) -> dict[str, str]:
    """The values that an experiment's own sweep gives each key."""
    from hydra import compose as hydra_compose

    compose.prepare()
    with compose.hydra_configs():
        whole = hydra_compose("ctxexp", overrides=list(words), return_hydra_config=True)
    return {key: str(values) for key, values in (whole.hydra.sweeper.get("params") or {}).items()}


def config_of(words: Sequence[str]) -> Any:
    """The config of these words, with the secrets that they refer to."""
    return compose.compose_sweep(compose.read_overrides(words))


def run_command_line(words: Sequence[str]) -> int | str | None:
    """The exit status of `ctxexp WORDS`, typed here."""
    return cli.run_command_line(words)


def registry_of(plugins: Sequence[tuple[str, object]] = (), *, files: Sequence[Path] = ()) -> Any:
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
