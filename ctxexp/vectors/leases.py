"""Leases on cache entries, which eviction from the cache spares: a folder for each owner, with a file for each of its
processes, and for each key that it needs an empty file of that name.

An owner is a sweep, whose later jobs read again what earlier ones have read, or a run that reads the partial sums of a
text measured in one pass. A lease counts while one of its owner's processes lives; one of another machine, whose
processes can't be asked for, a day after its last sign of life. Leases are advice: where none can be written, work goes
on without.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ctxexp.errors import DiskError
from ctxexp.files.process import HOST, PID, STARTED, process_tags, why_gone
from ctxexp.files.writing import PART, write_text

SWEEPS, RUNS = "sweeps", "runs"  # kinds of owners
REMOTE_LEASE_SECONDS = 86400  # for which a lease of another machine counts without a sign of life


def lease(cache: Path, kind: str, owner: str, *keys: str) -> None:
    """Note that `owner` needs the entries of these keys, and that this process belongs to it."""
    folder, tags = _folder(cache, kind, owner), process_tags()
    with suppress(OSError, DiskError):
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^\w.-]", "_", tags[HOST])
        write_text(folder / f"{host}-{tags[PID]}.json", json.dumps(tags))
        for key in keys:
            (folder / key).touch()


def release(cache: Path, kind: str, owner: str) -> None:
    """Note that `owner` needs nothing any more."""
    shutil.rmtree(_folder(cache, kind, owner), ignore_errors=True)


def leased_keys(cache: Path, kind: str) -> set[str]:
    """The keys that living owners of that kind need; leases of dead owners are removed."""
    keys: set[str] = set()
    for folder in (cache / "leases" / kind).glob("*"):
        with suppress(FileNotFoundError):  # its owner released it just now
            if any(map(_is_alive, folder.glob("*.json"))):
                keys.update(path.name for path in folder.iterdir() if path.suffix not in (".json", PART))
            else:
                shutil.rmtree(folder, ignore_errors=True)
    return keys


def _folder(cache: Path, kind: str, owner: str) -> Path:
    return cache / "leases" / kind / owner


def _is_alive(file: Path) -> bool:
    """Whether the process that wrote this lease may still be running."""
    try:
        tags = json.loads(file.read_text(encoding="utf-8"))
        host, pid, start = (str(tags[name]) for name in (HOST, PID, STARTED))
        if host != process_tags()[HOST]:
            return time.time() - file.stat().st_mtime < REMOTE_LEASE_SECONDS
    except (OSError, ValueError, LookupError, TypeError):  # removed just now, or nobody's
        return False
    return why_gone(host, pid, start) is None
