"""Ray's actors as a pool: begun with the first that is ready, and no item that kills its worker is tried for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray isn't installed: pip install 'ctxexp-scale[ray]'")

from ctxexp_scale.ray.engine import RayEngine

from ctxexp import CtxexpError
from ctxexp.errors import ConfigError
from tests.traced import numbered_corpus, wait_for_end

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cluster")]  # warnings of Ray's own


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
    workers: list[int] = []
    while len(workers) < 2:
        time.sleep(0.05)
        assert driver.poll() is None, (tmp_path / "said").read_text()
        workers = [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("at-work-*")]
    driver.terminate()
    assert driver.wait(60) == 128 + signal.SIGTERM, (tmp_path / "said").read_text()
    wait_for_end(workers)
    states = [json.loads(path.read_text()) for path in tmp_path.glob("runs/results/**/status.json")]
    assert [state["status"] for state in states] == ["KILLED"]
