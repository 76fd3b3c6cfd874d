"""SQLite's errors in words: a locked or unreadable store, or one on a full disk, is whole; damage alone is moved."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from ctxexp.files.writing import MAKE_ROOM

FEW_BYTES = 64 * 1024  # less than a reader of a database with a write-ahead log needs
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
REFUSED = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")
WHOLE = "the store itself is whole: leave it where it is"


def sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """SQLite's own error among those that led to `error`; SQLAlchemy and MLflow wrap it."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__
    return error


def explain(error: sqlite3.Error, path: Path | None) -> str:
    """The reason in words, and what to do; `path` is the database's file, where that is known.

    Empty for errors that say nothing about the file, such as a constraint that an insert broke.
    """
    name = getattr(error, "sqlite_errorname", "")
    place = str(path or "the database")
    if name.startswith(LOCKED):
        who = ", ".join(holders(path)) if path else ""
        by = f"held by {who}" if who else f"another program holds it (`fuser {place}` or `lsof {place}` names it)"
        return f"{place} is locked, {by}; wait until that ends, or end it, and repeat the command; {WHOLE}"
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and path and _is_full(path)):
        return f"the disk of {path.parent if path else 'the database'} is full; {MAKE_ROOM}; {WHOLE}"
    if name.startswith("SQLITE_IOERR"):
        return (
            f"the disk fails under {place} ({error}, {name}); look whether the disk or the network share is well and "
            "repeat the command; nothing says that the store is damaged: leave it where it is"
        )
    if name.startswith(REFUSED):
        why = _refusal(path) if path else str(error)
        return (
            f"{place} can't be opened ({why}); this user needs to read and write the file and its folder, or choose "
            f"another place with tracking.folder=...; {WHOLE}"
        )
    if name.startswith(DAMAGED) or "no such table" in str(error):  # for that SQLite has no code of its own
        return (
            f"{place} is not a whole MLflow database ({error}); move it away with the files beside it that end in -wal "
            "and -shm, and a new one is made at the next start"
        )
    return ""


def holders(path: Path) -> list[str]:
    """The processes that hold a lock for writing on the database, or else have it open: `process 7 (python)`.

    Empty where the system doesn't tell (it is Linux that does), or the process is another user's or machine's.
    """
    locks = Path("/proc/locks")
    beside = [path.with_name(path.name + end) for end in ("", "-shm", "-wal")]
    nodes = {file.stat().st_ino for file in beside if file.exists()}
    pids: list[int] = []
    with suppress(OSError):
        for line in locks.read_text().splitlines():  # 1: POSIX  ADVISORY  WRITE 10753 fe:00:2220194 0 EOF
            fields = line.split()
            if len(fields) > 5 and fields[3] == "WRITE" and int(fields[5].rpartition(":")[2]) in nodes:
                pids.append(int(fields[4]))
    return [f"process {pid} ({_program(pid)})" for pid in dict.fromkeys(pids) if pid not in (0, -1, os.getpid())]


def _program(pid: int) -> str:
    """The first words of a process's command line; its name where that isn't ours to see."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join([Path(words[0]).name, *words[1:3]]).strip()[:80] or "?"
    except OSError:
        return "?"


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < FEW_BYTES
    except OSError:
        return False


def _refusal(path: Path) -> str:
    """The system's reason for not opening the file, in its words."""
    try:
        with path.open("r+b"):
            return f"its folder {path.parent} can't be written to"
    except OSError as error:
        return error.strerror or str(error)
