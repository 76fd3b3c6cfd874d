"""The folder of stores: one entry per key, locks, a bounded size, the oldest out first.

Beside the stores lie the shards of encoding that was stopped (`shards-<key>-...`) and the sums of text that was
measured in one pass (`sums-<key>`): entries like these, in size and age.
"""

from __future__ import annotations

import hashlib
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

from filelock import FileLock, Timeout

from ctxexp.errors import StoreError
from ctxexp.vectors.leases import RUNS, SWEEPS, leased
from ctxexp.vectors.store_files import DamagedError, read_meta

log = logging.getLogger("ctxexp")

WHAT = 24  # digits of a key that say of what the vectors are
_NAME = re.compile(r"(?:(shards|sums)-)?([^-]{32})(?:-.*)?")  # of an entry's folder: its kind, its key
FLOOR, CEILING = 20 * 10**9, 100 * 10**9  # bytes, of the limit that the disk decides


@dataclass(frozen=True)
class Entry:
    """One store in the cache; `encoder` and `corpus` are "?" if it is damaged, or not said in its kind."""

    key: str
    path: Path
    n_bytes: int
    used: float  # when it was last opened, in seconds since the epoch
    encoder: str
    corpus: str
    kind: str = "vectors"  # vectors, shards (of encoding that was stopped), sums (of one pass)


def entry_key(encoder: str, fingerprint: str, code: str) -> str:
    """The key (32 hex digits) of an encoder's vectors for sentences of that fingerprint; its last 8 digits are `code`,
    which says by which version of our own code."""
    what = json.dumps([1, encoder, fingerprint])  # 1: entries of the first format begin with the same digits
    return hashlib.blake2b(what.encode(), digest_size=16).hexdigest()[:WHAT] + code


def made_otherwise(cache: Path, key: str) -> bool:
    """Whether the cache holds the same vectors as made by other code."""
    return any(path.name != key for path in cache.glob(f"{key[:WHAT]}*"))


def entries(cache: Path) -> list[Entry]:
    """What the cache folder holds, the last used first."""
    found = []
    for path in cache.iterdir() if cache.is_dir() else ():
        name = _NAME.fullmatch(path.name)
        if not name or not path.is_dir():
            continue
        kind, key = name[1] or "vectors", name[2]
        encoder, corpus = _said(path, kind)
        dated = (path, path / "meta.json") if kind == "vectors" else (path,)
        try:
            used = max(f.stat().st_mtime for f in dated if f.exists())
            found.append(Entry(key, path, folder_size(path), used, encoder, corpus, kind))
        except (OSError, ValueError):  # another process removed it just now
            continue
    return sorted(found, key=lambda entry: -entry.used)


def _said(path: Path, kind: str) -> tuple[str, str]:
    """An entry's encoder and corpus, as far as its files say."""
    if kind == "sums":
        return "?", "?"
    with suppress(DamagedError, LookupError):
        meta = read_meta(path if kind == "vectors" else min(path.glob("*/meta.json"), default=path / "-").parent)
        return meta["encoder"], meta.get("corpus", "?")
    return "?", "?"


def clear(cache: Path, *, key: str | None = None, older_than_days: float | None = None) -> list[Entry]:
    """Removes the entries of that key (its first digits do) or unused for so long, or all; returns those removed.

    What another process is building, and sums that one reads, are left alone.
    """
    chosen = entries(cache)
    if key is not None:
        chosen = [entry for entry in chosen if entry.key.startswith(key)]
        if not chosen:
            raise StoreError(f"no cache entry {key!r} in {cache}; `ctxexp cache` lists them")
    if older_than_days is not None:
        chosen = [entry for entry in chosen if time.time() - entry.used > older_than_days * 86400]
    read = leased(cache, RUNS)
    removed = [entry for entry in chosen if entry.key not in read and _try_remove(cache, entry.path)]
    _remove_leftovers(cache)
    if key is None and older_than_days is None:
        shutil.rmtree(cache / "encoders", ignore_errors=True)  # what loaded encoders said of themselves: made anew
    return removed


def disk_limit(cache: Path) -> int:
    """How many bytes the cache may hold where nobody says: half of what its disk has free or the cache itself takes,
    so that filling it doesn't move the limit; from FLOOR, so that no small disk gets less than all had before, to
    CEILING, three times the paper's sweep (33 GB): a large disk is others' too. What isn't free is never asked for."""
    held = sum(entry.n_bytes for entry in entries(cache))
    return min(max((free_bytes(cache) + held) // 2, FLOOR), CEILING)


def free_bytes(cache: Path) -> int:
    """What the disk of the cache folder, which needn't be there yet, has free."""
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return shutil.disk_usage(there).free


def make_room(cache: Path, needed: int, *, limit: int | None, keep: str) -> None:
    """Removes the least recently used entries until `needed` bytes more fit under `limit` and on the disk: what a
    running sweep has read only if nothing else is left, with a warning.

    Never the entry `keep`, nor sums that are being read; `StoreError`, before anything is removed, if it can't be done.
    """
    _remove_leftovers(cache)
    if limit is not None and needed > limit:
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the cache in {cache} is limited to {size_text(limit)}; "
            f"raise the limit (cache.limit_gb={in_gb(needed)}), or take fewer sentences or dtype=bfloat16 (half the "
            "size)"
        )
    held = entries(cache)
    total, spare = sum(entry.n_bytes for entry in held), [entry for entry in reversed(held) if entry.key != keep]
    _require_disk(cache, needed, sum(entry.n_bytes for entry in spare))

    def short() -> bool:
        return (limit is not None and total + needed > limit) or free_bytes(cache) < needed

    if not short():
        return
    asked, read = leased(cache, SWEEPS), leased(cache, RUNS)
    all_asked = needed + sum(entry.n_bytes for entry in held if entry.key in asked or entry.key == keep)
    turn = [entry for entry in spare if entry.key not in read]
    for entry in sorted(turn, key=lambda entry: entry.key in asked):  # what no sweep asked for first, by age
        if not short():
            break
        if _try_remove(cache, entry.path):
            total -= entry.n_bytes
            _tell_removed(entry, all_asked if entry.key in asked else 0)
    _require_disk(cache, needed, 0)


def _require_disk(cache: Path, needed: int, spare: int) -> None:
    """Raises StoreError where the disk hasn't so many bytes, even without `spare` bytes of the cache."""
    if (free := free_bytes(cache)) + spare < needed:
        older = f" and {size_text(spare)} of older vectors" if spare else ""
        raise StoreError(
            f"these vectors need {size_text(needed)}, but the disk of {cache} has {size_text(free)} free{older}; "
            "make room or choose another cache folder"
        )


def _tell_removed(entry: Entry, all_asked: int) -> None:
    """That an entry was removed; of `all_asked` bytes for a running sweep (0: it is none's)."""
    what = f"{entry.kind} ({entry.encoder} of {entry.corpus}, {size_text(entry.n_bytes)})"
    if all_asked:
        log.warning(
            "cache: removed %s that a running sweep has read, as nothing else was left to remove: jobs that need them "
            "again encode again; it and this take %s, so that cache.limit_gb=%d or more on a disk with that room "
            "keeps all", what, size_text(all_asked), in_gb(all_asked),
        )  # fmt: skip
    else:
        log.info("cache: removed the least recently used %s to make room", what)


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


def in_gb(n_bytes: int) -> int:
    """The whole number of GB, as `cache.limit_gb` counts them, that holds so many bytes."""
    return -(-n_bytes // 10**9)


def folder_size(path: Path) -> int:
    """Bytes of all files in a folder and below."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _lock(cache: Path, key: str) -> FileLock:
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{key}.lock")


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
