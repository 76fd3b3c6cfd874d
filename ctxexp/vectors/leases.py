"""Leases on cache entries: a folder for each owner, with a file for each of its processes and an empty file named by
each key that it needs.

A sweep's jobs, in however many processes, name what they read: their later jobs read it again. A run names the sums
that it reads from. A lease counts while one of its owner's processes lives; one of another machine, which can't be
asked, for a day after its last sign. Leases are advice: where none can be written, everything goes on without.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ctxexp.errors import DiskError
from ctxexp.files.writing import PART, write_text
from ctxexp.jobs.process import HOST, PID, STARTED, is_gone, process_tags

SWEEPS, RUNS = "sweeps", "runs"  # kinds of owners: what may be read again, and what is being read
ELSEWHERE = 86400  # seconds that a lease of another machine counts without a sign of life


def lease(cache: Path, kind: str, owner: str, *keys: str) -> None:
    """Note that `owner`, of which this process is one, needs these entries."""
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
            return time.time() - file.stat().st_mtime < ELSEWHERE
    except (OSError, ValueError, LookupError, TypeError):  # removed just now, or nobody's
        return False
    return is_gone(host, pid, start) is None
