"""Paths as users type them: `~` is a home folder; impossible paths are refused with a message."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ctxexp.errors import ConfigError

LONGEST = 255  # bytes of one name, on every common file system


def no_device(path: Path) -> Path:
    """Return the path of a file or folder. Raises OSError where nothing is there, and for a pipe, a socket or a device:
    reading one may wait for ever, or never come to an end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return path


def user_path(given: str | Path) -> Path:
    """The path, with `~` and `~name` expanded. Raises ConfigError for a text that can't be a path."""
    start = repr(str(given)[:60])
    if "\0" in str(given):
        raise ConfigError(f"{start} is no path: it has a character that no path can have")
    try:
        path = Path(given).expanduser()
        longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    except RuntimeError:
        raise ConfigError(f"{start}: no user of that name has a home here; write the path in full") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{start} is no path: it has a character that no path can have") from None
    if longest > LONGEST or len(os.fsencode(path)) >= 4096:
        raise ConfigError(f"{start}...: too long for a path")
    return path
