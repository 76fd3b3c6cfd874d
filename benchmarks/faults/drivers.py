"""Commands with two workers that are ended at a drawn moment: nothing that they began is left some seconds later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil

from . import Lost

PATIENCE = 45.0  # seconds in which all must have ended: jobs have 20 to settle once their driver is gone
AGENT_PATIENCE = 150.0  # Ray's own agents, no workers of ours, look every so often whether their node is there
AGENTS = ("ray::RuntimeEnvAgent", "ray::DashboardAgent")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

SLOW = """
import time
import numpy as np
import ctxexp

class Slow(ctxexp.Encoder):
    name, n_layers, dim = "slow", 2, 3
    def encode(self, batch):
        for s in batch:
            time.sleep(0.02)
            yield ctxexp.EncodedSentence(s.words, np.ones((2, len(s), 3), np.float32))

@ctxexp.hookimpl
def register_models(register):
    register("slow", Slow)
"""
COMMAND = ("plugins=[slow.py]", "model=slow", "dataset=text", "dataset.path=text.txt", "metric=[self_similarity]",
           "bootstrap=0", "min_contexts=2", "tracking.folder=runs")  # fmt: skip
WAYS = {  # how it is typed, and what there is as many of as are at work
    "a sweep with two jobs at once": (
        ("-m", "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
        "runs/results/*/*/status.json",
    ),
    "the command under Ray": (
        ("engine=ray", "engine.workers=2", "engine.shard_tokens=60"),
        "cache/**/shards-*/0*",
    ),
}


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each way in turn, with two workers at work, then one, then none; signal and moment are drawn."""
    for number in range(count):
        rng, how = np.random.default_rng([seed, number]), [*WAYS][number % len(WAYS)]
        signum = SIGNALS[int(rng.integers(len(SIGNALS)))]
        wanted, moment = 2 - number // len(WAYS) % 3, float(rng.random())
        name = f"{how}: {signum.name}, {wanted} at work, {moment:.2f}"
        yield name, partial(try_case, how, signum, wanted, moment, folder / str(number))


def try_case(how: str, signum: signal.Signals, wanted: int, moment: float, folder: Path) -> None:
    """Start a command, end it, and wait for what it began."""
    folder.mkdir()
    if how == "the command under Ray" and find_spec("ray") is None:
        raise unittest.SkipTest("Ray is not installed")
    args, at_work = WAYS[how]
    driver = start(args, folder)
    offspring: set[psutil.Process] = set()
    try:
        reach(at_work, wanted, moment, driver, folder, offspring)
        offspring |= family(driver.pid)
        driver.send_signal(signum)
        driver.wait(PATIENCE)
        ended(driver.pid, offspring, PATIENCE, (folder / "said").read_text(errors="replace"))
    except subprocess.TimeoutExpired:
        raise Lost(f"the driver itself is there {PATIENCE:.0f} s after {signum.name}") from None
    finally:
        for process in {*offspring, *family(driver.pid)}:
            with suppress(psutil.Error):
                process.kill()
        driver.kill()
        driver.wait()


def start(args: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """The command, the first of a process group of its own."""
    rng = np.random.default_rng(0)
    words = ["the", "river", "bank", "of", "money", "was", "light", "and", "old"]
    (folder / "text.txt").write_text("\n".join(" ".join(rng.choice(words, 8)) for _ in range(3000)))
    (folder / "slow.py").write_text(SLOW)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "CTXEXP_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "ctxexp", *args, *COMMAND],
            cwd=folder,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=heed,  # one thread
        )


def heed() -> None:
    """Have signals end the process: a bench in the background of a shell, or under nohup, hands on that they don't."""
    for number in SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)


def reach(
    at_work: str,
    wanted: int,
    moment: float,
    driver: subprocess.Popen[bytes],
    folder: Path,
    offspring: set[psutil.Process],
) -> None:
    """Wait until so many workers are at work, and a little longer; some seconds where none has to be."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if len(list(folder.glob(at_work))) >= wanted or driver.poll() is not None:
            break
        offspring |= family(driver.pid)
        time.sleep(0.02)
    else:
        raise RuntimeError(f"no {wanted} workers got to work: {(folder / 'said').read_text(errors='replace')[-1500:]}")
    time.sleep(moment * (1 if wanted else 20))
    if driver.poll() is not None:
        said = (folder / "said").read_text(errors="replace")
        raise RuntimeError(f"the driver ended before it could be ended: {said[-1500:]}")


def family(pid: int) -> set[psutil.Process]:
    """All processes that it has begun, and those that they have."""
    with suppress(psutil.Error):
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def ended(group: int, offspring: set[psutil.Process], patience: float, said: str) -> None:
    """Raise Lost unless all of the group and of the family end in time."""
    began = time.monotonic()
    while alive := [one for one in offspring | members(group) if is_alive(one)]:
        waited = time.monotonic() - began
        if waited > AGENT_PATIENCE or (waited > patience and not all(is_agent(one) for one in alive)):
            lines = [" ".join(one.cmdline())[:200] for one in alive if one.is_running()]
            raise Lost(f"{len(alive)} processes went on without their driver: {lines}; {said[-500:]}")
        time.sleep(0.05)


def is_agent(process: psutil.Process) -> bool:
    """Whether the process is one of Ray's own agents, or has just ended."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline()).startswith(AGENTS)
    return True


def members(group: int) -> set[psutil.Process]:
    """The processes of the group that are there."""
    found = set()
    for one in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getpgid(one.pid) == group:
                found.add(one)
    return found


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
