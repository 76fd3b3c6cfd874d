"""What a running sweep has read stays in the cache while anything else can go; sums that are read stay anyway."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxexp.files.process import process_tags
from ctxexp.vectors import cache as caches
from ctxexp.vectors.encoding import open_store
from tests.traced import Counted, corpus

ROOT = Path(__file__).parents[2]
OTHER = """
import sys
from pathlib import Path
from ctxexp.vectors.encoding import open_store
from tests.traced import Counted, corpus
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


def test_a_sweep_over_transforms_keeps_shared_vectors(tmp_path: Path, two: int) -> None:
    """Another user's younger vectors go, not the sweep's older ones."""
    shared, _ = opened(tmp_path, "shared", sweep="s", limit=two)
    strange, _ = opened(tmp_path, "strange")
    third, _ = opened(tmp_path, "third", limit=two)
    assert held(tmp_path) == {shared, third}
    assert strange not in held(tmp_path)
    assert opened(tmp_path, "shared", sweep="s", limit=two) == (shared, 0)
    caches.release(tmp_path, "sweeps", "s")
    opened(tmp_path, "third")
    fourth, _ = opened(tmp_path, "fourth", limit=two)
    assert held(tmp_path) == {third, fourth}


def test_leased_vectors_of_live_processes_go_last(tmp_path: Path, two: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
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
        assert caches.leased_keys(tmp_path, "sweeps") == {mine, last}
        assert [path.name for path in (tmp_path / "leases" / "sweeps").iterdir()] == ["mine"]


def test_a_dead_process_keeps_nothing(tmp_path: Path, two: int) -> None:
    with another_process(tmp_path) as (process, theirs):
        process.kill()
        process.wait()
    new, _ = opened(tmp_path, "new")
    other, _ = opened(tmp_path, "other", limit=two)
    assert held(tmp_path) == {new, other}
    assert theirs not in held(tmp_path)


def test_reused_process_numbers_and_odd_leases_are_recognised(tmp_path: Path) -> None:
    caches.lease(tmp_path, "sweeps", "s", "a" * 32)
    (file,) = (tmp_path / "leases" / "sweeps" / "s").glob("*.json")
    tags = process_tags()
    assert json.loads(file.read_text()) == tags
    for changed, lives in (("ctxexp.process_started", False), ("ctxexp.pid", False), ("ctxexp.host", True)):
        file.write_text(json.dumps(tags | {changed: "4194303999"}))
        assert caches.leased_keys(tmp_path, "sweeps") == ({"a" * 32} if lives else set())
        caches.lease(tmp_path, "sweeps", "s", "a" * 32)
    file.write_text(json.dumps(tags | {"ctxexp.host": "elsewhere"}))
    os.utime(file, (time.time() - caches.REMOTE_LEASE_SECONDS - 60,) * 2)
    assert caches.leased_keys(tmp_path, "sweeps") == set()
    for odd in ("", "[]", "{}", '{"ctxexp.host": 1}', "\udcff"):
        caches.lease(tmp_path, "sweeps", "s", "a" * 32)
        file.write_bytes(odd.encode(errors="surrogateescape"))
        assert caches.leased_keys(tmp_path, "sweeps") == set()


def test_leases_that_are_released_while_they_are_read_are_none(tmp_path: Path) -> None:
    """A folder went between two looks at it, and the run that looked ended."""
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            caches.lease(tmp_path, "sweeps", "s", "a" * 32)
            caches.release(tmp_path, "sweeps", "s")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert caches.leased_keys(tmp_path, "sweeps") <= {"a" * 32}
    finally:
        over.set()
        thread.join()


def test_a_cache_that_takes_no_lease_is_used_without(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("no folder")
    assert opened(tmp_path, "one", sweep="s")[1] > 0
    caches.release(tmp_path, "sweeps", "s")


def test_sums_that_are_read_are_neither_evicted_nor_cleared(tmp_path: Path) -> None:
    for key in ("a" * 32, "b" * 32):
        (tmp_path / f"sums-{key}").mkdir()
        (tmp_path / f"sums-{key}" / "0000.npz").write_bytes(bytes(1000))
    caches.lease(tmp_path, "runs", "r", "a" * 32)
    caches.make_room(tmp_path, 500, limit=500, keep="")
    assert held(tmp_path) == {"a" * 32}
    assert caches.clear(tmp_path) == []
    caches.release(tmp_path, "runs", "r")
    assert [entry.kind for entry in caches.clear(tmp_path)] == ["sums"]
    assert held(tmp_path) == set()
