"""Credentials of a command line and of a config: references to environment variables stand in their place before Hydra
writes or quotes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc

from ctxexp.command.names import registry
from ctxexp.jobs.credentials import keep_secret, mask_text, mask_values, names_secret, redact, with_credentials

_URI = re.compile(r"[a-zA-Z][\w+.-]*://[^\s'\",\]}]+")
_VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,}\]\s]+"""


def is_secret(key: str) -> bool:
    """Whether a sink's argument of this name holds a credential: by declaration (`Sink.secrets`), or by its name."""
    return names_secret(key, _declared_secrets())


def _declared_secrets() -> set[str]:
    offers = (registry().find("sink", name) for name in registry().names("sink"))
    return {key for offer in offers for key in offer.secrets}


def mask_arguments(args: Sequence[str]) -> None:
    """Let `mask` know the secrets among the words of a command line as typed, for an error that comes before they are
    hidden: values of keys, or of a verb's arguments and flags, whose last part names a secret."""
    for text in hide_overrides(args):  # nested ones, and URIs
        key, _, value = text.partition("=")
        if is_secret(key.lstrip("-+~").rpartition(".")[2].replace("-", "_")):
            bare = re.sub(r"""^(['"])(.*)\1$""", r"\2", value, flags=re.DOTALL)
            for secret in (value, bare, *re.split(r"[\[\],]", bare)):  # a message may quote one value of several
                mask_text(secret)


def mask_resolved(config: DictConfig) -> None:
    """Let `mask` know the values of the secret arguments of a composed config's sinks, references resolved. One that
    can't be resolved is left out: who needs it says so."""
    sinks = config.get("sink")
    for node in sinks.values() if isinstance(sinks, DictConfig) else ():
        mask_values(_resolve_each(node), _declared_secrets())


def _resolve_each(node: object) -> dict[str, Any]:
    """The arguments of a sink that can be resolved, each by itself, as plain values."""
    values: dict[str, Any] = {}
    if not isinstance(node, DictConfig):
        return values
    for key in node:
        try:
            value = node[key]
            values[str(key)] = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        except OmegaConfBaseException:
            continue
    return values


def hide_overrides(overrides: Sequence[str]) -> list[str]:
    """The words of a command line with `${oc.env:CTXEXP_SECRET_...}` in place of each credential: a sink's secret
    arguments, and URIs with a password or a signature, other than a sink's own address, which is shown without them."""
    return [_hide_override(text) for text in overrides]


def _hide_override(text: str) -> str:
    key, equals, value = text.partition("=")
    path = key.lstrip("+~")
    if not equals:
        return text
    if re.match(r"sink\b", path):
        if is_secret(path.rpartition(".")[2]):
            return f"{key}={_reference(path, value)}"
        return f"{key}={_hide_nested(path, value)}"
    paths = (f"{path}_{i}" for i in range(len(value)))
    return (
        f"{key}={_URI.sub(lambda uri: uri[0] if redact(uri[0]) == uri[0] else _reference(next(paths), uri[0]), value)}"
    )


def _hide_nested(path: str, value: str) -> str:
    """A dictionary of a sink's arguments as typed, `{watch:{api_key:...}}`."""

    def hidden(pair: re.Match[str]) -> str:
        return f"{pair[1]}{pair[2]}{_reference(f'{path}.{pair[1]}', pair[3])}" if is_secret(pair[1]) else pair[0]

    return re.sub(rf"(\w+)(\s*:\s*)({_VALUE})", hidden, value)


def _reference(path: str, value: str) -> str:
    """The reference that stands in a config for this value; a value that is a reference already, or empty, stays."""
    quoted = re.fullmatch(r"""(['"])(.*)\1""", value, re.DOTALL)
    bare = quoted[2] if quoted else value
    if bare.startswith("${") or bare in ("", "null", "???"):
        return value
    return f"${{oc.env:{keep_secret(path, bare)}}}"


def hide(config: DictConfig) -> list[str]:
    """Take credentials out of a composed config and its overrides, before Hydra writes them; `whole` has a tracking
    URI's again. The overrides that put the same references into the configs of a sweep's jobs."""
    job = _plain(config.hydra.job)
    overrides = [str(text) for text in _plain(config.hydra.overrides)["task"]]
    clean = [redact(text) if re.match(r"\+*sink\.[^=]*=", text) else text for text in overrides]
    references: dict[str, str] = {}
    with read_write(config), open_dict(config):
        for label, node in _plain(config.sink).items():
            uri = str(node.get("uri") or "")
            if redact(uri) != uri:
                with_credentials(str(config.sink[label].uri))
                config.sink[label].uri = redact(uri)
        for path, value in _leaves({key: node for key, node in _plain(config).items() if key != "hydra"}):
            if (reference := _hidden_leaf(path, value)) != value:
                OmegaConf.update(config, path, reference)
                references[path] = reference
        if clean != overrides:
            config.hydra.overrides.task = clean
            names = str(job.get("override_dirname"))
            for old, new in zip(overrides, clean, strict=True):
                names = names.replace(old, new)
            config.hydra.job.override_dirname = names
    mask_resolved(config)
    return [f"{path}={reference}" for path, reference in references.items()]


def _leaves(node: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and value of each text in the dictionaries of a config."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, str):
            yield prefix + str(key), value


def _hidden_leaf(path: str, value: str) -> str:
    place, _, key = path.rpartition(".")
    if re.match(r"sink\b", place) and is_secret(key):
        return _reference(path, value)
    return _reference(path, value) if _URI.fullmatch(value) and redact(value) != value else value


def _plain(config: DictConfig, resolve: bool = False) -> dict[str, Any]:
    plain = OmegaConf.to_container(config, resolve=resolve)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def as_written(config: DictConfig) -> dict[str, object]:
    """The config as plain values, interpolations resolved but for those of the environment, which stay as written."""
    OmegaConf.register_new_resolver("oc.env", lambda *args: f"${{oc.env:{','.join(map(str, args))}}}", replace=True)
    try:
        return {key: value for key, value in _plain(config, resolve=True).items() if key != "hydra"}
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def environment_texts(config: DictConfig) -> dict[str, str]:
    """Texts that the config takes from the environment, each with the reference that stands for it. A path's last part
    is one too, since runs and figures call a file by it, unless it is a registered name (`semcor`)."""
    references = {path: value for path, value in _leaves(as_written(config)) if "${oc.env" in value}
    values = {path: OmegaConf.select(config, path) for path in references}
    texts = {value: references[path] for path, value in values.items() if isinstance(value, str) and value}
    ours = {name for _, name in registry().offers}
    names = {name: reference for text, reference in texts.items() if (name := Path(text).name) and name not in ours}
    return {**names, **texts}
