"""Secrets: given by the environment alone, refused where one is typed, and written nowhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from ctxexp.errors import ConfigError

VARIABLE = "MLFLOW_TRACKING_URI"
RULE = (
    "a secret is given by the environment alone (${oc.env:NAME}, or a variable that MLflow or the hub knows, such as "
    "MLFLOW_TRACKING_PASSWORD or HF_TOKEN)"
)
LONG_SECRET = 8  # from so many characters on, a secret is found inside of longer words too
_NAMED = re.compile(  # of options and of variables; the last: unk_token is no secret
    r"(?i)(\w*_)?(pass(word|wd|phrase)|secret|(api|access|secret|private)_?key)"
    r"|(\w*(auth|access|api|bot|bearer|hub|hf|tracking)_)?token"
)
_PAIR = re.compile(r"(?:^|[.{,\s])[+~]*([\w-]+)\s*[=:]\s*(?![\['\"]*\$\{|['\"]{2}|(?:null|None)\b|\?\?\?|\{|//|$)")
# A password may hold / and @ by mistake: `name:` that stands before no port goes to the last @. A path has one slash.
_USER = re.compile(r"(?<=\w\w)(:/{1,2})([^/?#:\s\"\\@]+:(?!\d+(?:/|$))[^\s\"\\]*|[^/?#\s\"\\]*)@")
_QUERY = re.compile(
    r"(?i)([?&;#](?:[\w-]*[-_])?(?:password|passwd|pwd|secret|token|credential|signature|(?:api|access)?key|sig|auth)=)"
    r"([^&#\s'\"\\]+)"
)
_sink_secrets: set[str] = set()  # values of sinks' secret arguments, to which references led this process


def names_secret(key: str, declared: Collection[str] = ()) -> bool:
    """Whether an option of this name holds a secret: by declaration (`Sink.secrets`), or by its usual name."""
    return key in declared or bool(_NAMED.fullmatch(key))


def refuse_clear(words: Iterable[str], declared: Collection[str] = ()) -> None:
    """Raise ConfigError for a secret in clear among words such as `key=value`; `declared` names those of sinks."""
    for word in words:
        for name in (pair[1].strip("-").replace("-", "_") for pair in _PAIR.finditer(word)):
            if names_secret(name, declared if re.match(r"\W*sink\b", word) else ()):
                raise ConfigError(f"{name}: {RULE}")
        if secrets_in(re.sub(r"\$\{\S*\}", "", word)):
            key = re.match(r"[\w.+~-]+(?==)", word)
            raise ConfigError(f"{key[0] if key else 'an address'}: {RULE}")


def secrets_in(text: str) -> set[str]:
    """The secrets of the addresses in a text: passwords, users without one, keys of a query."""
    users = [match[2].partition(":") for match in _USER.finditer(text)]
    found = {password if colon else user for user, colon, password in users}
    return (found | {match[2] for match in _QUERY.finditer(text)}) - {""}


def redact(text: str) -> str:
    """The text, or address, without users and passwords of addresses and the secret values of their queries."""
    return _QUERY.sub(r"\1***", _USER.sub(r"\1", text)) if ":/" in text else text


def remember(arguments: Mapping[str, object], declared: Collection[str]) -> None:
    """Let `mask` know the values of a sink's secret arguments, nested ones too."""
    for key, value in arguments.items():
        if isinstance(value, Mapping):
            remember(value, value.keys() if names_secret(key, declared) else declared)
        elif names_secret(key, declared):
            _sink_secrets.update(str(each) for each in (value if isinstance(value, list | tuple) else [value]))
        else:
            _sink_secrets.update(secrets_in(str(value)))


def mask(text: str) -> str:
    """The text with `***` for each secret that this process knows, as it is, or escaped for Python, JSON or a URL;
    and with addresses less their passwords. A secret of fewer than 8 characters is found as a word of its own."""
    own = {value for name, value in os.environ.items() if names_secret(name)}
    forms = _forms(frozenset(own | _sink_secrets | secrets_in(os.environ.get(VARIABLE, ""))))
    return redact(forms.sub("***", text) if forms else text)


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> re.Pattern[str] | None:
    forms: set[str] = set()
    for secret in {form for one in secrets if len(one.strip()) > 2 for form in (one, unquote(one))}:
        forms |= {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="")}
    patterns = []
    for form in sorted(forms, key=len, reverse=True):
        escaped = re.escape(form)
        patterns.append(escaped if len(form) >= LONG_SECRET else rf"(?<!\w){escaped}(?!\w)")
    return re.compile("|".join(patterns)) if patterns else None


def map_texts(change: Callable[[str], str], document: Any) -> Any:
    """A JSON document with every text in it changed."""
    if isinstance(document, str):
        return change(document)
    if isinstance(document, dict):
        return {key: map_texts(change, value) for key, value in document.items()}
    return [map_texts(change, value) for value in document] if isinstance(document, list | tuple) else document
