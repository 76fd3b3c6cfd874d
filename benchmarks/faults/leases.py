"""Eviction while others use the cache: numbers stay right, what is used goes last, what the dead left goes, and limits
of any size are kept or refused in words."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.command import verbs
from ctxexp.errors import StoreError
from ctxexp.vectors import Store
from ctxexp.vectors import cache as caches
from ctxexp.vectors import cache as leases
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.encoding import EncodingWorkers
from tests.other_process import child

from . import Lost, Silent
from .damage import CORPORA, Drawn, heard
from .identity import StopError, Stopped

NAMES = ("one", "two", "three", "four", "five")
TEXT = CORPORA["one"]


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each situation in turn, with drawn names, limits and moments."""
    for place in range(count):
        name, situation = list(SITUATIONS.items())[place % len(SITUATIONS)]
        yield name, partial(attempt, situation, folder / str(place), np.random.default_rng([seed, place]))


def attempt(situation: Callable[[Path, np.random.Generator], None], cache: Path, rng: np.random.Generator) -> None:
    cache.mkdir()
    with heard():
        situation(cache, rng)
    shutil.rmtree(cache)


def opened(cache: Path, name: str, *, limit: int | None = None, sweep: str = "") -> Store:
    """The store of an encoder of that name, whose vectors are checked."""
    store = open_store(TEXT, Drawn(name), cache=cache, limit_bytes=limit, sweep=sweep)
    check(store, name)
    return store


def check(store: Store, name: str) -> None:
    """Raises Silent unless every row is its word's vector."""
    for i, expected in enumerate(Drawn(name).encode(TEXT.sentences)):
        rows = slice(*store.offsets[store.stored_of[i] :][:2])
        if any(not np.array_equal(store.layer(k)[rows], expected.layers[k]) for k in range(store.n_layers)):
            raise Silent(f"{name}: sentence {i} has other vectors")


def size(cache: Path) -> int:
    """Bytes of one entry, all of which are of one size."""
    opened(cache.with_name(f"{cache.name}-size"), "size")
    (entry,) = caches.entries(cache.with_name(f"{cache.name}-size"))
    shutil.rmtree(cache.with_name(f"{cache.name}-size"))
    return entry.n_bytes


def needed(cache: Path) -> int:
    """Bytes that must be free under the limit before one entry is encoded: more than it takes then."""
    try:
        open_store(TEXT, Drawn("size"), cache=cache, limit_bytes=1)
    except StoreError:
        rows = sum(map(len, TEXT.sentences))
        return rows * (3 * 32 * 4 + 16) + 200 * len(TEXT.sentences)
    raise Silent("an entry fits a limit of one byte")


def keys(cache: Path) -> set[str]:
    return {entry.key for entry in caches.entries(cache)}


def age(cache: Path, rng: np.random.Generator) -> list[str]:
    """Makes every entry's last use another, and returns the keys from the oldest on."""
    entries = caches.entries(cache)
    order = [entries[i] for i in rng.permutation(len(entries))]
    for days, entry in enumerate(reversed(order), 1):
        for path in [entry.path, *entry.path.glob("meta.json")]:
            os.utime(path, (time.time() - 86400 * days,) * 2)
    return [entry.key for entry in order]


# ------------------------------------------------------------------ others that live


def while_it_reads(cache: Path, rng: np.random.Generator) -> None:
    """Another process has vectors open when they are evicted: it goes on reading the same ones."""
    name, sweep = str(rng.choice(NAMES)), ["", "theirs"][rng.integers(2)]
    stores: list[Store] = []
    works = (lambda: stores.append(opened(cache, name, sweep=sweep)), lambda: check(stores[0], name))
    limit = needed(cache) + int(rng.integers(0, 2000))
    with child(*works) as process:
        process.do()
        (theirs,) = keys(cache)
        others = [other for other in NAMES if other != name]
        for other in rng.permutation(others)[: rng.integers(1, 4)]:
            opened(cache, str(other), limit=limit)
        if theirs in keys(cache):
            raise Lost("a limit for one entry kept two")
        process.do()


def while_it_will_read(cache: Path, rng: np.random.Generator) -> None:
    """What a living sweep of another process has read outlives younger entries of nobody, and is not encoded again."""
    first, *others = map(str, rng.permutation(NAMES))
    again: list[int] = []
    works = (
        lambda: opened(cache, first, sweep="theirs"),
        lambda: again.append(opened(cache, first, sweep="theirs").n_encoded) or _none(again),
    )
    limit = size(cache) + needed(cache) + int(rng.integers(0, 1000))
    with child(*works) as process:
        process.do()
        (theirs,) = keys(cache)
        for other in others[: rng.integers(2, 5)]:
            opened(cache, other, limit=limit, sweep=["", "mine"][rng.integers(2)] if rng.random() < 0.3 else "")
            if theirs not in keys(cache):
                return require_warning(cache, other)
        process.do()


def _none(counts: list[int]) -> None:
    if any(counts):
        raise Silent(f"{counts} sentences were encoded again")


def require_warning(cache: Path, last: str) -> None:
    """A living sweep's entry went: only where everything else was another living sweep's."""
    asked = leases.leased_keys(cache, leases.SWEEPS)
    if spare := [entry.key for entry in caches.entries(cache) if entry.key not in asked and entry.encoder != last]:
        raise Lost(f"a living sweep's vectors went before {spare}")


def together(cache: Path, rng: np.random.Generator) -> None:
    """Several processes open, evict, lease and release at once under limits that fit one to three entries."""
    one = needed(cache)
    seeds = rng.integers(2**32, size=3).tolist()

    def work(number: int) -> None:
        own = np.random.default_rng(number)
        for _ in range(12):
            sweep = ["", f"sweep-{number}", "ours"][own.integers(3)]
            opened(cache, str(own.choice(NAMES)), limit=int(one * own.uniform(1, 3.2)), sweep=sweep)
            if own.random() < 0.3:
                leases.release(cache, leases.SWEEPS, sweep or "nobody")
            if own.random() < 0.2:
                caches.clear(cache, older_than_days=0)
            caches.disk_limit(cache)

    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(child(partial(work, number))) for number in seeds]
        for process in processes:
            process.start()
        for process in processes:
            if said := process.wait():
                raise Silent(f"in one of three processes: {said}")
    caches.make_room(cache, 0, limit=one, keep="")
    if (total := sum(entry.n_bytes for entry in caches.entries(cache))) > one:
        raise Silent(f"{total:,} bytes under a limit of {one:,}")
    if left := [path.name for path in cache.glob("tmp-*")] + list(leases.leased_keys(cache, leases.SWEEPS)):
        raise Lost(f"left behind: {left}")


# ------------------------------------------------------------------ others that died


class Slow(Drawn):
    """The same vectors, later."""

    def encode(self, batch):  # type: ignore[no-untyped-def]
        for encoded in super().encode(batch):
            time.sleep(0.002)
            yield encoded


def killed(cache: Path, rng: np.random.Generator) -> None:
    """A sweep's process is killed while it encodes or after it read: it keeps nothing, and others encode anew."""
    first, second, *_ = map(str, rng.permutation(NAMES))

    def work() -> None:
        opened(cache, first, sweep="theirs")
        open_store(TEXT, Slow(second), cache=cache, batch_tokens=20, sweep="theirs")

    with child(work) as process:
        process.start()
        while not any(cache.glob("[0-9a-f]*/meta.json")):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
    if asked := leases.leased_keys(cache, leases.SWEEPS):
        raise Lost(f"a dead sweep keeps {asked}")
    limit = needed(cache) + int(rng.integers(0, 1000))
    opened(cache, second, limit=limit, sweep="mine")
    if left := [path.name for path in cache.glob("tmp-*")]:
        raise Lost(f"left behind: {left}")
    if len(keys(cache)) != 1:
        raise Lost(f"a limit for one entry kept {len(keys(cache))}")


# ------------------------------------------------------------------ limits


def limits(cache: Path, rng: np.random.Generator) -> None:
    """A limit of nothing, too little, just enough or more: refused with both figures before anything goes, or kept."""
    entry, need = size(cache), needed(cache)
    before = [str(name) for name in rng.permutation(NAMES[:-1])[: rng.integers(0, 4)]]
    for name in before:
        opened(cache, name)
    there = keys(cache)
    limit = [0, 1, int(rng.integers(2, need)), need - 1, need, need + entry, int(need * rng.uniform(1, 5)), 10**18][
        rng.integers(8)
    ]
    try:
        opened(cache, NAMES[-1], limit=limit)
    except StoreError as error:
        if limit >= need:
            raise Lost(f"{limit:,} bytes were refused, {need:,} are needed") from error
        if keys(cache) != there:
            raise Lost("entries went, though the limit was refused") from error
        if not re.search(
            r"need [\d.]+ k?B, .* limited to [\d.]+ k?B; raise the limit \(cache\.limit_gb=1\)", str(error)
        ):
            raise Silent(f"which limit? {error}") from error
        raise
    if limit < need:
        raise Silent(f"{need:,} bytes were made under a limit of {limit:,}")
    total = sum(one.n_bytes for one in caches.entries(cache))
    if total > limit or (limit >= need + entry * len(before) and keys(cache) < there):
        raise Lost(f"{total:,} bytes under a limit of {limit:,}: {len(keys(cache))} entries")


def auto(cache: Path, rng: np.random.Generator) -> None:
    """The limit that the disk decides is within its bounds, whatever the cache holds, and lets every entry be."""
    first = caches.disk_limit(cache if rng.random() < 0.5 else cache / "not" / "there")
    for name in rng.permutation(NAMES)[: rng.integers(1, 4)]:
        opened(cache, str(name), limit=caches.disk_limit(cache))
    again = caches.disk_limit(cache)
    if not caches.FLOOR <= min(first, again) <= max(first, again) <= caches.CEILING:
        raise Silent(f"limits of {first:,} and {again:,} bytes")


# ------------------------------------------------------------------ sums and shards


def parts(cache: Path, rng: np.random.Generator) -> None:
    """Stopped shards and sums count like vectors, go by age, and are listed and cleared; what a living run reads
    stays."""
    for name in ("one", "two")[: rng.integers(1, 3)]:
        opened(cache, name)
    for name in ("three", "four")[: rng.integers(1, 3)]:
        with contextlib.suppress(StopError):
            stop_after = EncodingWorkers(Stopped(int(rng.integers(1, 8))))
            open_store(TEXT, Drawn(name), cache=cache, batch_tokens=20, workers=stop_after)
    sums = [f"{rng.integers(16**8):08x}" * 4 for _ in range(rng.integers(1, 4))]
    for key in sums:
        (cache / f"sums-{key}").mkdir()
        for number in range(rng.integers(1, 5)):
            np.savez(cache / f"sums-{key}" / f"{number:04}.npz", x=np.zeros(int(rng.integers(1, 4000))))
    on_disk = {path.name: caches.folder_size(path) for path in cache.iterdir() if path.name not in ("locks", "leases")}
    entries = caches.entries(cache)
    if {entry.path.name: entry.n_bytes for entry in entries} != on_disk:
        raise Silent(f"{[entry.path.name for entry in entries]} of {sorted(on_disk)} are counted")
    listed = printed(folder=cache)
    if f"{len(on_disk)} entries, {caches.size_text(sum(on_disk.values()))} in" not in listed:
        raise Silent(f"`ctxexp cache` counts otherwise: {listed}")
    [cleared, evicted][rng.integers(2)](cache, sums, rng)


def cleared(cache: Path, sums: list[str], rng: np.random.Generator) -> None:
    """`ctxexp cache clear` with a key, an age or nothing removes just these, but no sums that a process reads."""
    order = age(cache, rng)
    read = sums[rng.integers(len(sums))]
    by = rng.integers(3)
    key, days = str(rng.choice(order)), int(rng.integers(1, len(order) + 1))
    options = [{}, {"key": key[: rng.integers(8, 33)]}, {"older_than": days + 0.5}][by]
    expected = [set(order), {key}, set(list(reversed(order))[days:])][by]
    with child(lambda: leases.lease(cache, leases.RUNS, "theirs", read)) as process:
        process.do()
        before = keys(cache)
        said = printed("clear", folder=cache, **options)
        gone = before - keys(cache)
        if gone != expected - {read} or f"removed {len(gone)} entries, " not in said:
            raise Lost(f"{options}: {len(gone)} went, not {len(expected - {read})}: {said}")
        if rng.random() < 0.5:
            process.kill()
    printed("clear", folder=cache)
    if left := keys(cache):
        raise Lost(f"a dead reader keeps {left}")


def evicted(cache: Path, sums: list[str], rng: np.random.Generator) -> None:
    """Room is made by age over all kinds, but for sums that are read; no more goes than must."""
    order = age(cache, rng)
    read = sums[rng.integers(len(sums))]
    sizes = {entry.key: entry.n_bytes for entry in caches.entries(cache)}
    limit = int(rng.uniform(sizes[read], sum(sizes.values())))
    expected, left = [], sum(sizes.values())
    for key in (key for key in order if key != read):
        if left > limit:
            expected.append(key)
            left -= sizes[key]
    with child(lambda: leases.lease(cache, leases.RUNS, "theirs", read)) as process:
        process.do()
        caches.make_room(cache, 0, limit=limit, keep="")
    if (gone := set(sizes) - keys(cache)) != set(expected):
        raise Lost(f"{len(gone)} entries went where {len(expected)} of the oldest were to")


def printed(*args: str, **options: object) -> str:
    """What `ctxexp cache` prints."""
    return verbs.cache(*args, **options).text(80)  # type: ignore[arg-type]


SITUATIONS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "a limit": limits,
    "several processes at once": together,
    "evicted while another process reads": while_it_reads,
    "sums and shards": parts,
    "what another process will read": while_it_will_read,
    "a killed holder of a lease": killed,
    "the disk's limit": auto,
}
