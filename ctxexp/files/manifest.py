"""What a results folder held when it was whole: a digest a file, so that damage is noticed before it is believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path

from ctxexp.files.writing import PART, write_text

MANIFEST = "files.json"
PASSING = {"status.json", MANIFEST}  # status.json changes as the job goes on


def seal(folder: Path) -> None:
    """Note every file of the folder, by its path in it, with the digest of its bytes."""
    held = {
        path.relative_to(folder).as_posix(): digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in PASSING and path.suffix not in (PART, ".lock", ".tmp")
    }
    write_text(folder / MANIFEST, json.dumps(held, indent=1, ensure_ascii=False))


def digest(path: Path) -> str:
    """BLAKE2b of the file's bytes, 32 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def damaged(folder: Path, names: Collection[str] | None = None) -> str | None:
    """What is not as it was sealed, or None if all is; `names` asks for these files alone, where they were sealed."""
    try:
        held = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = {str(name): str(value) for name, value in held.items() if names is None or name in names}
    except FileNotFoundError:
        return None if names is not None else f"{MANIFEST} is missing"
    except (OSError, ValueError, AttributeError, RecursionError):
        return f"{MANIFEST} is damaged"
    for name, value in expected.items():
        try:
            if digest(folder / name) != value:
                return f"{name} is not as it was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror or error})"
    return None
