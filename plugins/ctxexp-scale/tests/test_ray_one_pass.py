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

from ctxexp import Results
from ctxexp.command import Experiment, configured
from tests.traced import TracingEncoder, encoding_counts, numbered_corpus, wait_for_end

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


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


DRIVER = """
import runpy
import sys
from pathlib import Path
from tests.traced import TracingEncoder
folder = Path(sys.argv[2])
runpy.run_path(sys.argv[1])["measured"](folder, "ray", TracingEncoder(folder, seconds=float(sys.argv[3])))
"""


def test_a_killed_drivers_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    alone = measured(tmp_path / "alone", "local")
    folder = tmp_path / "killed"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, __file__, str(folder), "0.2"], env={**os.environ})
    done: list[Path] = []
    while len(done) < 3:
        time.sleep(0.05)
        assert driver.poll() is None, "the driver ended before it could be killed"
        done = list(folder.glob("sums-*/[0-9][0-9][0-9][0-9].npz"))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    wait_for_end([int(path.stem.partition("-")[2]) for path in folder.glob("seen-*.txt")])
    kept, before = len(list(folder.glob("sums-*/[0-9][0-9][0-9][0-9].npz"))), encoding_counts(folder)
    assert kept < 12
    found = measured(folder, "local")  # any engine goes on with what another one did
    np.testing.assert_array_equal(found.frame[["value", "low", "high"]], alone.frame[["value", "low", "high"]])
    assert found.info.encoded == 10 * (12 - kept)
    assert sum(encoding_counts(folder).values()) == sum(before.values()) + found.info.encoded
