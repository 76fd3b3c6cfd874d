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

pytest.importorskip("ray", reason="Ray isn't installed: pip install -e plugins/ctxexp-ray")
pytest.importorskip("ctxexp_one_pass", reason="one pass isn't installed: pip install -e plugins/ctxexp-one-pass")

from ctxexp_one_pass.dealt import deal
from ctxexp_ray.engine import Ray

from ctxexp.engine import Engine
from ctxexp.engines.local import Local
from ctxexp.measuring.one_pass.measurer import Dealing
from ctxexp.metrics.anisotropy import Anisotropy
from ctxexp.metrics.self_similarity import SelfSimilarity
from ctxexp.progress import Silent
from ctxexp.results import Results
from ctxexp.study import Study, Vectors, Words
from ctxexp.testing.traced import Traced, seen, text
from ctxexp.vectors.shards import Crew

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def measured(folder: Path, engine: Engine, encoder: Traced | None = None) -> Results:
    """120 sentences in 12 shards."""
    folder.mkdir(exist_ok=True)
    dealt = deal(text(), Dealing(shards=12, form=Words().form, min_contexts=5), Local(), Silent())
    metrics = {"anisotropy": Anisotropy, "self_similarity": SelfSimilarity}
    study = Study(corpus=dealt, encoder=encoder or Traced(folder), metrics=metrics, bootstrap=100, explorer=0)
    return study.run(Vectors(cache=folder, batch_tokens=20, crew=Crew(engine)), folder=folder)


def test_numbers_are_those_of_one_process_though_an_actor_dies(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", Local())
    found = measured(tmp_path / "ray", Ray())
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert set(seen(tmp_path / "ray").values()) == {1}
    killed = tmp_path / "killed"
    found = measured(killed, Ray(), Traced(killed, deadly=text().sentences[50].text))
    assert (killed / "dead").exists()
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert sum(n - 1 for n in seen(killed).values()) <= 10  # of the shard that the killed actor was at


DRIVER = """
import sys
from pathlib import Path
from test_ray_one_pass import Ray, Traced, measured
folder = Path(sys.argv[1])
measured(folder, Ray(), Traced(folder, seconds=float(sys.argv[2])))
"""


def test_a_killed_driver_s_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
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
    kept, before = len(list(folder.glob("sums-*/[0-9][0-9][0-9][0-9].npz"))), seen(folder)
    assert kept < 12
    found = measured(folder, Ray())
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert found.info.encoded == 10 * (12 - kept)
    assert sum(seen(folder).values()) == sum(before.values()) + found.info.encoded
