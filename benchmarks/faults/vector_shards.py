"""Shards of vectors that are swapped, copied or foreign are made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ctxexp import CtxexpError

from . import Silent
from .cache_damage import check, heard
from .plugin import CORPORA, STOPPED, open_store

DAMAGES = ("swapped", "copied over another", "another text's", "cut", "gone")


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every damage in turn."""
    for place in range(count):
        how, rng = DAMAGES[place % len(DAMAGES)], np.random.default_rng([seed, place])
        yield how, lambda place=place, how=how, rng=rng: shards(folder / str(place), how, rng)


def shards(folder: Path, how: str, rng: np.random.Generator) -> None:
    """A run is stopped, one of its shards is damaged, and the run that goes on must give each word its own vector."""
    for name in CORPORA:
        stop_encoding(folder / name, "one", 5, name)
    own, other = (sorted(folder.glob(f"{name}/shards-*/0*")) for name in CORPORA)
    one, two = rng.choice(len(own), 2, replace=False)
    with heard():
        if how in ("cut", "gone"):
            files = sorted(own[one].iterdir())
            damage(files[rng.integers(len(files))], own[two] / "meta.json", files[0], how, rng)
        else:
            damage(own[one], own[two], other[min(one, len(other) - 1)], how, rng)
        check(open_store(folder / "one", "one", batch_tokens=20, engine="stopped"))
    shutil.rmtree(folder)


def stop_encoding(cache: Path, name: str, after: int, text: str = "one") -> None:
    """Encode until so many shards are there."""
    try:
        open_store(cache, name, text, batch_tokens=20, engine="stopped", **{"engine.after": after})
    except CtxexpError as error:
        if str(error) != STOPPED:
            raise
    else:
        raise Silent("the run was not stopped")


def damage(path: Path, neighbour: Path, foreign: Path, how: str, rng: np.random.Generator) -> None:
    """Do it to the file or folder."""
    if how == "swapped":
        path.rename(path.with_name("x"))
        neighbour.rename(path)
        path.with_name("x").rename(neighbour)
    elif how in ("copied over another", "another text's"):
        source = neighbour if how == "copied over another" else foreign
        (shutil.rmtree if path.is_dir() else os.unlink)(path)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])
    else:
        path.unlink()
