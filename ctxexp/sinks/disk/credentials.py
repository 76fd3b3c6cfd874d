"""Credentials: used, never written. What goes to disk, a store or a terminal passes `mask` first."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

VARIABLE = "MLFLOW_TRACKING_URI"
WHOLE = "CTXEXP_TRACKING_URI"  # the URI as it was given, for this process and the workers that it starts
_USER = re.compile(r"://(?!/).*@", re.DOTALL)  # to the last @: passwords hold / and @; sqlite:/// has no user
_USER_IN_TEXT = re.compile(r"://(?!/)[^\s'\"]*@")
_NAMES = r"pass|pwd|secret|token|key|credential|signature"  # what parts of a query that hold a secret are called
_QUERY = re.compile(rf"(?i)([?&;#](?:[^=&#]*(?:{_NAMES})[^=&#]*|sig|auth)=)([^&#\s'\"]*)")
_PREFIX = "CTXEXP_SECRET_"  # of the variables that hold what a command line or a config was given in clear text


def redact(uri: str) -> str:
    """The URI without user, password and what its query keeps secret; what has none comes back as it is."""
    return _QUERY.sub(r"\1***", _USER.sub("://", uri))


def whole(uri: str) -> str:
    """The URI with its credentials, which are remembered: one without takes those that the environment has for it."""
    if redact(uri) != uri:
        os.environ[WHOLE] = uri
        return uri
    return next((known for known in _known() if redact(known) == uri), uri)


def keep_secret(key: str, value: str) -> str:
    """The name of the environment variable that holds this config key's value from now on, for this process and the
    workers that it starts."""
    name = _PREFIX + re.sub(r"\W", "_", key).upper()
    os.environ[name] = value
    return name


def _kept() -> list[str]:
    return [value for name, value in os.environ.items() if name.startswith(_PREFIX)]


def _known() -> list[str]:
    held = [*(os.environ.get(name, "") for name in (WHOLE, VARIABLE)), *_kept()]
    return [uri for uri in held if redact(uri) != uri]


def _secrets() -> Iterator[str]:
    """What must not be seen, in every form that a library may quote: whole, decoded, cut at a reserved character."""
    for uri in _known():
        yield from (found[2] for found in _QUERY.finditer(uri))
        if user := _USER.search(uri):
            name, _, password = user[0][3:-1].partition(":")
            secret = password or name
            for form in (secret, unquote(secret), quote(secret), quote(secret, safe="")):
                cuts = [-1, *(found.start() for found in re.finditer(r"[/@?#:]", form)), len(form)]
                yield from (form[a + 1 : b] for a, b in itertools.combinations(cuts, 2))
    yield from (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("PASSWORD", "TOKEN"))
    yield from (value for value in _kept() if redact(value) == value)


def mask(text: str) -> str:
    """The text without credentials: those that this process knows, in any form, and those of any URI in it."""
    for uri in _known():
        text = text.replace(uri, redact(uri))
    text = _USER_IN_TEXT.sub("://", text) if "://" in text else text
    for secret in sorted({s for s in _secrets() if len(s) > 2}, key=len, reverse=True):
        start, end = (r"(?<!\w)" if secret[0].isalnum() else "", r"(?!\w)" if secret[-1].isalnum() else "")
        text = re.sub(f"{start}{re.escape(secret)}{end}", "***", text)
    return text


def masked(document: Any) -> Any:
    """A JSON document with every text in it masked."""
    if isinstance(document, str):
        return mask(document)
    if isinstance(document, dict):
        return {key: masked(value) for key, value in document.items()}
    return [masked(value) for value in document] if isinstance(document, list | tuple) else document
