"""The Ray engine: the same bits as one process, whoever is killed, and nothing encoded twice but what was in flight."""

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

from ctxexp.command import Experiment, configured
from tests.traced import encoded

pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")

from ctxexp_scale.ray.engine import RayEngine

from ctxexp.errors import ConfigError, UnknownName
from tests.traced import TracingEncoder, encoding_counts, layers, numbered_corpus, wait_for_end

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


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
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], env={**os.environ})
    done: list[Path] = []
    while len(done) < 3:
        time.sleep(0.05)
        assert driver.poll() is None, "the driver ended before it could be killed"
        done = list(tmp_path.glob(SHARDS))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    wait_for_end([int(path.stem.partition("-")[2]) for path in tmp_path.glob("seen-*.txt")])
    kept = {path.name for path in tmp_path.glob(SHARDS)}
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
