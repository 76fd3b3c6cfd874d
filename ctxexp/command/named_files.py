"""The files that a config names besides data set and model: benchmarks, lists of words or of frequencies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxexp.command.config import Config
from ctxexp.errors import ConfigError
from ctxexp.files.paths import user_path


def files_digest(config: Config) -> str:
    """Hex digest (16 digits) that changes with what lies at the paths among the arguments of a config's metrics,
    transform, baseline and control: a file's bytes; of a folder's files their names, sizes and times. A file that
    can't be read says so where it is used."""
    digest = hashlib.blake2b(digest_size=8)
    parts = [part for part in config.parts() if part.kind not in ("dataset", "model")]  # these tell of their content
    for path in sorted(set(_paths([dict(part.arguments) for part in parts]))):
        digest.update(f"{path}\0".encode())
        with suppress(OSError):
            if path.is_file():
                digest.update(path.read_bytes())
            for file in sorted(path.rglob("*")):
                told = file.lstat()
                digest.update(f"{file.relative_to(path)}\0{told.st_size}\0{told.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _paths(value: Any) -> Iterator[Path]:
    """Whatever among these values is the path of something that is there."""
    if isinstance(value, dict):
        yield from _paths(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _paths(one)
    elif isinstance(value, str) and value:
        try:
            path = user_path(value)
            if path.exists():
                yield path
        except (ConfigError, OSError):
            return
