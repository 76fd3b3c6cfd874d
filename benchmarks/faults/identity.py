"""What is kept of another: descriptions of encoders and shards that are swapped, copied or foreign are made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ctxexp import Engine
from ctxexp.models.lazy import lazy
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.encoding import EncodingWorkers

from . import Silent
from .damage import CORPORA, Drawn, check, heard

DAMAGES = ("swapped", "copied over another", "another text's", "one byte", "cut", "gone", "a FIFO")


class StopError(Exception):
    """The run is stopped here."""


class Stopped(Engine):
    """Two workers' shards, by this process, which stops after so many."""

    name, workers, shard_tokens = "stopped", 2, 40

    def __init__(self, after: int) -> None:
        self.after = after

    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for i, item in enumerate(items):
            if i == self.after:
                raise StopError
            yield work(item)


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every damage in turn, to a description and to a shard by turns."""
    for place in range(count):
        how, kind = DAMAGES[place // 2 % len(DAMAGES)], (descriptions, shards)[place % 2]
        rng = np.random.default_rng([seed, place])
        yield (
            f"{kind.__name__}: {how}",
            lambda place=place, how=how, kind=kind, rng=rng: kind(folder / str(place), how, rng),
        )


def descriptions(folder: Path, how: str, rng: np.random.Generator) -> None:
    """Three encoders are described, one description is damaged, and each must still say its own name."""
    folder.mkdir()
    with mock.patch.dict(os.environ, CTXEXP_CACHE=str(folder)), heard():
        for _ in range(2):
            for name in ("one", "two", "three"):
                if (found := lazy(name, lambda name=name: Drawn(name), device="cpu").name) != name:
                    raise Silent(f"{name} calls itself {found}")
            paths = sorted(folder.glob("encoders/*"))
            if len(paths) != 3:
                raise Silent(f"{len(paths)} descriptions of three encoders")
            damage(paths[0], paths[1], paths[2], how, rng)
    shutil.rmtree(folder)


def shards(folder: Path, how: str, rng: np.random.Generator) -> None:
    """A run is stopped, one of its shards is damaged, and the run that goes on must give each word its own vector."""
    for name in CORPORA:
        (folder / name).mkdir(parents=True)
        try:
            encoded(folder / name, name, 5)
        except StopError:
            pass
        else:
            raise Silent("the run was not stopped")
    own, other = (sorted(folder.glob(f"{name}/shards-*/0*")) for name in CORPORA)
    one, two = rng.choice(len(own), 2, replace=False)
    with heard():
        if how in ("one byte", "cut", "a FIFO", "gone"):
            files = sorted(own[one].iterdir())
            damage(files[rng.integers(len(files))], own[two] / "meta.json", files[0], how, rng)
        else:
            damage(own[one], own[two], other[min(one, len(other) - 1)], how, rng)
        check(encoded(folder / "one", "one", 999))
    shutil.rmtree(folder)


def encoded(cache: Path, name: str, after: int) -> Any:
    return open_store(CORPORA[name], Drawn(name), cache=cache, batch_tokens=20, workers=EncodingWorkers(Stopped(after)))


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
    elif how == "one byte":
        data = bytearray(path.read_bytes())
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])
    else:
        path.unlink()
        if how == "a FIFO":
            os.mkfifo(path)
