"""The folder of stores: one entry per key, locks, a bounded size. The least recently used is
removed first.

Beside the stores lie the shards of encoding that was stopped (`shards-<key>`) and the sums of text that was measured in
one pass (`sums-<key>`): entries like these, in size and age.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from ctxexp.errors import StoreError
from ctxexp.files import digest
from ctxexp.vectors import DamagedError, read_meta

log = logging.getLogger("ctxexp")
_NAME = re.compile(r"(?:(shards|sums)-)?([^-]{32})(?:-.*)?")  # of an entry's folder: its kind, its key
FLOOR, CEILING = 20 * 10**9, 100 * 10**9  # bytes, of the limit that the disk decides


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache; `encoder` and `corpus` are "?" if it is damaged, or its kind doesn't record them."""

    key: str
    path: Path
    n_bytes: int
    last_used: float  # when it was last opened, in seconds since the epoch
    encoder: str
    corpus: str
    kind: str = "vectors"  # vectors, shards (of encoding that was stopped), sums (of one pass)


def entry_key(encoder: str, fingerprint: str, code: str) -> str:
    """The key (32 hex digits) of an encoder's vectors for sentences of that fingerprint, by this version of our own
    code."""
    return digest(json.dumps([encoder, fingerprint, code]).encode())


def entries(cache: Path) -> list[CacheEntry]:
    """The entries of the cache folder, the most recently used first."""
    items = []
    for path in cache.iterdir() if cache.is_dir() else ():
        name = _NAME.fullmatch(path.name)
        if not name or not path.is_dir():
            continue
        kind, key = name[1] or "vectors", name[2]
        encoder, corpus = _encoder_and_corpus(path)
        dated = (path, path / "meta.json") if kind == "vectors" else (path,)
        try:
            last_used = max(f.stat().st_mtime for f in dated if f.exists())
            items.append(CacheEntry(key, path, folder_size(path), last_used, encoder, corpus, kind))
        except (OSError, ValueError):  # another process removed it just now
            continue
    return sorted(items, key=lambda entry: -entry.last_used)


def _encoder_and_corpus(path: Path) -> tuple[str, str]:
    """Names of an entry's encoder and corpus from its files; "?" where they don't record one."""
    with suppress(DamagedError, LookupError):
        meta = read_meta(path)
        return meta["encoder"], meta["corpus"]
    return "?", "?"


def clear(cache: Path, *, key: str | None = None, older_than_days: float | None = None) -> list[CacheEntry]:
    """Remove the entries whose key begins with `key` and that were unused for `older_than_days`, where given; without
    either all, and the descriptions of encoders. Returns those removed.

    Entries that another process is building, and sums that one is measuring, are left alone.
    """
    selection = entries(cache)
    if key is not None:
        selection = [entry for entry in selection if entry.key.startswith(key)]
        if not selection:
            raise StoreError(f"no cache entry {key!r} in {cache}; `ctxexp cache` lists them")
    if older_than_days is not None:
        selection = [entry for entry in selection if time.time() - entry.last_used > older_than_days * 86400]
    removed = [entry for entry in selection if _try_remove(cache, entry.path)]
    _remove_leftovers(cache)
    if key is None and older_than_days is None:
        shutil.rmtree(cache / "encoders", ignore_errors=True)  # descriptions of loaded encoders, which are made anew
    return removed


Limit = int | Literal["auto"] | None
"""Bytes that a cache may take: the disk decides ("auto"), or none is set."""


def bytes_of(limit: Limit, cache: Path) -> int | None:
    """A limit in bytes; the default is half of the space that is free or that the cache itself takes, between FLOOR and
    CEILING.

    Counting the cache's own bytes keeps the limit fixed while it fills. CEILING is three times the paper's sweep (33
    GB), since a large disk is shared; no more than the free space is ever requested.
    """
    if limit != "auto":
        return limit
    size = sum(entry.n_bytes for entry in entries(cache))
    return min(max((free_bytes(cache) + size) // 2, FLOOR), CEILING)


def free_bytes(cache: Path) -> int:
    """Free bytes on the disk of the cache folder, which needn't exist yet."""
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return shutil.disk_usage(there).free


def make_room(cache: Path, needed: int, *, limit: Limit, keep: str) -> None:
    """Remove the least recently used entries until `needed` bytes more fit under `limit` and on the disk.

    The entry `keep` and sums that are being measured are never removed. Raises `StoreError`, before anything is
    removed, if there can't be enough room.
    """
    _remove_leftovers(cache)
    limit = bytes_of(limit, cache)
    if limit is not None and needed > limit:
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the cache in {cache} is limited to {size_text(limit)}; "
            f"raise the limit (cache.limit_gb={in_gb(needed)}), or take fewer sentences or dtype=bfloat16 (half the "
            "size)"
        )
    by_use = entries(cache)
    total, spare = sum(entry.n_bytes for entry in by_use), [entry for entry in reversed(by_use) if entry.key != keep]
    _require_disk(cache, needed, sum(entry.n_bytes for entry in spare))
    for entry in spare:
        if (limit is None or total + needed <= limit) and free_bytes(cache) >= needed:
            return
        if _try_remove(cache, entry.path):
            total -= entry.n_bytes
            what = f"{entry.kind} ({entry.encoder} of {entry.corpus}, {size_text(entry.n_bytes)})"
            log.info(f"cache: removed the least recently used {what} to make room")
    _require_disk(cache, needed, 0)


def _require_disk(cache: Path, needed: int, spare: int) -> None:
    """Raise StoreError if the disk hasn't `needed` free bytes even after removing `spare` bytes of the cache."""
    if (free := free_bytes(cache)) + spare < needed:
        older = f" and {size_text(spare)} of older vectors" if spare else ""
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the disk of {cache} has {size_text(free)} free{older}; "
            "make room or choose another cache folder"
        )


@contextmanager
def entry_lock(cache: Path, key: str) -> Iterator[None]:
    """Hold the entry's lock, waiting for a process that is building it; clear what a killed process left of it."""
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
    """Remove an entry so that it never looks intact on the way: meta.json goes first."""
    with suppress(OSError):  # rmtree says what is in the way
        (path / "meta.json").unlink()
    shutil.rmtree(path)


def touch(path: Path) -> None:
    """Mark an entry as used now."""
    os.utime(path / "meta.json")


def size_text(n_bytes: float) -> str:
    """A size as text, in powers of ten.

    Example:
        >>> size_text(3_100_000_000)
        '3.1 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def in_gb(n_bytes: int) -> int:
    """The number of GB, rounded up, as `cache.limit_gb` counts them.

    Example:
        >>> in_gb(3_100_000_000)
        4
    """
    return -(-n_bytes // 10**9)


def folder_size(path: Path) -> int:
    """Bytes of all files in a folder and below."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _lock(cache: Path, key: str) -> FileLock:
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{key}.lock", thread_local=False)  # a finalizer may run in any thread


def _try_remove(cache: Path, path: Path) -> bool:
    """Whether the entry or leftover could be removed: not while someone builds, opens or holds it."""
    key = path.name.split("-")[1] if path.name.startswith(("tmp-", "shards-", "sums-")) else path.name
    try:
        with _lock(cache, key).acquire(timeout=0):
            remove(path)
    except (Timeout, FileNotFoundError):
        return False
    except OSError as error:  # an open file on Windows, or no permission
        log.warning("cache: could not remove %s: %s", path, error)
        return False
    return True


def _remove_leftovers(cache: Path) -> None:
    """Remove what killed processes left half-built."""
    for path in cache.glob("tmp-*-*"):
        _try_remove(cache, path)
