"""The manifest of a results folder: a digest of each file, by which damage is noticed before results are read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Collection
from pathlib import Path

from ctxexp.files.paths import no_device
from ctxexp.files.writing import PART, write_text

MANIFEST = "files.json"
PASSING = {"status.json", MANIFEST}  # status.json changes as the job goes on


def seal(folder: Path) -> None:
    """Write the manifest: every file of the folder, by its path in it, with the digest of its bytes."""
    digest_by_name = {
        path.relative_to(folder).as_posix(): digest(path)
        for path in sorted(folder.rglob("*"))
        if path.name not in PASSING and path.suffix not in (PART, ".lock", ".tmp") and is_own_file(path, folder)
    }
    write_text(folder / MANIFEST, json.dumps(digest_by_name, indent=1, ensure_ascii=False))


def own_file(folder: Path, name: str) -> Path:
    """The path of a regular file by its name in `folder`.

    Raises ValueError for a name or a link that leads out of the folder (a folder may come from anyone), and for what is
    no file, such as a FIFO, which would be waited for; FileNotFoundError for one that isn't there.
    """
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError) as error:  # a link to itself
        raise ValueError(f"{name[:100]!r} can't be followed: {error}") from error
    if not inside:
        raise ValueError(f"{name[:100]!r} leads out of the folder: put the file itself there")
    if path.exists() and not path.is_file():
        raise ValueError(f"{name[:100]!r} is no file")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path


def is_own_file(path: Path, folder: Path) -> bool:
    """Whether the path below `folder` is a regular file that lies there, not one that a link leads to elsewhere."""
    try:
        return own_file(folder, str(path.relative_to(folder))).is_file()
    except (OSError, ValueError):
        return False


def digest(path: Path) -> str:
    """BLAKE2b of the file's bytes, 32 hex digits."""
    with no_device(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def find_damage(folder: Path, names: Collection[str] | None = None) -> str | None:
    """A message about the first file that differs from the manifest; None if all agree. `names`: check only these
    files, if the manifest has them."""
    try:
        content = json.loads(own_file(folder, MANIFEST).read_text(encoding="utf-8"))
        expected = {str(name): str(value) for name, value in content.items() if names is None or name in names}
    except FileNotFoundError:
        return None if names is not None else f"{MANIFEST} is missing"
    except (OSError, ValueError, AttributeError, RecursionError):
        return f"{MANIFEST} is damaged"
    for name, value in expected.items():
        try:
            if digest(own_file(folder, name)) != value:
                return f"{name} is not as it was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror or error})"
        except ValueError as error:
            return str(error)
    return None
