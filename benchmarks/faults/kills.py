"""Sweeps that are killed at a drawn moment, then resumed: nothing is lost, nothing differs, nothing is left over."""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import psutil

from ctxexp import Results
from ctxexp.command import registry

from . import Lost, Silent

PROCESSES = multiprocessing.get_context("forkserver")  # real processes that import what is slow once between them
PROCESSES.set_forkserver_preload(
    [
        "mlflow.store.tracking.sqlalchemy_store",
        "alembic.command",
        "ctxexp.command",
        "ctxexp.report",
    ]
)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
METRICS = "metric=self_similarity,anisotropy,word_norm"
JOBS = 3
COMMAND = (
    *("ctxexp", "-m", METRICS, "model=word_vectors", "model.path=vectors.txt", "dataset=text", "dataset.path=text.txt"),
    *("baseline=b100", "bootstrap=20", "min_contexts=2"),
)
WORKERS = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """A signal in turn, at a moment drawn from an undisturbed sweep's duration; every eighth sweep has workers."""
    made = cache(lambda: make(folder))
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        signum, share = SIGNALS[number % len(SIGNALS)], float(rng.random())
        extra = WORKERS if number % 8 == 7 else ()
        name = f"{signum.name} at {share:.0%}{' of a sweep with workers' if extra else ''}"
        yield name, partial(try_case, made, folder / str(number), signum, share, extra)


def make(folder: Path) -> tuple[Path, float, dict[str, Results]]:
    """A folder with a text, vectors and an empty store; an undisturbed sweep's seconds, and its results by label."""
    folder = Path(mkdtemp(dir=folder))  # whoever hangs here is asked again
    template = folder / "place"
    texts(template)
    (template / "mlruns").mkdir()
    registry().find("sink", "mlflow").factory().connect(template / "mlruns")
    quiet = folder / "quiet"
    shutil.copytree(template, quiet)
    run(quiet).join()  # starts what the others are forked from, and fills the cache
    start = time.monotonic()
    child = run(quiet)
    child.join()
    taken = time.monotonic() - start
    if child.exitcode:
        raise Lost(f"the undisturbed sweep failed: {(quiet / 'said').read_text()[-2000:]}")
    return template, taken, compared(quiet)


def texts(folder: Path) -> None:
    """A folder with a text and vectors of its words."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    words = ["bank", "river", "money", "water", "light", "fire", "night", "the", "of", "a", "we", "sat", "on", "was"]
    text = [" ".join(rng.permutation(words)[:6]) for _ in range(60)]
    (folder / "text.txt").write_text("\n".join(text), encoding="utf-8")
    vectors = [f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=8))}" for word in words]
    (folder / "vectors.txt").write_text("\n".join(vectors), encoding="utf-8")


def run(folder: Path, *extra: str, command: Sequence[str] = COMMAND) -> BaseProcess:
    """The command, in a process group of its own, standing in `folder`."""
    child = PROCESSES.Process(target=_command, args=(str(folder), [*command, *extra]))
    child.start()
    return child


def _command(folder: str, argv: list[str]) -> None:
    os.setsid()
    os.chdir(folder)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.environ.update(CTXEXP_CACHE="cache", MPLBACKEND="agg")
    sys.argv = argv
    runpy.run_module("ctxexp", run_name="__main__", alter_sys=True)


def compared(folder: Path) -> dict[str, Results]:
    """The results of the newest sweep's finished jobs, by label."""
    newest = max(folder.glob("mlruns/results/*/summary/jobs.json"))
    rows = [row for row in json.loads(newest.read_text()) if row["status"] == "FINISHED"]
    return {row["label"]: Results.load(Path(row["results"])) for row in rows}


def try_case(
    made: Callable[[], tuple[Path, float, dict[str, Results]]],
    folder: Path,
    signum: int,
    share: float,
    extra: Sequence[str],
) -> None:
    """Starts a sweep, kills it, resumes it, and looks for what is lost, other or left over."""
    template, seconds, expected = made()
    shutil.copytree(template, folder)
    child = run(folder, *extra)
    time.sleep(share * seconds * (2 if extra else 1))
    started = bool(list(folder.glob("mlruns/results/*/*/status.json")))
    alive = child.is_alive()  # else it was faster than the undisturbed one: then all that finished is skipped
    if alive:
        os.kill(child.pid or 0, signum)
    child.join()
    gone(child.pid or 0)
    if alive and started and signum != signal.SIGKILL:
        settled(folder)
    said = folder / "said"
    if signum == signal.SIGINT:  # inside a library it may print one
        said.unlink(missing_ok=True)
    for part in folder.rglob("*.part"):
        os.utime(part, (1, 1))  # as if the sweep were resumed a minute later
    again = run(folder, "resume=true")
    again.join()
    said = said.read_text()
    if again.exitcode:
        raise Lost(f"the resumed sweep ended with {again.exitcode}: {said[-1500:]}")
    if "Traceback (most recent call last)" in said:
        raise RuntimeError(said[said.index("Traceback") :][-3000:])
    settled(folder)
    found = compared(folder)
    if found.keys() != expected.keys() or len(found) != JOBS:
        raise Lost(f"expected {sorted(expected)}, got {sorted(found)}")
    for label, results in found.items():
        for key, curve in expected[label].by_name.items():
            if not np.array_equal(results.by_name[key], curve, equal_nan=True):
                raise Silent(f"{label}: {key} differs from an undisturbed sweep's")
    left = [str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix in (".part", ".tmp")]
    if left:
        raise Lost(f"left over: {left}")
    shutil.rmtree(folder)


def gone(group: int, wait: float = 60) -> None:
    """No process of the group works on; one that ended may stay a zombie until the machine's first process reaps it."""
    deadline = time.monotonic() + wait
    while left := [process for process in psutil.process_iter(["status"]) if in_group(process, group)]:
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            raise Lost(f"processes of the sweep went on without it: {left}")
        time.sleep(0.05)


def in_group(process: psutil.Process, group: int) -> bool:
    """Whether it is of the process group, and has not ended."""
    try:
        return os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE
    except ProcessLookupError:
        return False


def settled(folder: Path) -> None:
    """Neither MLflow nor a file on disk says RUNNING, and the newest sweep has its summary."""
    store = folder / "mlruns"
    with closing(sqlite3.connect(store / "mlflow.db")) as held:
        running = [name for (name,) in held.execute("SELECT name FROM runs WHERE status = 'RUNNING'")]
    states = {path: json.loads(path.read_text()) for path in store.glob("results/*/*/status.json")}
    running += [str(path) for path, state in states.items() if state["status"] == "RUNNING"]
    if running:
        raise Lost(f"still RUNNING: {running}")
    newest = max({path.parent.parent for path in states}, default=None)
    if newest and not (newest / "summary" / "jobs.json").exists():
        raise Lost(f"no summary in {newest}: {(folder / 'said').read_text()[-1500:]}")
