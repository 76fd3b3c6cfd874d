"""One pass by Ray's actors: the numbers of one process, though an actor is killed in the middle, or the driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")

from ctxexp_scale.ray.engine import RayEngine

from ctxexp import Engine, Results
from ctxexp.command import Progress
from ctxexp.datasets.shards import ShardOptions, shard_text
from ctxexp.measuring.one_pass import OnePass
from ctxexp.vectors.encoding import EncodingWorkers
from ctxexp.vectors.stores import Vectors
from tests.shipped import Anisotropy, Local, SelfSimilarity
from tests.traced import TracingEncoder, encoding_counts, text

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


def measured(folder: Path, engine: Engine, encoder: TracingEncoder | None = None) -> Results:
    """120 sentences in 12 shards."""
    folder.mkdir(exist_ok=True)
    options = ShardOptions(shards=12, form=str, min_contexts=5)
    corpus = shard_text(text(), options, Local(), Progress.of(None))
    metrics = {"anisotropy": Anisotropy, "self_similarity": SelfSimilarity}
    study = OnePass(corpus=corpus, encoder=encoder or TracingEncoder(folder), metrics=metrics, bootstrap=100)
    return study.run(Vectors(cache=folder, batch_tokens=20, workers=EncodingWorkers(engine)), folder=folder)


def test_numbers_are_those_of_one_process_though_an_actor_dies(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", Local())
    found = measured(tmp_path / "ray", RayEngine())
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert set(encoding_counts(tmp_path / "ray").values()) == {1}
    killed = tmp_path / "killed"
    found = measured(killed, RayEngine(), TracingEncoder(killed, deadly=text().sentences[50].text))
    assert (killed / "dead").exists()
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert sum(n - 1 for n in encoding_counts(killed).values()) <= 10  # of the shard that the killed actor was at


DRIVER = """
import sys
from pathlib import Path
from test_ray_one_pass import RayEngine, TracingEncoder, measured
folder = Path(sys.argv[1])
measured(folder, RayEngine(), TracingEncoder(folder, seconds=float(sys.argv[2])))
"""


def test_a_killed_drivers_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", Local())
    folder = tmp_path / "killed"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(folder), "0.2"], env={**os.environ})
    done: list[Path] = []
    while len(done) < 3:
        time.sleep(0.05)
        assert driver.poll() is None, "the driver ended before it could be killed"
        done = list(folder.glob("sums-*/[0-9][0-9][0-9][0-9].npz"))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    time.sleep(3)  # Ray's processes end with their driver
    kept, before = len(list(folder.glob("sums-*/[0-9][0-9][0-9][0-9].npz"))), encoding_counts(folder)
    assert kept < 12
    found = measured(folder, RayEngine())
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert found.info.encoded == 10 * (12 - kept)
    assert sum(encoding_counts(folder).values()) == sum(before.values()) + found.info.encoded
