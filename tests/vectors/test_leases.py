"""What a running sweep has read stays in the cache while anything else can go; sums that are read stay anyway."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxexp.vectors import cache as caches
from ctxexp.vectors.encoding import open_store
from tests.traced import Counted, corpus

ROOT = Path(__file__).parents[2]
OTHER = """
import sys
from pathlib import Path
from ctxexp.vectors.cache import hold_sweep
from ctxexp.vectors.encoding import open_store
from tests.traced import Counted, corpus
lock = hold_sweep(Path(sys.argv[1]), "theirs")
store = open_store(corpus(), Counted("theirs"), cache=Path(sys.argv[1]), sweep="theirs")
print(store.path.name, flush=True)
sys.stdin.read()
"""


def opened(cache: Path, name: str, *, sweep: str = "", limit: int | None = None) -> tuple[str, int]:
    """The key of the vectors of a toy encoder of that name, all of one size, and how many sentences were encoded."""
    store = open_store(corpus(), Counted(name), cache=cache, limit_bytes=limit, sweep=sweep)
    when = time.time_ns()
    for path in (store.path, store.path / "meta.json"):  # the next one is younger, whatever the file system's clock
        os.utime(path, ns=(when, when))
    time.sleep(0.01)
    return store.path.name, store.n_encoded


def held(cache: Path) -> set[str]:
    return {entry.key for entry in caches.entries(cache)}


@pytest.fixture
def two(tmp_path: Path) -> int:
    """A limit under which one such entry stays beside one that is made, and no second does."""
    store = open_store(corpus(), Counted("size"), cache=tmp_path / "size")
    (entry,) = caches.entries(tmp_path / "size")
    return int(1.5 * entry.n_bytes) + 64 * store.n_rows + 200 * len(store.offsets)


@contextmanager
def another_process(cache: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A live one whose sweep has read vectors, and their key."""
    words = [sys.executable, "-c", OTHER, str(cache)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_what_a_living_sweep_has_read_goes_last(tmp_path: Path, two: int, caplog: pytest.LogCaptureFixture) -> None:
    """Before younger vectors of nobody; of two sweeps, the older's goes first."""
    caplog.set_level(logging.INFO)
    lock = caches.hold_sweep(tmp_path, "mine")
    assert lock is not None
    with another_process(tmp_path) as (process, theirs):
        opened(tmp_path, "old")
        new, _ = opened(tmp_path, "new", limit=two)
        assert held(tmp_path) == {theirs, new}
        assert "removed the least recently used vectors (old of c, " in caplog.text
        mine, _ = opened(tmp_path, "mine", sweep="mine", limit=two)
        assert held(tmp_path) == {theirs, mine}
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
        last, _ = opened(tmp_path, "last", sweep="mine", limit=two)  # nothing else can go
        assert held(tmp_path) == {mine, last}
        (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert "removed vectors (theirs of c, " in told
        assert "that a running sweep has read" in told
        assert "cache.limit_gb=1 or more" in told
        process.kill()
        process.wait()
        assert caches.keys_of_sweeps(tmp_path) == {mine, last}
        assert [path.name for path in (tmp_path / "sweeps").iterdir()] == ["mine"]
    lock.release()
    assert caches.keys_of_sweeps(tmp_path) == set()


def test_a_cache_that_takes_no_note_is_used_without(tmp_path: Path) -> None:
    (tmp_path / "sweeps").write_text("no folder")
    assert opened(tmp_path, "one", sweep="s")[1] > 0
    (tmp_path / "no folder").touch()
    assert caches.hold_sweep(tmp_path / "no folder", "s") is None


def test_sums_that_are_read_are_neither_evicted_nor_cleared(tmp_path: Path) -> None:
    for key in ("a" * 32, "b" * 32):
        (tmp_path / f"sums-{key}").mkdir()
        (tmp_path / f"sums-{key}" / "0000.npz").write_bytes(bytes(1000))
    lock = caches.hold_sweep(tmp_path, "r")
    assert lock is not None
    caches.note_read(tmp_path, "r", "a" * 32)
    caches.make_room(tmp_path, 500, limit=500, keep="")
    assert held(tmp_path) == {"a" * 32}
    assert caches.clear(tmp_path) == []
    lock.release()
    assert [entry.kind for entry in caches.clear(tmp_path)] == ["sums"]
    assert held(tmp_path) == set()
