"""Atomic writing: a file is written under a temporary name and renamed; errors such as a full disk become a message."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from ctxexp.errors import DiskError

PART = ".part"  # suffix of the temporary name
STALE = 60  # seconds without a write, after which another machine's temporary file counts as abandoned
MAKE_ROOM = "make room there or choose another folder, and repeat the command (resume=true skips jobs that finished)"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path; it replaces `path` when the block succeeds, and is deleted when it fails.

    The folder is made if need be. Raises DiskError for errors of the file system.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path.parent, escape(path.name))
        yield part
        part.replace(path)
    except OSError as error:
        raise DiskError(disk_error_message(error, path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def clear_parts(folder: Path, pattern: str = "*") -> list[Path]:
    """Delete temporary files of killed processes in `folder` and return their paths: those of files whose name matches
    the glob `pattern`, whose process is not here and that nobody touched for STALE seconds (another machine's process
    may write to a shared folder)."""
    removed = []
    for part in folder.glob(f"{pattern}.*{PART}"):
        from psutil import pid_exists  # here, since most folders hold none

        pid = part.stem.rpartition(".")[2]
        with suppress(OSError):  # another process removed it, or may
            if pid.isdigit() and not pid_exists(int(pid)) and time.time() - part.stat().st_mtime > STALE:
                part.unlink()
                removed.append(part)
    return removed


def write_text(path: Path, text: str) -> Path:
    """Write the text as UTF-8, atomically, and return the path."""
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def check_writable(path: Path) -> None:
    """Raise `DiskError` unless a file or folder could be made at that path, or what is there be written; makes nothing.

    Example:
        >>> check_writable(Path("figures/layer_3.png"))
    """
    try:
        there = next(place for place in (path, *path.parents) if place.exists())
        if there != path and not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise DiskError(disk_error_message(error, path)) from error


def is_disk_full(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, says that a disk or a quota is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_error_message(error: OSError, path: Path | None = None) -> str:
    """A one-line message why the file can't be written and what to do; without `path` it names the error's own file."""
    path = Path(str(error.filename)) if path is None and error.filename else path
    if is_disk_full(error):
        where = f"cannot write {path.name}: the disk of {path.parent}" if path else "a disk"
        return f"{where} is full; {MAKE_ROOM}"
    return f"cannot write {path}: {error.strerror or error}; choose a writable place"


def render_page(package: str, name: str, **values: object) -> str:
    """The page `name` of the package with these values filled in, HTML-escaped."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, ""), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template(name).render(values)
