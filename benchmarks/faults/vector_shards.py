"""Shards of vectors that are swapped, copied or foreign are made anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp import CtxexpError

from . import Silent
from .cache_damage import check, heard
from .damages import EVERY, copy_over
from .plugin import CORPORA, STOPPED, open_store

WAYS = ("two in each other's place", "another's copy", "another text's", "cut", "gone")


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every damage in turn."""
    for number in range(count):
        how = WAYS[number % len(WAYS)]
        yield how, partial(shards, folder / str(number), how, np.random.default_rng([seed, number]))


def shards(folder: Path, how: str, rng: np.random.Generator) -> None:
    """A run is stopped, one of its shards is damaged, and the run that goes on must give each word its own vector."""
    for name in CORPORA:
        stop_encoding(folder / name, "one", 5, name)
    own, other = (sorted(folder.glob(f"{name}/shards-*/0*")) for name in CORPORA)
    one, two = rng.choice(len(own), 2, replace=False)
    with heard():
        if how == "another text's":
            copy_over(own[one], other[min(one, len(other) - 1)], rng)
        else:
            EVERY[how](own[one], own[two], rng)
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
