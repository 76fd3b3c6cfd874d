"""Drivers with two workers that are ended at a drawn moment: nothing that they began is left some seconds later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil

from . import Lost

PATIENCE = 20.0  # seconds in which all must have ended
AGENT_PATIENCE = 150.0  # Ray's own agents, no workers of ours, look every so often whether their node is there
AGENTS = ("ray::RuntimeEnvAgent", "ray::DashboardAgent")
JOB_PATIENCE = 45.0  # of a parallel sweep: its jobs have 20 seconds to settle once their driver is gone
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

DRIVER = """
import os, sys, time
from pathlib import Path
from ctxexp.command import registry

def make():
    return work

def work(item):
    (Path(sys.argv[1]) / str(os.getpid())).touch()
    if {how!r} == "with a child":
        os.fork() or time.sleep(600)
    time.sleep(600)

def drive():
    list(registry().find("engine", "local").factory(processes=2).map_unordered(make, range(8)))

if __name__ == "__main__":
    Path("begun").touch()
    drive()
"""
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
TWO = ("engine=local", "engine.processes=2", "engine.shard_tokens=60")
ENGINES = {
    "the command": TWO,
    "a sweep with two jobs at once": ("-m", "seed=0,1", *TWO, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "the command under Ray": ("engine=ray", "engine.workers=2", "engine.shard_tokens=60"),
}
WAYS = ("wait", "the command", "a stopped worker", "a sweep with two jobs at once", "Ctrl-C for all",
        "the command under Ray")  # fmt: skip


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What workers are at, in turn, two of them, then one, then none; signal and moment are drawn."""
    for place in range(count):
        rng, how = np.random.default_rng([seed, place]), WAYS[place % len(WAYS)]
        number = signal.SIGINT if how == "Ctrl-C for all" else SIGNALS[int(rng.integers(len(SIGNALS)))]
        wanted, moment = 2 - place // len(WAYS) % 3, float(rng.random())
        yield (
            f"{how}: {number.name}, {wanted} at work, {moment:.2f}",
            lambda how=how, number=number, wanted=wanted, moment=moment, own=folder / str(place): try_case(
                how, number, wanted, moment, own
            ),
        )


def try_case(how: str, number: signal.Signals, wanted: int, moment: float, folder: Path) -> None:
    """Start a driver, end it, and wait for what it began."""
    folder.mkdir()
    if how == "the command under Ray" and find_spec("ray") is None:
        raise unittest.SkipTest("Ray is not installed")
    driver = started(how, folder)
    offspring: set[psutil.Process] = set()
    try:
        reach(how, wanted, moment, driver, folder, offspring)
        offspring |= family(driver.pid)
        if how == "a stopped worker":
            for worker in list((folder / "at_work").iterdir())[:1]:
                os.kill(int(worker.name), signal.SIGSTOP)
        if how == "Ctrl-C for all":
            os.killpg(driver.pid, number)
        else:
            driver.send_signal(number)
        patience = JOB_PATIENCE if "two jobs" in how else PATIENCE
        driver.wait(patience)
        ended(driver.pid, offspring, patience, (folder / "said").read_text(errors="replace"))
    except subprocess.TimeoutExpired:
        raise Lost(f"the driver itself is there {patience:.0f} s after {number.name}") from None
    finally:
        for process in {*offspring, *family(driver.pid)}:
            with suppress(psutil.Error):
                process.kill()
        driver.kill()
        driver.wait()


def started(how: str, folder: Path) -> subprocess.Popen[bytes]:
    """The driver, the first of a process group of its own."""
    (folder / "at_work").mkdir()
    if how in ENGINES:
        rng = np.random.default_rng(0)
        words = ["the", "river", "bank", "of", "money", "was", "light", "and", "old"]
        (folder / "text.txt").write_text("\n".join(" ".join(rng.choice(words, 8)) for _ in range(3000)))
        (folder / "slow.py").write_text(SLOW)
        args = ["-m", "ctxexp", *ENGINES[how], *COMMAND]
    else:
        (folder / "driver.py").write_text(DRIVER.format(how=how))
        args = [str(folder / "driver.py"), str(folder / "at_work")]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "CTXEXP_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, *args],
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
    how: str, wanted: int, moment: float, driver: subprocess.Popen[bytes], folder: Path, offspring: set[psutil.Process]
) -> None:
    """Wait until so many workers are at work, and a little longer; some seconds where none has to be.

    Workers of the command are at work when there are as many shards.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        at_work = folder.glob("cache/**/shards-*/0*") if how in ENGINES else (folder / "at_work").iterdir()
        begun = how in ENGINES or (folder / "begun").exists()  # libraries may swallow Ctrl-C while they are imported
        if (begun and len(list(at_work)) >= wanted) or driver.poll() is not None:
            break
        offspring |= family(driver.pid)
        time.sleep(0.02)
    else:
        raise RuntimeError(f"no {wanted} workers got to work: {(folder / 'said').read_text(errors='replace')[-1500:]}")
    time.sleep(moment * (1 if wanted else 20 if how in ENGINES else 6))
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
