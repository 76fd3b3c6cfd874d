"""Eviction while others use the cache: numbers stay right, what the dead left goes, and limits of any size are kept or
refused in words."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import CtxexpError
from tests.other_process import child

from . import Lost, Silent
from .cache_damage import check, heard
from .plugin import CORPORA, open_store
from .vector_shards import stop_encoding

NAMES = ("one", "two", "three", "four", "five")
TEXT = CORPORA["one"]
NEEDED = sum(map(len, TEXT.sentences)) * (3 * 32 * 4 + 16) + 200 * len(TEXT.sentences)
"""Bytes that must be free under the limit before one entry is encoded: more than it takes then."""


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each situation in turn, with drawn names, limits and moments."""
    for number in range(count):
        name, situation = list(SITUATIONS.items())[number % len(SITUATIONS)]
        yield name, partial(attempt, situation, folder / str(number), np.random.default_rng([seed, number]))


def attempt(situation: Callable[[Path, np.random.Generator], None], cache: Path, rng: np.random.Generator) -> None:
    cache.mkdir()
    with heard():
        situation(cache, rng)
    shutil.rmtree(cache)


def read(cache: Path, name: str, *, limit: int | None = None, **options: object) -> Any:
    """The store of an encoder of that name, whose vectors are checked."""
    bound = None if limit is None else limit / 1e9
    store = open_store(cache, name, **{"cache.limit_gb": bound, **options})
    check(store, name)
    return store


def entries(cache: Path) -> dict[str, int]:
    """Bytes of each entry, whole or stopped, by its folder's name."""
    folders = [path for path in cache.iterdir() if path.name != "locks"]
    return {path.name: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) for path in folders}


def size(cache: Path) -> int:
    """Bytes of one entry, all of which are of one size."""
    sample = cache.with_name(f"{cache.name}-size")
    read(sample, "size")
    (n_bytes,) = entries(sample).values()
    shutil.rmtree(sample)
    return n_bytes


# ------------------------------------------------------------------ others that live


def while_it_reads(cache: Path, rng: np.random.Generator) -> None:
    """Another process has vectors open when they are evicted: it goes on reading the same ones."""
    name = str(rng.choice(NAMES))
    stores: list[Any] = []
    works = (lambda: stores.append(read(cache, name)), lambda: check(stores[0], name))
    limit = NEEDED + int(rng.integers(0, 2000))
    with child(*works) as process:
        process.do()
        (theirs,) = entries(cache)
        others = [other for other in NAMES if other != name]
        for other in rng.permutation(others)[: rng.integers(1, 4)]:
            read(cache, str(other), limit=limit)
        if theirs in entries(cache):
            raise Lost("a limit for one entry kept two")
        process.do()


def together(cache: Path, rng: np.random.Generator) -> None:
    """Several processes open and evict at once under limits that fit one to three entries."""

    def work(number: int) -> None:
        own = np.random.default_rng(number)
        for _ in range(6):
            read(cache, str(own.choice(NAMES)), limit=int(NEEDED * own.uniform(1, 3.2)))

    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(child(partial(work, n))) for n in rng.integers(2**32, size=3).tolist()]
        for process in processes:
            process.start()
        for process in processes:
            if said := process.wait():
                raise Silent(f"in one of three processes: {said}")
    read(cache, "another", limit=NEEDED)
    if len(entries(cache)) > 1:
        raise Silent(f"{entries(cache)} under a limit for one entry")


# ------------------------------------------------------------------ others that died


def killed(cache: Path, rng: np.random.Generator) -> None:
    """A process is killed while it encodes or after it read: it keeps nothing, and others encode anew."""
    first, second, *_ = map(str, rng.permutation(NAMES))

    def work() -> None:
        read(cache, first)
        read(cache, second, **{"model.seconds": 0.002, "batch_tokens": 20})

    with child(work) as process:
        process.start()
        while not any(cache.glob("[0-9a-f]*/meta.json")):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
    read(cache, second, limit=NEEDED + int(rng.integers(0, 1000)))
    if len(left := entries(cache)) != 1:
        raise Lost(f"a limit for one entry kept {sorted(left)}")


def shards(cache: Path, rng: np.random.Generator) -> None:
    """Stopped shards count like vectors: they go where the limit needs it, and are gone on with where it doesn't."""
    name = str(rng.choice(NAMES))
    stop_encoding(cache, name, int(rng.integers(1, 8)))
    tight = bool(rng.random() < 0.5)
    read(cache, "another", limit=NEEDED if tight else NEEDED + 2 * size(cache))
    if len(left := entries(cache)) != 2 - tight:
        raise Lost(f"a limit for {'one entry' if tight else 'two'} kept {sorted(left)}")
    read(cache, name, batch_tokens=20, engine="stopped")


# ------------------------------------------------------------------ limits


def limits(cache: Path, rng: np.random.Generator) -> None:
    """A limit of nothing, too little, just enough or more: refused with both figures before anything goes, or kept."""
    entry, need = size(cache), NEEDED
    before = [str(name) for name in rng.permutation(NAMES[:-1])[: rng.integers(0, 4)]]
    for name in before:
        read(cache, name)
    there = set(entries(cache))
    limit = [0, 1, int(rng.integers(2, need)), need - 1, need, need + entry, int(need * rng.uniform(1, 5)), 10**18][
        rng.integers(8)
    ]
    try:
        read(cache, NAMES[-1], limit=limit)
    except CtxexpError as error:
        if limit >= need:
            raise Lost(f"{limit:,} bytes were refused, {need:,} are needed") from error
        if set(entries(cache)) != there:
            raise Lost("entries went, though the limit was refused") from error
        if not re.search(
            r"need [\d.]+ k?B, .* limited to [\d.]+ k?B; raise the limit \(cache\.limit_gb=1\)", str(error)
        ):
            raise Silent(f"which limit? {error}") from error
        raise
    if limit < need:
        raise Silent(f"{need:,} bytes were made under a limit of {limit:,}")
    total = sum(entries(cache).values())
    if total > limit or (limit >= need + entry * len(before) and set(entries(cache)) < there):
        raise Lost(f"{total:,} bytes under a limit of {limit:,}: {len(entries(cache))} entries")


SITUATIONS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "a limit": limits,
    "several processes at once": together,
    "evicted while another process reads": while_it_reads,
    "stopped shards": shards,
    "a killed process": killed,
}
