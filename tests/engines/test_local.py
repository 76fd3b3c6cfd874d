"""Engines: the same bits whoever encodes, nothing twice but what was in flight, and what is said when it goes wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp.dataset import Sentence
from ctxexp.datasets.contexts import Bounds, bounded
from ctxexp.datasets.text import text as read_text
from ctxexp.engine import Engine
from ctxexp.engines.local import Local
from ctxexp.errors import ConfigError, EncodingError, EngineError, UnknownName
from ctxexp.model import Encoded
from ctxexp.study import Words
from ctxexp.testing.traced import Traced, layers, seen, text
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.shards import Crew
from ctxexp.vectors.store import Store


def encoded(cache: Path, engine: Engine | None = None, encoder: Traced | None = None) -> Store:
    cache.mkdir(exist_ok=True)
    encoder = encoder or Traced(cache)
    crew = None if engine is None else Crew(engine, partial(_same, encoder))
    return open_store(text(), encoder, cache=cache, batch_tokens=20, crew=crew)


def _same(encoder: Traced) -> Traced:
    return encoder


class Stopped(Engine):
    """One worker that stops after so many items, as a driver that is killed."""

    name, workers = "stopped", 2

    def __init__(self, after: int, shard_tokens: int) -> None:
        self.after, self.shard_tokens = after, shard_tokens

    def each(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for i, item in enumerate(items):
            if i == self.after:
                raise KeyboardInterrupt
            yield work(item)


def test_vectors_are_the_same_bits_whoever_encodes_in_whatever_shards(tmp_path: Path) -> None:
    alone = encoded(tmp_path / "alone")
    for i, engine in enumerate((Local(processes=2, shard_tokens=90), Stopped(99, 7), Stopped(99, 10**6))):
        other = encoded(tmp_path / str(i), engine)
        assert layers(tmp_path / str(i)) == layers(tmp_path / "alone")
        assert (other.encoded, other.skipped) == (alone.encoded, alone.skipped)
        assert not list((tmp_path / str(i)).glob("shards-*"))
    assert set(seen(tmp_path / "0").values()) == {1}


def test_a_stopped_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encoded(tmp_path, Stopped(5, 60))
    (folder,) = tmp_path.glob("shards-*")
    before = seen(tmp_path)
    assert 0 < sum(before.values()) < 120
    damaged = sorted(folder.iterdir())[1] / "layer_01.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1])  # is encoded anew
    store = encoded(tmp_path, Stopped(99, 60))
    again = [n for n in seen(tmp_path).values() if n > 1]
    assert store.encoded == 120 - sum(before.values()) + len(again)
    assert 0 < len(again) < 20
    encoded(tmp_path / "alone")
    assert layers(tmp_path) == layers(tmp_path / "alone")


def _stopped(cache: Path, encoder: Traced | None = None) -> Path:
    """The folder of shards that a run left which was stopped after five."""
    with pytest.raises(KeyboardInterrupt):
        encoded(cache, Stopped(5, 60), encoder)
    (folder,) = cache.glob("shards-*")
    return folder


def test_a_shard_that_is_another_s_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoded(tmp_path / "alone")
    other = Traced(tmp_path)
    other.name = "another"
    foreign = _stopped(tmp_path / "foreign", other)
    for i, damage in enumerate(
        (
            lambda one, two: (shutil.rmtree(one), shutil.copytree(two, one)),
            lambda one, two: (shutil.rmtree(one), shutil.copytree(foreign / one.name, one)),
            lambda one, two: (shutil.rmtree(one), one.write_text("a file")),
            lambda one, two: ((one / "layer_00.npy").unlink(), os.mkfifo(one / "layer_00.npy")),
            lambda one, two: ((one / "meta.json").unlink(), os.mkfifo(one / "meta.json")),
        )
    ):
        cache = tmp_path / str(i)
        folder = _stopped(cache)
        one, two, *_ = sorted(folder.iterdir())
        damage(one, two)
        (folder / "tmp-000007-host-1-1").mkdir()  # of a worker that was killed
        caplog.clear()
        encoded(cache, Stopped(99, 60))
        assert f"{one} is damaged" in caplog.text
        assert layers(cache) == layers(tmp_path / "alone")


class TwoWays(Traced):
    """Makes vectors in the way that it has settled for, or in its own, which its name leaves open."""

    way = "plain"

    @property
    def made(self) -> dict[str, str]:  # type: ignore[override]
        return {"way": self.way}

    def settle(self, made: Mapping[str, str]) -> None:
        self.way = made["way"]

    def encode(self, batch: Sequence[Sentence]) -> Iterator[Encoded]:
        factor = np.float32(2 if self.way == "quick" else 1)
        return (Encoded(one.units, factor * one.layers) for one in super().encode(batch))


def test_a_run_that_goes_on_makes_vectors_as_the_stopped_one_did(tmp_path: Path) -> None:
    """A trial may find another way the quicker one the next time: two ways' vectors must not lie in one store."""
    quick = TwoWays(tmp_path)
    quick.way = "quick"
    _stopped(tmp_path / "b", quick)
    store = encoded(tmp_path / "b", Stopped(99, 60), TwoWays(tmp_path))
    encoded(tmp_path / "a", Stopped(99, 60), quick)
    assert store.made == {"way": "quick"}
    assert layers(tmp_path / "b") == layers(tmp_path / "a")


def test_what_a_killed_worker_was_at_is_done_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    deadly = Traced(tmp_path, deadly=text().sentences[50].text)
    encoded(tmp_path, Local(processes=2, shard_tokens=60), deadly)
    assert "a worker of engine local died" in caplog.text
    twice = [n for n in seen(tmp_path).values() if n > 1]
    assert len(twice) < 60  # of two shards in flight
    encoded(tmp_path / "alone")
    assert layers(tmp_path) == layers(tmp_path / "alone")


def _dies(item: int) -> int:
    os._exit(9)


def _refuses(item: int) -> int:
    raise UnknownName("word tokenizer", "englisch", ["english"])


def _made(work: Callable[[int], int]) -> Callable[[int], int]:
    return work


def test_what_workers_raise_is_raised(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no word tokenizer 'englisch'; did you mean 'english'"):
        list(Local(processes=2).each(partial(_made, _refuses), [1, 2]))
    with pytest.raises(EngineError, match=r"a worker died 3 times in a row \(2 items left\)"):
        list(Local(processes=2).each(partial(_made, _dies), [1, 2]))
    with pytest.raises(ConfigError, match="expected processes and shard_tokens of at least 1"):
        Local(processes=0)


def test_another_model_is_refused(tmp_path: Path) -> None:
    other = Traced(tmp_path)
    other.name = "another"
    crew = Crew(Stopped(9, 60), lambda: other)
    with pytest.raises(EncodingError, match="a worker made the encoder 'another', the driver has 'traced'"):
        open_store(text(), Traced(tmp_path), cache=tmp_path, crew=crew)


def test_text_is_read_by_several_to_the_same_bits(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("\n".join(s.text for s in text(60 + i).sentences), encoding="utf-8")
    stream = read_text(path=str(tmp_path), stream=True)
    limits = Bounds(max_contexts=9, max_sentences=20, min_contexts=2, form=Words().form)
    one, two = (bounded(stream, limits, engine=Local(processes=n)) for n in (1, 2))
    assert one.content == two.content
    assert one.bound is not None
    assert two.bound is not None
    assert one.bound.text_sentences == two.bound.text_sentences == 246
