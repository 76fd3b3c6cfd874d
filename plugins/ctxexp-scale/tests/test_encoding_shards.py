"""Engines: the same bits in whatever shards, and nothing encoded twice but what was in flight."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ctxexp_scale.encoding import Engine

from tests.traced import TracingEncoder, encoded, encoding_counts, layers


class Stopped(Engine):
    """One worker, for which the work is in shards; it stops after so many items, as a driver that is killed."""

    name, workers = "stopped", 2

    def __init__(self, after: int, shard_tokens: int) -> None:
        self.after, self.shard_tokens = after, shard_tokens

    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for i, item in enumerate(items):
            if i == self.after:
                raise KeyboardInterrupt
            yield work(item)


def test_vectors_are_the_same_bits_whoever_encodes_in_whatever_shards(tmp_path: Path) -> None:
    alone = encoded(tmp_path / "alone")
    for i, engine in enumerate((Stopped(99, 90), Stopped(99, 7), Stopped(99, 10**6))):
        other = encoded(tmp_path / str(i), engine)
        assert layers(tmp_path / str(i)) == layers(tmp_path / "alone")
        assert (other.n_encoded, other.n_skipped) == (alone.n_encoded, alone.n_skipped)
        assert not list((tmp_path / str(i)).glob("shards-*"))
    assert set(encoding_counts(tmp_path / "0").values()) == {1}


def test_a_stopped_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encoded(tmp_path, Stopped(5, 60))
    (folder,) = tmp_path.glob("shards-*")
    before = encoding_counts(tmp_path)
    assert 0 < sum(before.values()) < 120
    damaged = sorted(folder.iterdir())[1]
    damaged.write_bytes(damaged.read_bytes()[:-1])  # is encoded anew
    store = encoded(tmp_path, Stopped(99, 60))
    again = [n for n in encoding_counts(tmp_path).values() if n > 1]
    assert store.n_encoded == 120 - sum(before.values()) + len(again)
    assert 0 < len(again) < 20
    encoded(tmp_path / "alone")
    assert layers(tmp_path) == layers(tmp_path / "alone")


def _stopped(cache: Path, encoder: TracingEncoder | None = None) -> Path:
    """The folder of shards that a run left which was stopped after five."""
    with pytest.raises(KeyboardInterrupt):
        encoded(cache, Stopped(5, 60), encoder)
    (folder,) = cache.glob("shards-*")
    return folder


def test_a_shard_that_is_another_s_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoded(tmp_path / "alone")
    other = TracingEncoder(tmp_path)
    other.name = "another"
    foreign = _stopped(tmp_path / "foreign", other)
    for i, damage in enumerate(
        (
            lambda one, two: shutil.copy(two, one),
            lambda one, two: shutil.copy(foreign / one.name, one),
            lambda one, two: one.write_text("a file"),
            lambda one, two: (one.unlink(), one.mkdir()),
        )
    ):
        cache = tmp_path / str(i)
        folder = _stopped(cache)
        one, two, *_ = sorted(folder.iterdir())
        damage(one, two)
        (folder / "000007.host-1.npz").touch()  # of a worker that was killed
        caplog.clear()
        encoded(cache, Stopped(99, 60))
        assert f"{one} can't be taken" in caplog.text
        assert layers(cache) == layers(tmp_path / "alone")
