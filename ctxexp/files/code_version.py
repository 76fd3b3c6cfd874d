"""Versions of the code that makes vectors and results, as digests of its source text."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType

PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^ *(?:from (ctxexp[\w.]*) )?import (\([^)]*\)|.*)", re.MULTILINE)
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "peft", "gguf")  # which read a model's files
VARYING = ("__module__", "__doc__", "__slotnames__")  # of a class; pickling adds the last one
__version__ = "0.1.0"


@functools.cache
def code_version(package: Path = PACKAGE) -> str:
    """8 hex digits that change with any file that may decide what a cached vector is, and any library's version that
    reads a model.

    These are all files of `models/` (factories, loading of weights, pieces), `vectors/encoding.py`, and whatever of
    ctxexp they import. They are read as text: importing them would import torch.
    """
    texts: dict[Path, bytes] = {}
    waiting = [package / "vectors" / "encoding.py", *package.glob("models/**/*.py")]
    while waiting:
        file = waiting.pop()
        if file not in texts:
            texts[file] = file.read_bytes()
            waiting += _imports(package, texts[file].decode())
    every = b"".join(file.relative_to(package).as_posix().encode() + b"\0" + texts[file] for file in sorted(texts))
    return hashlib.blake2b(every + repr(_versions()).encode(), digest_size=4).hexdigest()


def _versions() -> list[str]:
    """The version of each of `LIBRARIES`; empty for one that isn't installed."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(version(name))
        except PackageNotFoundError:
            versions.append("")
    return versions


@functools.cache
def package_digest(package: Path = PACKAGE) -> str:
    """8 hex digits that change with any Python file of a package, ctxexp or a plugin's, or with a module that is one
    file: results of other code are no results of this one."""
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(package.rglob("*.py")) if package.is_dir() else [package]:
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def class_digest(cls: type) -> str:
    """8 hex digits that change with the code of someone else's class: with any file of its package or, of a notebook,
    with its methods and constants; empty for ctxexp's own classes."""
    top = cls.__module__.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    if top == PACKAGE.name:
        return ""
    if file and top != "__main__":
        path = Path(file)
        return package_digest(path.parent if path.name == "__init__.py" else path)
    text = [f"{name}={_text(value)}" for name, value in vars(cls).items() if name not in VARYING]
    return hashlib.blake2b("\n".join(text).encode(), digest_size=4).hexdigest()


def _text(value: object) -> str:
    """A function's source, a constant's value; empty for anything else, and where the source isn't known."""
    with suppress(OSError):
        if isinstance(value, FunctionType):
            return inspect.getsource(value)
    return repr(value) if isinstance(value, bool | int | float | str) else ""


def _imports(package: Path, text: str) -> list[Path]:
    """The files of the modules that this text imports of ctxexp, at its top or inside functions."""
    names = set()
    for parent, listed in _IMPORT.findall(text):
        words = re.findall(r"[\w.]+", listed)
        names |= {parent, *(f"{parent}.{word}" for word in words)} if parent else set(words)
    paths = [package.joinpath(*name.split(".")[1:]) for name in names if name.startswith("ctxexp.")]
    places = [place for path in paths for place in (path.with_suffix(".py"), path / "__init__.py")]
    return [place for place in places if place.is_file()]
