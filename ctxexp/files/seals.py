"""JSON that carries a checksum of its own: a description that was changed, cut or mixed with another isn't read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def digest(data: bytes) -> str:
    """blake2b, 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(meta: Mapping[str, object]) -> str:
    """The JSON text of `meta`, with its checksum."""
    return json.dumps({"seal": digest(_body(meta)), "meta": meta})


def unseal(text: bytes) -> Any:
    """The `meta` of a text that `seal` made, in UTF-8; ValueError, with the reason, for any other bytes."""
    try:
        outer = json.loads(text)
        if outer["seal"] == digest(_body(outer["meta"])):
            return outer["meta"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"can't be read ({type(error).__name__})") from error
    raise ValueError("its checksum differs")


def _body(meta: object) -> bytes:
    return json.dumps(meta, sort_keys=True).encode()
