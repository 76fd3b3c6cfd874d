"""Ray's actors: the same bits as one process, whoever is killed, nothing done twice but what was in flight, and no item
that kills its worker tried for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")

from ctxexp_scale.ray.engine import RayEngine

from ctxexp import CtxexpError, Results
from ctxexp.command import Experiment, configured
from ctxexp.errors import ConfigError, UnknownName
from tests.traced import TracingEncoder, encoded, encoding_counts, layers, numbered_corpus, wait_for_end

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


def parts_of_a_killed_driver(folder: Path, driver: str, parts: str) -> set[str]:
    """The names of the parts that a driver leaves which is killed once it has made three."""
    process = subprocess.Popen([sys.executable, "-c", driver, str(folder), __file__])
    while len([*folder.glob(parts)]) < 3:
        time.sleep(0.05)
        assert process.poll() is None, "the driver ended before it could be killed"
    process.kill()
    process.wait()
    wait_for_end([int(path.stem.partition("-")[2]) for path in folder.glob("seen-*.txt")])
    return {path.name for path in folder.glob(parts)}


# encoding


def test_ray_repeats_one_processs_vectors_though_a_worker_dies(tmp_path: Path) -> None:
    encoded(tmp_path / "alone", None)
    encoded(tmp_path / "ray", RayEngine(shard_tokens=60))
    assert layers(tmp_path / "ray") == layers(tmp_path / "alone")
    assert set(encoding_counts(tmp_path / "ray").values()) == {1}
    killed = tmp_path / "killed"
    killed.mkdir()
    encoded(killed, RayEngine(shard_tokens=60), TracingEncoder(killed, deadly=numbered_corpus().sentences[50].text))
    assert (killed / "dead").exists()
    assert layers(killed) == layers(tmp_path / "alone")
    twice = [sentence for sentence, n in encoding_counts(killed).items() if n > 1]
    assert len(twice) <= 60  # of the shard that the killed worker was at: sentences of at least a token
    assert set(encoding_counts(killed).values()) <= {1, 2}


def test_text_is_read_by_ray_to_the_same_bits(tmp_path: Path) -> None:
    for i in range(3):
        text = "\n".join(s.text for s in numbered_corpus(60 + i).sentences)
        (tmp_path / f"{i}.txt").write_text(text, encoding="utf-8")
    words = [
        "dataset=text",
        f"dataset.path={tmp_path}",
        "dataset.stream=true",
        "words.max_contexts=9",
        "words.max_sentences=20",
    ]
    one, two = (
        Experiment(configured("bert", options=[*words, *engine], min_contexts=2)).corpus
        for engine in ([], ["engine=ray"])
    )
    assert one.content == two.content


def test_what_workers_raise_is_raised() -> None:
    def make():  # type: ignore[no-untyped-def]
        raise UnknownName("model", "bart", ["bert"])

    with pytest.raises(UnknownName, match="no model 'bart'; did you mean 'bert'"):
        list(RayEngine().map_unordered(make, [1]))
    with pytest.raises(ConfigError, match="expected at least 2 workers"):
        RayEngine(workers=1)


SHARDS = f"shards-*/{'?' * 6}-{'?' * 16}.npz"  # those that are whole
DRIVER = """
import sys
from pathlib import Path
from tests.traced import TracingEncoder, encoded
from ctxexp_scale.ray.engine import RayEngine
folder = Path(sys.argv[1])
encoded(folder, RayEngine(shard_tokens=60), TracingEncoder(folder, seconds=0.25))
"""


def test_a_killed_drivers_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    kept = parts_of_a_killed_driver(tmp_path, DRIVER, SHARDS)
    assert len(kept) < 10
    before = encoding_counts(tmp_path)
    whole = Counter(line for name in kept for line in _sentences(tmp_path, name))
    encoded(tmp_path, RayEngine(shard_tokens=60))
    encoded(tmp_path.parent / "alone", None)
    assert layers(tmp_path) == layers(tmp_path.parent / "alone")
    after = encoding_counts(tmp_path)
    assert all(after[sentence] == before[sentence] for sentence in whole)  # finished shards weren't touched
    twice = sum(n - 1 for n in after.values())
    assert twice == sum(before.values()) - sum(whole.values())  # all else that was begun, and nothing more
    assert len(after) == 120


def _sentences(cache: Path, shard: str) -> list[str]:
    """The sentences of a shard: each has its number as a word of its own."""
    (path,) = cache.glob(f"shards-*/{shard}")
    with np.load(path) as arrays:
        found = [json.loads(str(arrays[name])) for name in arrays.files if name.startswith("units/")]
    numbers = {units[-1] for batch in found for units in batch}
    return [s.text for s in numbered_corpus().sentences if s.words[-1] in numbers]


# one pass


def measured(folder: Path, engine: str, encoder: TracingEncoder | None = None) -> Results:
    """120 sentences in 12 shards."""
    folder.mkdir(exist_ok=True)
    options = ["one_pass.shards=12", f"engine={engine}", "batch_tokens=20", "bootstrap=100", f"cache.folder={folder}"]
    metrics = ["anisotropy", "self_similarity"]
    model = encoder or TracingEncoder(folder)
    return Experiment(configured(model, numbered_corpus(), options, metrics=metrics)).run(folder)


def test_numbers_are_those_of_one_process_though_an_actor_dies(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", "local")
    killed = tmp_path / "killed"
    found = measured(killed, "ray", TracingEncoder(killed, deadly=numbered_corpus().sentences[50].text))
    assert (killed / "dead").exists()
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert sum(n - 1 for n in encoding_counts(killed).values()) <= 10  # of the shard that the killed actor was at


MEASURING = """
import runpy
import sys
from pathlib import Path
from tests.traced import TracingEncoder
folder = Path(sys.argv[1])
runpy.run_path(sys.argv[2])["measured"](folder, "ray", TracingEncoder(folder, seconds=0.2))
"""


def test_a_killed_drivers_sums_are_gone_on_with(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", "local")
    folder = tmp_path / "killed"
    kept = len(parts_of_a_killed_driver(folder, MEASURING, "sums-*/[0-9][0-9][0-9][0-9].npz"))
    before = encoding_counts(folder)
    assert kept < 12
    found = measured(folder, "local")  # any engine goes on with what another one did
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert found.info.encoded == 10 * (12 - kept)
    assert sum(encoding_counts(folder).values()) == sum(before.values()) + found.info.encoded


# a pool


def work(folder: Path, *deadly: int):  # type: ignore[no-untyped-def]
    """Defined by value, so that workers need no module of these tests."""

    def make():  # type: ignore[no-untyped-def]
        def do(item: int) -> int:
            with (folder / f"{os.getpid()}.txt").open("a") as file:
                file.write(f"{item}\n")
            if item in deadly:
                os._exit(9)
            return item

        return do

    return make


def tried(folder: Path) -> Counter[int]:
    return Counter(int(line) for file in folder.glob("*.txt") for line in file.read_text().split())


def test_a_deadly_item_is_tried_thrice_at_most_and_named(tmp_path: Path) -> None:
    """No other item is blamed for it, or tried twice."""
    done = []
    with pytest.raises(CtxexpError, match=r"engine ray: a worker died at item 5, .* the same command goes on"):
        done.extend(RayEngine().map_unordered(work(tmp_path, 5), range(12)))
    counts = tried(tmp_path)
    assert counts.pop(5) in (2, 3)  # Ray may spend a try on the worker that has just died
    assert set(counts.values()) == {1}
    assert 5 not in done


def test_a_worker_s_environment_is_the_config_s(tmp_path: Path) -> None:
    def make():  # type: ignore[no-untyped-def]
        return lambda item: os.environ["CTXEXP_TRIED"] + str(item)

    engine = RayEngine(runtime_env={"env_vars": {"CTXEXP_TRIED": "yes"}})
    assert sorted(engine.map_unordered(make, [1, 2])) == ["yes1", "yes2"]
    with pytest.raises(ConfigError, match="max_restarts of at least -1; got workers=2"):
        RayEngine(max_restarts=-2)


COMMAND = [
    *("engine=ray", "dataset=text", "dataset.path=text.txt", "model=slow", "plugins=[slow.py]", "min_contexts=2"),
    *(
        "engine.shard_tokens=40",
        "cache.folder=vectors",
        "tracking.folder=runs",
        "metric=self_similarity",
        "sink=[mlflow]",
    ),
]
SLOW = """
import os, time
from pathlib import Path
from ctxexp import CtxexpError, Encoder, hookimpl
from tests.traced import TracingEncoder

class Slow(TracingEncoder):
    def __init__(self):
        super().__init__(Path(os.environ["TRACES"]), seconds=600)
        self.name = "slow"
    def encode(self, batch):
        (self.folder / f"at-work-{os.getpid()}").touch()
        return super().encode(batch)

@hookimpl
def register_models(register):
    register("slow", Slow)
"""


def test_workers_end_with_their_driver(tmp_path: Path) -> None:
    """Also the exit status of a driver that is asked to end, and what its job's folder says."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "text.txt").write_text("\n".join(one.text for one in numbered_corpus().sentences))
    env = {**os.environ, "TRACES": str(tmp_path), "CTXEXP_CACHE": str(tmp_path / "cache")}
    env.pop("RAY_ADDRESS", None)
    with (tmp_path / "said").open("w") as said:
        driver = subprocess.Popen(
            [sys.executable, "-m", "ctxexp", *COMMAND], cwd=tmp_path, env=env, stdout=said, stderr=said
        )
    workers = []
    while len(workers) < 2:
        time.sleep(0.05)
        assert driver.poll() is None, (tmp_path / "said").read_text()
        workers = [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("at-work-*")]
    driver.terminate()
    assert driver.wait(60) == 128 + signal.SIGTERM, (tmp_path / "said").read_text()
    wait_for_end(workers)
    states = [json.loads(path.read_text()) for path in tmp_path.glob("runs/results/**/status.json")]
    assert [state["status"] for state in states] == ["KILLED"]
