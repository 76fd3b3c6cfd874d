"""Credentials: used, never written. What goes to disk, a store or a terminal passes `mask` first."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from ctxexp.results.run_info import RunInfo

VARIABLE = "MLFLOW_TRACKING_URI"
FULL_URI = "CTXEXP_TRACKING_URI"  # the URI as it was given, for this process and the workers that it starts
_USER = re.compile(r"://(?!/).*@", re.DOTALL)  # to the last @: passwords hold / and @; sqlite:/// has no user
_USER_IN_TEXT = re.compile(r"://(?!/)[^\s'\"]*@")
_NAMES = r"pass|pwd|secret|token|key|credential|signature"  # what parts of a query that hold a secret are called
_QUERY = re.compile(rf"(?i)([?&;#](?:[^=&#]*(?:{_NAMES})[^=&#]*|sig|auth)=)([^&#\s'\"]*)")
_PREFIX = "CTXEXP_SECRET_"  # of the variables that hold what a command line or a config was given in clear text


def redact(uri: str) -> str:
    """The URI without user, password and the secret values of its query; a URI without secrets stays as it is."""
    return _QUERY.sub(r"\1***", _USER.sub("://", uri))


def with_credentials(uri: str) -> str:
    """The URI with its credentials, which are kept in the environment; a URI without them gets those kept for it."""
    if redact(uri) != uri:
        os.environ[FULL_URI] = uri
        return uri
    return next((candidate for candidate in _secret_uris() if redact(candidate) == uri), uri)


def keep_secret(key: str, value: str) -> str:
    """The name of the environment variable that holds this config key's value from now on, for this process and the
    workers that it starts."""
    name = _PREFIX + re.sub(r"\W", "_", key).upper()
    os.environ[name] = value
    return name


def _secret_values() -> list[str]:
    return [value for name, value in os.environ.items() if name.startswith(_PREFIX)]


def _secret_uris() -> list[str]:
    uris = [*(os.environ.get(name, "") for name in (FULL_URI, VARIABLE)), *_secret_values()]
    return [uri for uri in uris if redact(uri) != uri]


def _secrets() -> Iterator[str]:
    """Texts that must not be seen, in every form that a library may quote: whole, decoded, cut at a reserved
    character."""
    for uri in _secret_uris():
        yield from (match[2] for match in _QUERY.finditer(uri))
        if user := _USER.search(uri):
            name, _, password = user[0][3:-1].partition(":")
            secret = password or name
            for form in (secret, unquote(secret), quote(secret), quote(secret, safe="")):
                cuts = [-1, *(match.start() for match in re.finditer(r"[/@?#:]", form)), len(form)]
                yield from (form[a + 1 : b] for a, b in itertools.combinations(cuts, 2))
    yield from (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("PASSWORD", "TOKEN"))
    yield from (value for value in _secret_values() if redact(value) == value)


def mask(text: str) -> str:
    """The text with `***` for the credentials that this process knows, in any form, and without those of URIs in it."""
    for uri in _secret_uris():
        text = text.replace(uri, redact(uri))
    text = _USER_IN_TEXT.sub("://", text) if "://" in text else text
    for secret in sorted({s for s in _secrets() if len(s) > 2}, key=len, reverse=True):
        start, end = (r"(?<!\w)" if secret[0].isalnum() else "", r"(?!\w)" if secret[-1].isalnum() else "")
        text = re.sub(f"{start}{re.escape(secret)}{end}", "***", text)
    return text


def mask_document(document: Any) -> Any:
    """A JSON document with every text in it masked."""
    if isinstance(document, str):
        return mask(document)
    if isinstance(document, dict):
        return {key: mask_document(value) for key, value in document.items()}
    return [mask_document(value) for value in document] if isinstance(document, list | tuple) else document


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
