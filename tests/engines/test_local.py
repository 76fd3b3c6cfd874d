"""Engines: the same bits whoever encodes, nothing twice but what was in flight, and what is said when it goes wrong."""

from __future__ import annotations

import os
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

from ctxexp import Engine
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, CtxexpError, EncodingError, UnknownName
from ctxexp.files.process import process_identity
from tests.shipped import Local
from tests.traced import TracingEncoder, encoded, encoding_counts, layers, text


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


DRIVER = """
import sys
from pathlib import Path
from functools import partial
from ctxexp.engines import Local
from tests.engines.test_local import _made, _waits
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    list(Local(processes=2).map_unordered(partial(_made, partial(_waits, folder)), range(8)))
"""


def _waits(folder: Path, item: int) -> int:
    (folder / str(os.getpid())).touch()
    return [time.sleep(1) for _ in range(600)] and item


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_driver(number: signal.Signals, tmp_path: Path) -> None:
    """Two workers of 327 MB were asleep 180 s after it was killed."""
    (tmp_path / "at_work").mkdir()
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
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


def test_a_killed_worker_ends_the_run_and_the_next_goes_on(tmp_path: Path) -> None:
    deadly = TracingEncoder(tmp_path, deadly=text().sentences[50].text)
    with pytest.raises(CtxexpError, match=r"a worker died; is there memory for 2 processes\?.* kept"):
        encoded(tmp_path, Local(processes=2, shard_tokens=60), deadly)
    before = sum(encoding_counts(tmp_path).values())
    assert before > 20  # what was done stays
    encoded(tmp_path, Local(processes=2, shard_tokens=60), deadly)
    assert len([n for n in encoding_counts(tmp_path).values() if n > 1]) < 60  # of two shards in flight
    encoded(tmp_path / "alone")
    assert layers(tmp_path) == layers(tmp_path / "alone")


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
    with pytest.raises(EncodingError, match="a worker made the encoder 'another', the driver has 'traced'"):
        encoded(tmp_path, Stopped(9, 60), made=other)


def test_text_is_read_by_several_to_the_same_bits(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("\n".join(s.text for s in text(60 + i).sentences), encoding="utf-8")
    words = [
        "dataset=text",
        f"dataset.path={tmp_path}",
        "dataset.stream=true",
        "words.max_contexts=9",
        "words.max_sentences=20",
    ]
    engines: Any = ([], ["engine=local", "engine.processes=2"])
    one, two = (Experiment(configured("bert", options=[*words, *engine], min_contexts=2)).corpus for engine in engines)
    assert one.content == two.content
    assert one.bound is not None
    assert two.bound is not None
    assert one.bound.text_sentences == two.bound.text_sentences == 246


JOBLIB = """
from functools import partial
import joblib
from ctxexp.engines import Local

def job(n):
    return sorted(Local(processes=2).map_unordered(partial(partial, pow, 2), range(n)))

if __name__ == "__main__":
    print(joblib.Parallel(n_jobs=2)(joblib.delayed(job)(n) for n in (3, 4)))
"""


def test_jobs_of_a_parallel_sweep_have_workers(tmp_path: Path) -> None:
    """joblib's processes have a start method of their own, which the workers' new processes didn't know."""
    (tmp_path / "script.py").write_text(JOBLIB)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.stdout == "[[1, 2, 4], [1, 2, 4, 8]]\n", done.stderr[-2000:]
