"""Stores on disk: what goes in comes out; cut and missing files are noticed; the cache keeps its bound."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from ctxexp.errors import StoreError
from ctxexp.vectors import (
    DamagedError,
    NotFiniteError,
    RowIndexBuilder,
    Store,
    StoreWriter,
    layer_name,
)
from ctxexp.vectors import cache as caches
from ctxexp.vectors.stores import Vectors


def write(folder: Path, parts: list[np.ndarray]) -> np.ndarray:
    """Writes a store of `parts`, one array a sentence; returns them joined."""
    n_layers, _, dim = parts[0].shape
    with StoreWriter(folder, n_layers, dim) as writer:
        writer.append(parts[:1])
        writer.append(parts[1:] or [parts[0][:, :0]])
        rows_of = RowIndexBuilder()
        rows_of.vocabulary = {"a": 0, "b\u2028": 1}
        rows_of.codes.extend([0] * sum(part.shape[1] for part in parts))
        rows_of.positions.extend(rows_of.codes)
        rows_of.offsets.extend(np.cumsum([part.shape[1] for part in parts]).tolist())
        writer.finish(rows_of, np.arange(len(parts)), {"encoder": "tiny", "corpus": "c", "unknown": 0, "pieces": 0})
    return np.concatenate(parts, axis=1)


def parts(dtype: str = "float32", dim: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(3, n, dim)).astype(dtype) for n in (4, 0, 7, 100, 1, 30)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_come_back_as_plain_npy(tmp_path: Path, dtype: str) -> None:
    expected = write(tmp_path / "s", parts(dtype))
    store = Store(tmp_path / "s", np.array([5, 0, 0, 3]))
    assert (store.n_layers, store.n_rows, store.dim, store.dtype) == (3, 142, 5, np.dtype(dtype))
    assert store.stored_of.tolist() == [5, 0, 0, 3]
    assert store.vocabulary == ["a", "b\u2028"]
    for i, layer in enumerate(expected):
        np.testing.assert_array_equal(store.layer(i), layer)
        np.testing.assert_array_equal(np.load(tmp_path / "s" / layer_name(i), mmap_mode="r"), layer)
    assert not store.layer(0).flags.writeable
    with pytest.raises(StoreError, match="no layer 3: 'tiny' has layers 0 to 2"):
        store.layer(3)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_that_are_not_as_they_were_written_are_noticed(tmp_path: Path) -> None:
    """Cut, longer, another's, or with a bit flipped, in a header or at any other place; a swap of layers too."""
    write(tmp_path / "s", parts())
    rng = np.random.default_rng(0)
    for name in files(tmp_path / "s"):
        original = (tmp_path / "s" / name).read_bytes()
        flipped = [bytearray(original) for _ in range(8)]
        for copy, at in zip(flipped, [0, 20 % len(original), *rng.integers(len(original), size=6)], strict=True):
            copy[at] ^= 1 << int(rng.integers(8))
        other = (tmp_path / "s" / layer_name(int(name == layer_name(0)))).read_bytes()
        for damaged in (original[:-1], original + b"\0", b"", b"{}", b"null", other, *flipped):
            (tmp_path / "s" / name).write_bytes(damaged)
            with pytest.raises(DamagedError):
                Store(tmp_path / "s", np.arange(6))
        (tmp_path / "s" / name).unlink()
        with pytest.raises(DamagedError):
            Store(tmp_path / "s", np.arange(6))
        (tmp_path / "s" / name).write_bytes(original)
    Store(tmp_path / "s", np.arange(6))


def test_a_writer_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off(given: list[np.ndarray]) -> None:
        with StoreWriter(tmp_path / "s", 3, 5) as writer:
            writer.append(given)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off(parts())
    bad = parts()[3]
    bad[1, 70, 2] = np.inf
    with pytest.raises(NotFiniteError) as error:
        break_off([parts()[3], bad])
    assert error.value.row == 170
    assert not (tmp_path / "s").exists()


def entry(cache: Path, i: int, *, age: float) -> str:
    key = f"{i:032x}"
    write(cache / key, parts())
    os.utime(cache / key / "meta.json", (time.time() - age, time.time() - age))
    os.utime(cache / key, (time.time() - age, time.time() - age))
    return key


def test_the_least_recently_used_go_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    old, middle, new = (entry(tmp_path, i, age=age) for i, age in ((1, 300), (2, 200), (3, 100)))
    held = caches.entries(tmp_path)
    assert [e.key for e in held] == [new, middle, old]
    assert {e.encoder for e in held} == {"tiny"}
    size = held[0].n_bytes
    caches.make_room(tmp_path, 0, limit=3 * size, keep=new)
    assert len(caches.entries(tmp_path)) == 3
    caches.touch(tmp_path / old)
    caches.make_room(tmp_path, size, limit=3 * size, keep=new)
    assert {e.key for e in caches.entries(tmp_path)} == {old, new}
    caches.make_room(tmp_path, 2 * size, limit=2 * size, keep=new)  # the one in use stays, whatever the limit
    assert {e.key for e in caches.entries(tmp_path)} == {new}
    assert caplog.text.count("removed the least recently used vectors (tiny of ") == 2


def test_what_cannot_have_room_costs_no_entry(tmp_path: Path) -> None:
    key = entry(tmp_path, 1, age=100)
    with pytest.raises(StoreError, match=r"free and .* of older vectors; make room"):
        caches.make_room(tmp_path, shutil.disk_usage(tmp_path).free + 10**12, limit=None, keep="")
    with pytest.raises(StoreError, match=r"raise the limit \(cache\.limit_gb=3\)"):
        caches.make_room(tmp_path, 2 * 10**9 + 1, limit=2 * 10**9, keep="")
    assert [e.key for e in caches.entries(tmp_path)] == [key]


def test_sums_and_stopped_shards_count_and_go_by_age(tmp_path: Path) -> None:
    new = entry(tmp_path, 1, age=100)
    size = caches.entries(tmp_path)[0].n_bytes
    sums, shards = tmp_path / f"sums-{'a' * 32}", tmp_path / f"shards-{'b' * 32}-2048-500000"
    sums.mkdir()
    (sums / "0000.npz").write_bytes(bytes(size))
    write(shards / "0003", parts())
    for path, age in ((sums, 200), (shards, 300)):
        os.utime(path, (time.time() - age,) * 2)
    held = caches.entries(tmp_path)
    assert [(e.key, e.kind, e.encoder) for e in held] == [
        (new, "vectors", "tiny"),
        ("a" * 32, "sums", "?"),
        ("b" * 32, "shards", "?"),
    ]
    assert [e.n_bytes for e in held] == [size] * 3
    with caches.entry_lock(tmp_path, "b" * 32):  # who encodes them goes on
        caches.make_room(tmp_path, 0, limit=2 * size, keep=new)
        assert [e.kind for e in caches.entries(tmp_path)] == ["vectors", "shards"]
        caches.make_room(tmp_path, 0, limit=size, keep=new)
        assert [e.kind for e in caches.entries(tmp_path)] == ["vectors", "shards"]
    caches.make_room(tmp_path, 0, limit=size, keep=new)
    assert [e.kind for e in caches.entries(tmp_path)] == ["vectors"]


@pytest.mark.parametrize(
    ("free", "held", "expected"),
    [(10, 0, 20), (60, 0, 30), (40, 20, 30), (10_000, 0, 100)],
)
def test_the_disk_decides_the_limit_where_nobody_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, held: int, expected: int
) -> None:
    """In GB: half of what is free or the cache's own, so that filling the cache doesn't move it, from 20 to 100."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**15, 0, free * 10**9))
    if held:
        sums = tmp_path / f"sums-{'a' * 32}"
        sums.mkdir()
        with (sums / "0000.npz").open("wb") as file:
            file.truncate(held * 10**9)  # a hole
    assert caches.bytes_of("auto", tmp_path) == expected * 10**9
    assert caches.bytes_of("auto", tmp_path / "not" / "there") == min(max(free // 2, 20), 100) * 10**9


def test_clearing(tmp_path: Path) -> None:
    old, middle, new = (entry(tmp_path, i, age=days * 86400) for i, days in ((1, 20), (2, 10), (3, 0)))
    assert [e.key for e in caches.clear(tmp_path, older_than_days=15)] == [old]
    (tmp_path / f"tmp-{old}-1-1").mkdir()
    with pytest.raises(StoreError, match=r"no cache entry 'ffff' in .*; `ctxexp cache` lists them"):
        caches.clear(tmp_path, key="ffff")
    with caches.entry_lock(tmp_path, middle):
        assert caches.clear(tmp_path, key=middle) == []  # someone is using it
    assert [e.key for e in caches.clear(tmp_path, key=middle)] == [middle]
    assert not list(tmp_path.glob("tmp-*"))
    (tmp_path / "encoders").mkdir()
    (tmp_path / "encoders" / "one.json").write_text("{}")
    assert [e.key for e in caches.clear(tmp_path, key=new[:3], older_than_days=1)] == []
    assert list(tmp_path.glob("encoders/*"))
    assert [e.key for e in caches.clear(tmp_path)] == [new]
    assert not (tmp_path / "encoders").exists()
    assert caches.entries(tmp_path) == caches.entries(tmp_path / "none") == []


def test_sums_that_are_measured_are_neither_evicted_nor_cleared(tmp_path: Path) -> None:
    (tmp_path / f"sums-{'b' * 32}").mkdir()
    (tmp_path / f"sums-{'b' * 32}" / "0000.npz").write_bytes(bytes(1000))
    with Vectors(cache=tmp_path, limit_bytes=500).kept("sums", ["a text"], []) as folder:
        (folder / "0000.npz").write_bytes(bytes(1000))
        caches.make_room(tmp_path, 500, limit=500, keep="")
        assert [entry.path for entry in caches.entries(tmp_path)] == [folder]
        assert caches.clear(tmp_path) == []
    assert [entry.kind for entry in caches.clear(tmp_path)] == ["sums"]
