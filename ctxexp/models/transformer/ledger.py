"""`ledger.toml`: what a checkpoint may hold beside what is read, each with its reason, and how other forms are
converted."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ctxexp.errors import short


@cache
def ledger() -> dict[str, dict[str, Any]]:
    """The lists of `ledger.toml`."""
    return tomllib.loads(Path(__file__).with_name("ledger.toml").read_text(encoding="utf-8"))


def is_listed(name: str, *lists: str) -> bool:
    """Whether a name is on one of these lists of the ledger."""
    return any(re.fullmatch(pattern, name) for one in lists for pattern in ledger()[one])


def unknown_keys(content: Any, name_of_list: str, where: str = "") -> Iterator[str]:
    """`key=value` of each key of a JSON document, at any depth, that isn't on the list and asks for something, which
    null, false and nought don't.

    Example:
        >>> list(unknown_keys({"type": "x", "kwargs": {"a": 1, "b": 0}}, "modules"))
        ['kwargs.a=1']
    """
    for part in content if isinstance(content, list) else [content]:
        for key, value in part.items():
            name = f"{where}{key}"
            if not value or is_listed(name, name_of_list):
                continue
            if isinstance(value, dict):
                yield from unknown_keys(value, name_of_list, f"{name}.")
            elif not is_listed(f"{name}={value}", name_of_list):
                yield f"{name}={short(value)}"


def conversion(place: Path) -> str:
    """The form that a folder or file has, with the command that makes of it what is read; of an unknown form its files.

    Example:
        >>> conversion(Path("model.onnx")).partition(":")[0]
        'it holds model.onnx'
    """
    folder = place if place.is_dir() else place.parent
    paths = [path for depth in ("*", "*/*") for path in folder.glob(depth)] if folder == place else [place]
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    order = sorted(names, key=lambda name: (name.count("/"), len(name), name))
    for pattern, sentence in ledger()["forms"].items():
        for name in reversed(order) if "checkpoint" in pattern else order:  # the last step
            if match := re.match(pattern, f"{name}:{_head(names[name])}"):
                choices = {"folder": str(folder), "path": str(names[name]), "convert": ledger()["convert"]}
                what = name if pattern else ", ".join(order[:6])
                return f"it holds {what}: {sentence.format(*match.groups(''), **choices)}"
    return "it holds nothing"


def _head(path: Path) -> str:
    """The first four bytes of a file, as hexadecimal digits."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(4).hex()
