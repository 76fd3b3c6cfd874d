"""Engines: the same bits whoever encodes, nothing twice but what was in flight, and what is said when it goes wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxexp.datasets.contexts import BoundOptions, bound_corpus
from ctxexp.datasets.text import text as read_text
from ctxexp.engine import Engine
from ctxexp.engines.local import Local
from ctxexp.errors import ConfigError, EncodingError, EngineError, UnknownName
from ctxexp.jobs.process import process_identity
from ctxexp.measuring.study import WordFilter
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.shards import EncodingWorkers
from ctxexp.vectors.store import Store
from tests.traced import TracingEncoder, encoding_counts, layers, text


def encoded(cache: Path, engine: Engine | None = None, encoder: TracingEncoder | None = None) -> Store:
    cache.mkdir(exist_ok=True)
    encoder = encoder or TracingEncoder(cache)
    workers = None if engine is None else EncodingWorkers(engine, partial(_same, encoder))
    return open_store(text(), encoder, cache=cache, batch_tokens=20, workers=workers)


def _same(encoder: TracingEncoder) -> TracingEncoder:
    return encoder


class Stopped(Engine):
    """One worker that stops after so many items, as a driver that is killed."""

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
    for i, engine in enumerate((Local(processes=2, shard_tokens=90), Stopped(99, 7), Stopped(99, 10**6))):
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
    damaged = sorted(folder.iterdir())[1] / "layer_01.npy"
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


def test_what_a_killed_worker_was_at_is_done_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    deadly = TracingEncoder(tmp_path, deadly=text().sentences[50].text)
    encoded(tmp_path, Local(processes=2, shard_tokens=60), deadly)
    assert "a worker of engine local died" in caplog.text
    twice = [n for n in encoding_counts(tmp_path).values() if n > 1]
    assert len(twice) < 60  # of two shards in flight
    encoded(tmp_path / "alone")
    assert layers(tmp_path) == layers(tmp_path / "alone")


def _dies_at_seven(folder: Path, item: int) -> int:
    (folder / f"{item}-{os.getpid()}").touch()
    if item == 7:
        os._exit(9)
    return item


def test_a_deadly_item_is_tried_three_times_and_named(tmp_path: Path) -> None:
    done: list[int] = []
    work = partial(_made, partial(_dies_at_seven, tmp_path))
    with pytest.raises(EngineError, match=r"a worker died 3 times at item 7: is there memory for 2 processes\?.* kept"):
        done.extend(Local(processes=2).map_unordered(work, range(10)))
    assert len(list(tmp_path.glob("7-*"))) == 3
    assert set(done) >= set(range(6))  # what was begun before it


def test_a_deadly_shard_is_named_by_its_first_sentence(tmp_path: Path) -> None:
    deadly = TracingEncoder(tmp_path, deadly=text().sentences[50].text, always=True)
    with pytest.raises(EngineError, match=r"died 3 times at item 0000\d\d of .* \(\d+ sentences from 'w\d"):
        encoded(tmp_path, Local(processes=2, shard_tokens=60), deadly)
    assert max(encoding_counts(tmp_path).values()) <= 3


SCRIPT = """
import sys
from ctxexp.engines.local import Local
from ctxexp.testing.engines import _Squares
print(sorted(Local(processes=2).map_unordered(_Squares, range(4))))
"""


def test_a_script_without_its_guard_is_told(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "a worker died 3 times before it had anything to do: is there memory for 2 processes? A" in done.stderr
    assert "if __name__ == '__main__':" in done.stderr


DRIVER = """
import sys
from pathlib import Path
from functools import partial
from ctxexp.engines.local import Local
from test_local import _made, {work}
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    list(Local(processes=2).map_unordered(partial(_made, partial({work}, folder)), range(8)))
"""


def _waits(folder: Path, item: int) -> int:
    (folder / str(os.getpid())).touch()
    return [time.sleep(1) for _ in range(600)] and item


def _hears_nobody(folder: Path, item: int) -> int:
    """Never lets another thread of Python's run."""
    (folder / str(os.getpid())).touch()
    return bool(re.match("(a*)*b", "a" * 50)) + item


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("work", ["_waits", "_hears_nobody"])
def test_workers_end_with_their_driver(work: str, number: signal.Signals, tmp_path: Path) -> None:
    """Two workers of 327 MB were asleep 180 s after it was killed."""
    if work == "_hears_nobody" and sys.platform != "linux":
        pytest.skip("only Linux's kernel ends a process whose threads don't run")
    (tmp_path / "at_work").mkdir()
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(work=work))
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2]), *sys.path])
    command = [sys.executable, str(script), str(tmp_path / "at_work")]
    driver = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    workers: list[int] = []
    while len(workers) < 2:
        time.sleep(0.05)
        assert driver.poll() is None, "the driver ended before it could be killed"
        workers = [int(path.name) for path in (tmp_path / "at_work").iterdir()]
    assert all(process_identity(pid) for pid in workers)
    driver.send_signal(number)
    driver.wait()
    assert ended(workers)


THREAD = (
    DRIVER.replace("    list(Local", "    drive = lambda: list(Local")
    + """
    import threading, time
    threading.Thread(target=drive, daemon=True).start()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.05)
"""
)


def test_no_worker_is_begun_while_the_process_exits(tmp_path: Path) -> None:
    """A thread that took the end of its workers for deaths began others, and the exit waited for these for ever."""
    (tmp_path / "at_work").mkdir()
    script = tmp_path / "driver.py"
    script.write_text(THREAD.format(work="_waits"))
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2]), *sys.path])
    command = [sys.executable, str(script), str(tmp_path / "at_work")]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "it is done again" not in done.stderr
    assert ended([int(path.name) for path in (tmp_path / "at_work").iterdir()])


def ended(pids: list[int], seconds: float = 20) -> bool:
    """Whether all these processes end within so many seconds; who doesn't is killed."""
    deadline = time.monotonic() + seconds
    while alive := [pid for pid in pids if process_identity(pid)]:
        if time.monotonic() > deadline:
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.05)
    return True


def _refuses(item: int) -> int:
    raise UnknownName("word tokenizer", "englisch", ["english"])


def _made(work: Callable[[int], int]) -> Callable[[int], int]:
    return work


def test_what_workers_raise_is_raised(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no word tokenizer 'englisch'; did you mean 'english'"):
        list(Local(processes=2).map_unordered(partial(_made, _refuses), [1, 2]))
    with pytest.raises(ConfigError, match="expected processes and shard_tokens of at least 1"):
        Local(processes=0)


def test_another_model_is_refused(tmp_path: Path) -> None:
    other = TracingEncoder(tmp_path)
    other.name = "another"
    workers = EncodingWorkers(Stopped(9, 60), lambda: other)
    with pytest.raises(EncodingError, match="a worker made the encoder 'another', the driver has 'traced'"):
        open_store(text(), TracingEncoder(tmp_path), cache=tmp_path, workers=workers)


def test_text_is_read_by_several_to_the_same_bits(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("\n".join(s.text for s in text(60 + i).sentences), encoding="utf-8")
    stream = read_text(path=str(tmp_path), stream=True)
    limits = BoundOptions(max_contexts=9, max_sentences=20, min_contexts=2, form=WordFilter().form)
    one, two = (bound_corpus(stream, limits, engine=Local(processes=n)) for n in (1, 2))
    assert one.content == two.content
    assert one.bound is not None
    assert two.bound is not None
    assert one.bound.text_sentences == two.bound.text_sentences == 246


JOBLIB = """
import joblib
from ctxexp.engines.local import Local
from ctxexp.testing.engines import _Squares

def job(n):
    return sorted(Local(processes=2).map_unordered(_Squares, range(n)))

if __name__ == "__main__":
    print(joblib.Parallel(n_jobs=2)(joblib.delayed(job)(n) for n in (3, 4)))
"""


def test_jobs_of_a_parallel_sweep_have_workers(tmp_path: Path) -> None:
    """joblib's processes have a start method of their own, which the workers' new processes didn't know."""
    (tmp_path / "script.py").write_text(JOBLIB)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.stdout == "[[0, 1, 4], [0, 1, 4, 9]]\n", done.stderr[-2000:]
