"""Atomic writing: a file is written beside its place and renamed into it; errors such as a full disk become a
message."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from ctxexp.errors import DiskError

PART = ".part"  # the end of a file's name while it is written
STALE = 60  # seconds; a file of a description or a job is written within one
MAKE_ROOM = "make room there or choose another folder, and repeat the command (resume=true skips jobs that finished)"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which takes its place when the block ends and is gone when it fails.

    The folder is made if need be. Raises DiskError for what the disk refuses.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path.parent, escape(path.name))
        yield part
        part.replace(path)
    except OSError as error:
        raise DiskError(write_error(error, path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def clear_parts(folder: Path, name: str = "*") -> list[Path]:
    """Remove what killed processes were writing in `folder`, of the file of that name or of all, and return the paths:
    parts whose process is not here and that nobody touched for STALE seconds (another machine's process may write to a
    shared folder)."""
    removed = []
    for part in folder.glob(f"{name}.*{PART}"):
        from psutil import pid_exists  # here, since most folders hold none

        pid = part.stem.rpartition(".")[2]
        with suppress(OSError):  # another process removed it, or may
            if pid.isdigit() and not pid_exists(int(pid)) and time.time() - part.stat().st_mtime > STALE:
                part.unlink()
                removed.append(part)
    return removed


def write_text(path: Path, text: str) -> Path:
    """Write the text as UTF-8, atomically, and return the path."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def is_disk_full(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, says that a disk or a quota is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def write_error(error: OSError, path: Path | None = None) -> str:
    """A one-line message: why the file can't be written and what to do; without `path` the error's own file name."""
    path = Path(str(error.filename)) if path is None and error.filename else path
    if is_disk_full(error):
        where = f"cannot write {path.name}: the disk of {path.parent}" if path else "a disk"
        return f"{where} is full; {MAKE_ROOM}"
    return f"cannot write {path}: {error.strerror or error}; choose a writable place"
