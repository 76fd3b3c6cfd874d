"""Tracking stores that are locked, on a full disk, unreadable or damaged: the message says which, and all
but a damaged one open again."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ctxexp import CtxexpError
from ctxexp.command import registry

from . import Lost, Silent
from .disk import disk, fill

NOBODY = 65534
HOLD = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
for words in sys.argv[2:]:
    store.execute(words)
print("held", flush=True)
sys.stdin.read()
"""


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each trouble in turn, on a copy of one store; what is drawn is where bytes are spoilt."""
    whole = functools.cache(lambda: template(folder / "template"))
    folder.chmod(0o755)  # other users look into it
    for place in range(count):
        name, trouble = list(TROUBLES.items())[place % len(TROUBLES)]
        own = folder / f"store-{place}"
        yield name, lambda own=own, trouble=trouble, place=place: try_case(whole(), own, trouble, seed, place)


def template(folder: Path) -> Path:
    """A store that MLflow made."""
    folder.mkdir()
    if said := message(folder):
        raise Lost(said)
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as store:
        store.execute("PRAGMA wal_checkpoint(truncate)")
    return folder / "mlflow.db"


def try_case(
    whole: Path, folder: Path, trouble: Callable[[Path, np.random.Generator], None], seed: int, place: int
) -> None:
    """Brings the trouble to a copy of the store, which opens again afterwards unless it was damaged."""
    folder.mkdir()
    folder.chmod(0o777)
    file = Path(shutil.copy(whole, folder / "mlflow.db"))
    trouble(file, np.random.default_rng([seed, place]))


def message(folder: Path) -> str:
    """What preparing the store says; empty if it opens."""
    try:
        registry().find("sink", "mlflow").factory().prepare_jobs(folder)
    except CtxexpError as error:
        return str(error)
    return ""


def healthy(file: Path, said: str, *words: str) -> None:
    """The message names the trouble and leaves the store where it is."""
    if missing := [word for word in words if word not in said]:
        raise Silent(f"{missing} is not in: {said or 'nothing'}")
    if again := message(file.parent):
        raise Lost(f"it doesn't open again: {again}")


def locked(*statements: str) -> Callable[[Path, np.random.Generator], None]:
    """Another process holds the database."""

    def trouble(file: Path, rng: np.random.Generator) -> None:
        words = [sys.executable, "-c", HOLD, str(file), *statements]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            said = message(file.parent)
        healthy(file, said, "locked")

    return trouble


def full(file: Path, rng: np.random.Generator) -> None:
    """The disk is full to the last byte."""
    with disk(file.parent / "disk") as place:
        shutil.copy(file, place / "mlflow.db")
        fill(place, 0)
        said = message(place)
        (place / "filler").unlink()
        healthy(place / "mlflow.db", said, "disk")  # SQLite says of a full one that it is, or that it fails


def unreadable(file: Path, rng: np.random.Generator) -> None:
    file.chmod(0)
    said = as_another_user(file.parent)
    file.chmod(0o644)
    healthy(file, said, "Permission denied")


def read_only(file: Path, rng: np.random.Generator) -> None:
    file.chmod(0o666)
    file.parent.chmod(0o755)
    said = as_another_user(file.parent)
    healthy(file, said, "readonly database")


def as_another_user(folder: Path) -> str:
    """What preparing the store says to a user without rights."""
    if os.name != "posix" or os.getuid() != 0:
        return message(folder)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        status = 70
        with contextlib.suppress(BaseException):
            os.setuid(NOBODY)
            os.write(write, message(folder).encode())
            status = 0
        os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise RuntimeError("a traceback in another user's process")
    return said


def a_folder(file: Path, rng: np.random.Generator) -> None:
    file.unlink()
    file.mkdir()
    said = message(file.parent)
    if "cannot make the tracking store" not in said or "Is a directory" not in said:
        raise Silent(f"a folder in the store's place: {said or 'nothing'}")


def damaged(spoil: Callable[[bytes, np.random.Generator], bytes]) -> Callable[[Path, np.random.Generator], None]:
    """The file's bytes are others."""

    def trouble(file: Path, rng: np.random.Generator) -> None:
        file.write_bytes(spoil(file.read_bytes(), rng))
        said = message(file.parent)
        if "malformed" not in said and "not a database" not in said:
            raise Silent(f"damage is not named: {said or 'nothing'}")

    return trouble


TROUBLES: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "cut": damaged(lambda data, rng: data[: int(rng.integers(100, len(data) // 2))]),
    "unreadable": unreadable,
    "in a folder that can't be written to": read_only,
    "on a full disk": full,
    "no database": damaged(lambda data, rng: rng.bytes(len(data))),
    "a folder": a_folder,
    "spoilt pages": damaged(lambda data, rng: data[:100] + rng.bytes(len(data) - 100)),
    "locked, with a write-ahead log": locked("PRAGMA locking_mode=exclusive", "BEGIN EXCLUSIVE"),
    "locked, with a journal": locked("PRAGMA journal_mode=delete", "BEGIN EXCLUSIVE"),
}
