"""Paths as people type them: `~` is a home, and what no file system can hold is refused in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

from ctxexp.errors import ConfigError

LONGEST = 255  # bytes of one name, on every common file system


def user_path(given: str | Path) -> Path:
    """The path that was typed, `~` and `~name` put in; raises ConfigError for one that can't be."""
    shown = repr(str(given)[:60])
    if "\0" in str(given):
        raise ConfigError(f"{shown} is no path: it has a character that no path can have")
    try:
        path = Path(given).expanduser()
        longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    except RuntimeError:
        raise ConfigError(f"{shown}: no user of that name has a home here; write the path in full") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{shown} is no path: it has a character that no path can have") from None
    if longest > LONGEST or len(os.fsencode(path)) >= 4096:
        raise ConfigError(f"{shown}...: too long for a path")
    return path
