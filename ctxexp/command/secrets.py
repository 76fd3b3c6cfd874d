"""A config's secrets: refused in clear, and unresolved where the config is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.resolvers import oc

from ctxexp.command.config import plain_values
from ctxexp.command.names import registry
from ctxexp.files.credentials import refuse_clear


def refuse_typed(words: Sequence[str]) -> None:
    """Raise ConfigError for a secret in clear among the words of a command line."""
    of_sinks = any("sink" in word and "=" in word for word in words)  # else no plugin is imported for its names
    offers = (registry().find("sink", name) for name in registry().names("sink") if of_sinks)
    refuse_clear(words, {key for offer in offers if not offer.problem for key in offer.secrets})


def refuse_written(config: DictConfig) -> None:
    """Raise ConfigError for a secret in clear in a composed config, whichever file it stands in."""
    refuse_typed([f"{path}={value}" for path, value in _leaves(plain_values(config, resolve=False))])


def _leaves(node: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Path and value of all that stands in the dictionaries of a config."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@contextmanager
def environment_unresolved() -> Iterator[None]:
    """While the block runs, interpolations of the environment resolve to themselves."""
    OmegaConf.register_new_resolver("oc.env", lambda *args: f"${{oc.env:{','.join(map(str, args))}}}", replace=True)
    try:
        yield
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def as_written(config: DictConfig) -> dict[str, object]:
    """The config as plain values, interpolations resolved but for those of the environment, which stay as written."""
    with environment_unresolved():
        return plain_values(config)


def environment_texts(config: DictConfig) -> dict[str, str]:
    """Texts that the config takes from the environment, each with the reference that stands for it. A path's last part
    is one too, since runs and figures call a file by it, unless it is a registered name (`semcor`)."""
    references = {path: text for path, text in _leaves(as_written(config)) if "${oc.env" in str(text)}
    values = {path: OmegaConf.select(config, path) for path in references}
    texts = {value: str(references[path]) for path, value in values.items() if isinstance(value, str) and value}
    ours = {name for _, name in registry().offers}
    names = {name: reference for text, reference in texts.items() if (name := Path(text).name) and name not in ours}
    return {**names, **texts}
