"""Credentials: used, never written. What goes to disk, a store or a terminal passes `mask` first."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from ctxexp.jobs.secret_forms import mask_cut, mask_secret
from ctxexp.results.run_info import RunInfo

VARIABLE = "MLFLOW_TRACKING_URI"
FULL_URI = "CTXEXP_TRACKING_URI"  # the URI as it was given, for this process and the workers that it starts
_USER = re.compile(r"://(?!/).*@", re.DOTALL)  # to the last @: passwords hold / and @; sqlite:/// has no user
_USER_IN_TEXT = re.compile(r"://(?!/)[^\s'\"]*@")
_NAMES = r"pass|pwd|secret|token|key|credential|signature"  # what parts of a query that hold a secret are called
_QUERY = re.compile(rf"(?i)([?&;#](?:[^=&#]*(?:{_NAMES})[^=&#]*|sig|auth)=)([^&#\s'\"]*)")
_PREFIX = "CTXEXP_SECRET_"  # of the variables that hold what a command line or a config gives a sink as a secret
# Arguments of sinks that hold credentials whether or not the sink says so.
_USUAL = re.compile(r"(?i)pass(word|wd|phrase)|pwd|secret|api_?key|credential|(^|_)token($|_)")


def redact(uri: str) -> str:
    """The URI without user, password and the secret values of its query; a URI without secrets stays as it is."""
    return _QUERY.sub(r"\1***", _USER.sub("://", uri))


def with_credentials(uri: str) -> str:
    """The URI with its credentials, which are kept in the environment; a URI without them gets those kept for it."""
    if redact(uri) != uri:
        os.environ[FULL_URI] = uri
        return uri
    return next((candidate for candidate in _Environment.now().secret_uris if redact(candidate) == uri), uri)


def keep_secret(key: str, value: str) -> str:
    """The name of the environment variable that holds this config key's value from now on, for this process and the
    workers that it starts."""
    name = _PREFIX + re.sub(r"\W", "_", key).upper()
    os.environ[name] = value
    return name


def names_secret(key: str, declared: Collection[str]) -> bool:
    """Whether an argument of this name holds a credential: by declaration (`Sink.secrets`), or by its usual name."""
    return bool(_USUAL.search(key)) or key in declared


def mask_values(arguments: Mapping[str, object], declared: Collection[str]) -> None:
    """Let `mask` know the values of a sink's secret arguments, nested ones too, wherever they came from: a reference to
    the user's own variable leads to a value that no `keep_secret` has seen. Processes that this one starts know them
    too."""
    for key, value in arguments.items():
        if names_secret(key, declared):
            for text in _texts(value):
                mask_text(text)
        elif isinstance(value, Mapping):
            mask_values(value, declared)


def mask_text(secret: str) -> None:
    """Let `mask` know a secret, in this process and those that it starts."""
    if secret and secret not in (secret_values := _secret_values()):
        os.environ[f"{_PREFIX}RESOLVED_{len(secret_values)}_{os.getpid()}"] = secret


def _texts(value: object) -> Iterator[str]:
    """The texts and numbers in a value of a config; true and false are no secrets."""
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _secret_values() -> list[str]:
    return [value for name, value in os.environ.items() if name.startswith(_PREFIX)]


class _Environment(NamedTuple):
    """The values of the variables that credentials come from."""

    uris: tuple[str, ...]  # tracking URIs, with credentials in them or without
    secrets: tuple[str, ...]  # of sinks: texts, and URIs with credentials in them
    own: tuple[str, ...]  # MLflow's password and token

    @classmethod
    def now(cls) -> _Environment:
        own = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("PASSWORD", "TOKEN"))
        return cls((os.environ.get(FULL_URI, ""), os.environ.get(VARIABLE, "")), tuple(_secret_values()), tuple(own))

    @property
    def secret_uris(self) -> list[str]:
        return [uri for uri in (*self.uris, *self.secrets) if redact(uri) != uri]


@lru_cache(maxsize=8)  # nearly all of a job's hundreds of texts are masked under one environment
def _secrets(environment: _Environment) -> list[str]:
    """Texts that must not be seen, the longest first, in every form that a library may quote: whole, decoded, cut at a
    reserved character."""
    secrets = {*environment.own, *(text for text in environment.secrets if redact(text) == text)}
    for uri in environment.secret_uris:
        secrets.update(match[2] for match in _QUERY.finditer(uri))
        if user := _USER.search(uri):
            name, _, password = user[0][3:-1].partition(":")
            secret = password or name
            for form in (secret, unquote(secret), quote(secret), quote(secret, safe="")):
                cuts = [-1, *(match.start() for match in re.finditer(r"[/@?#:]", form)), len(form)]
                secrets.update(form[a + 1 : b] for a, b in itertools.combinations(cuts, 2))
    return sorted((secret for secret in secrets if len(secret) > 2), key=len, reverse=True)


def mask(text: str) -> str:
    """The text with `***` for the credentials that this process knows, and without those of URIs in it.

    A credential is found as it is, escaped once or twice for Python, JSON, HTML, SQL, a shell or a URL, and where a
    message's length limit has cut it. One of at least 8 characters is found inside of longer words too, a shorter one
    only as a word of its own, and one of less than 3 nowhere. Not covered: other encodings (base64, hexadecimal),
    hashes, another case, and other parts of a credential.
    """
    return _mask(text, _Environment.now())


def _mask(text: str, environment: _Environment) -> str:
    for uri in environment.secret_uris:
        text = text.replace(uri, redact(uri))
    text = _USER_IN_TEXT.sub("://", text) if "://" in text else text
    secrets = _secrets(environment)
    for secret in secrets:
        text = mask_secret(text, secret)
    if "..." in text:
        for secret in secrets:
            text = mask_cut(text, secret)
    return text


def mask_document(document: Any) -> Any:
    """A JSON document with every text in it masked."""
    environment = _Environment.now()

    def mask_part(part: Any) -> Any:
        if isinstance(part, str):
            return _mask(part, environment)
        if isinstance(part, dict):
            return {key: mask_part(value) for key, value in part.items()}
        return [mask_part(value) for value in part] if isinstance(part, list | tuple) else part

    return mask_part(document)


def info_as_written(info: RunInfo, texts: Mapping[str, str]) -> RunInfo:
    """The run's metadata with references where names and places came from the environment (`texts`)."""
    if not texts:
        return info
    document = info.to_json()
    for part in ("title", "model", "corpus", "transform"):
        document[part] = with_references(document[part], texts)
    document["model"]["name"] = info.model.name  # a config group's, which no environment gives
    return RunInfo.from_json(document)


def with_references(document: Any, texts: Mapping[str, str]) -> Any:
    """A JSON document with these texts replaced, the longest first, wherever they stand in it as words of their own."""
    if isinstance(document, str):
        for text in sorted(texts, key=len, reverse=True):
            reference = texts[text].replace("\\", r"\\")
            document = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", reference, document)
        return document
    if isinstance(document, dict):
        return {key: with_references(value, texts) for key, value in document.items()}
    return [with_references(value, texts) for value in document] if isinstance(document, list) else document
