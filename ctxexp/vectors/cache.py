"""The folder of stores: one entry per key, locks, a bounded size, the oldest out first."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ctxexp.errors import StoreError
from ctxexp.vectors.store_files import DamagedError, read_meta

log = logging.getLogger("ctxexp")

WHAT = 24  # digits of a key that say of what the vectors are


@dataclass(frozen=True)
class Entry:
    """One store in the cache; `encoder` and `corpus` are "?" if it is damaged."""

    key: str
    path: Path
    n_bytes: int
    used: float  # when it was last opened, in seconds since the epoch
    encoder: str
    corpus: str


def entry_key(encoder: str, fingerprint: str, code: str) -> str:
    """The key (32 hex digits) of an encoder's vectors for sentences of that fingerprint; its last 8 digits are `code`,
    which says by which version of our own code."""
    what = json.dumps([1, encoder, fingerprint])  # 1: entries of the first format begin with the same digits
    return hashlib.blake2b(what.encode(), digest_size=16).hexdigest()[:WHAT] + code


def made_otherwise(cache: Path, key: str) -> bool:
    """Whether the cache holds the same vectors as made by other code."""
    return any(path.name != key for path in cache.glob(f"{key[:WHAT]}*"))


def entries(cache: Path) -> list[Entry]:
    """The stores in the cache folder, the last used first."""
    found = []
    for path in cache.iterdir() if cache.is_dir() else ():
        if len(path.name) != 32 or not path.is_dir():
            continue
        encoder = corpus = "?"
        with suppress(DamagedError, KeyError):
            meta = read_meta(path)
            encoder, corpus = meta["encoder"], meta["corpus"]
        try:
            used = max(f.stat().st_mtime for f in (path, path / "meta.json") if f.exists())
            found.append(Entry(path.name, path, _size(path), used, encoder, corpus))
        except (OSError, ValueError):  # another process removed it just now
            continue
    return sorted(found, key=lambda entry: -entry.used)


def clear(cache: Path, *, key: str | None = None, older_than_days: float | None = None) -> list[Entry]:
    """Removes the stores of that key (its first digits do) or unused for so long, or all; returns those removed.

    A store that another process is building is left alone.
    """
    chosen = entries(cache)
    if key is not None:
        chosen = [entry for entry in chosen if entry.key.startswith(key)]
        if not chosen:
            raise StoreError(f"no cache entry {key!r} in {cache}; `ctxexp cache` lists them")
    if older_than_days is not None:
        chosen = [entry for entry in chosen if time.time() - entry.used > older_than_days * 86400]
    removed = [entry for entry in chosen if _try_remove(cache, entry.path)]
    _remove_leftovers(cache)
    if key is None and older_than_days is None:
        shutil.rmtree(cache / "encoders", ignore_errors=True)  # what loaded encoders said of themselves: made anew
    for path in cache.glob(f"shards-{key or ''}*"):  # of encoding that was stopped
        _try_remove(cache, path)
    for path in cache.glob(f"sums-{key or ''}*"):  # of text that was measured in one pass
        if older_than_days is None or time.time() - path.stat().st_mtime > older_than_days * 86400:
            _try_remove(cache, path)
    return removed


def make_room(cache: Path, needed: int, *, limit: int | None, keep: str) -> None:
    """Removes the least recently used stores until `needed` bytes more fit under `limit` and on the disk.

    Never the entry `keep`; `StoreError` if it can't be done, before anything is encoded.
    """
    _remove_leftovers(cache)
    if limit is not None and needed > limit:
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the cache in {cache} is limited to {size_text(limit)}; "
            "raise the limit, or take fewer sentences or dtype=bfloat16 (half the size)"
        )
    held = entries(cache)
    total = sum(entry.n_bytes for entry in held)
    for entry in reversed(held):
        full = limit is not None and total + needed > limit
        if not full and shutil.disk_usage(cache).free >= needed:
            return
        if entry.key != keep and _try_remove(cache, entry.path):
            log.info("cache: removed the least recently used vectors (%s of %s, %s) to make room",
                     entry.encoder, entry.corpus, size_text(entry.n_bytes))  # fmt: skip
            total -= entry.n_bytes
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the disk of {cache} has {size_text(free)} free; "
            "make room or choose another cache folder"
        )


@contextmanager
def entry_lock(cache: Path, key: str) -> Iterator[None]:
    """Holds the entry's lock, waiting for a process that is building it; clears what a killed one left of it."""
    lock = _lock(cache, key)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("waiting for another process that is making the same vectors (%s)", lock.lock_file)
        lock.acquire(poll_interval=0.2)
    try:
        for left in cache.glob(f"tmp-{key}-*"):
            shutil.rmtree(left)
        yield
    finally:
        lock.release()


def temporary(cache: Path, key: str) -> Path:
    """A folder name to build the entry in; whoever holds the entry's lock may remove all others."""
    return cache / f"tmp-{key}-{os.getpid()}-{time.monotonic_ns()}"


def remove(path: Path) -> None:
    """Removes an entry, so that no moment of it looks whole."""
    with suppress(OSError):  # rmtree says what is in the way
        (path / "meta.json").unlink()
    shutil.rmtree(path)


def touch(path: Path) -> None:
    """Marks an entry as used now."""
    os.utime(path / "meta.json")


def size_text(n_bytes: float) -> str:
    """Such as `3.1 GB`, in powers of ten."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def _lock(cache: Path, key: str) -> FileLock:
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{key}.lock")


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def _try_remove(cache: Path, path: Path) -> bool:
    """Whether the entry or leftover could be removed: not while someone builds or opens it."""
    key = path.name.split("-")[1] if path.name.startswith(("tmp-", "shards-", "sums-")) else path.name
    lock = _lock(cache, key)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    try:
        remove(path)
    except FileNotFoundError:
        return False
    except OSError as error:  # an open file on Windows, or no permission
        log.warning("cache: could not remove %s: %s", path, error)
        return False
    finally:
        lock.release()
    return True


def _remove_leftovers(cache: Path) -> None:
    """Removes what killed processes left half-built."""
    for path in cache.glob("tmp-*-*"):
        _try_remove(cache, path)
