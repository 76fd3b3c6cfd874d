"""A disk that is full at any moment of a sweep: one line that says so, nothing half-made, and resuming completes it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import runpy
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ctxexp import Results

from . import Lost, Silent

TOY = """
import zlib
import numpy as np
from ctxexp import EncodedSentence, Encoder, hookimpl

class Toy(Encoder):
    n_layers, dim = 3, 16
    def __init__(self, seed: int = 0) -> None:
        self.name, self.seed = f"toy {seed}", seed
    def encode(self, batch):
        for s in batch:
            rng = np.random.default_rng(zlib.crc32(f"{self.seed} {s.text}".encode()))
            yield EncodedSentence(s.words, rng.normal(size=(3, len(s), 16)).astype(np.float32))

@hookimpl
def register_models(register):
    register("toy", Toy)
"""
FILLER = "filler"
WORDS = ["river", "bank", "money", "water", "house", "days", "seven", "under"]
POINTS = (
    "mlflow.db",
    "hydra/*/*/multirun.yaml",
    "results/*/000*/environment.json",
    "results/*/000*/run.json",
    "vectors/tmp-*/layer_00.npy",
    "vectors/*/meta.json",
    "results/*/000*/self_similarity.csv",
    "results/*/000*/results.json",
    "results/*/000*/figures/*.svg",
    "artifacts/*/artifacts/results.json",
    "results/*/001*/figures/*.svg",
    "results/*/summary/overview.svg",
    "results/*/summary/report.html",
)
"""Files at whose appearance the disk gets full."""


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each point in turn; a drawn number of bytes, from none to 200 kB, still fits."""
    reference = functools.cache(lambda: Sweep(folder))
    for number in range(count):
        point = POINTS[number % len(POINTS)]
        left = int(np.random.default_rng([seed, number]).choice([0, 4096, 20_000, 200_000]))
        yield f"full at {point}, but for {left:,} bytes", functools.partial(try_case, reference, point, left)


def try_case(reference: Callable[[], Sweep], point: str, left: int) -> None:
    """Fills the disk when the point comes, and has the same command complete it afterwards."""
    sweep = reference()
    with disk(sweep.folder / "disk") as folder:
        shutil.copy(sweep.store, folder / "mlflow.db")
        status, said = sweep.run(folder, full_at=point, left=left)
        with contextlib.suppress(FileNotFoundError):
            (folder / FILLER).unlink()
        check(folder, status, said)
        status, said = sweep.run(folder, "resume=true")
        if status:
            raise Lost(f"resuming failed:\n{said}")
        if values(folder) != sweep.values:
            raise Lost(f"after resuming, other values or fewer:\n{said}")
        check_nothing_left(folder)
        with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as store:
            if running := store.execute("SELECT name FROM runs WHERE status = 'RUNNING'").fetchall():
                raise Lost(f"still RUNNING: {running}")


def check(folder: Path, status: int, said: str) -> None:
    """What a full disk may do to a command."""
    if "Traceback" in said or "Error in sys.excepthook" in said:
        raise RuntimeError(said)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if not status:
        raise Silent(f"exit status 0:\n{said}")
    if not any(re.search("full|No space left|disk I/O error", line) for line in errors):
        raise Silent(f"exit status {status} without a word about the disk:\n{said}")
    if not any(str(folder) in line for line in errors):
        raise Silent(f"which disk?\n{said}")
    check_nothing_left(folder)


def check_nothing_left(folder: Path) -> None:
    patterns = ("**/*.part", "**/*.tmp*", "vectors/tmp-*")
    if found := [str(path) for pattern in patterns for path in folder.glob(pattern)]:
        raise Lost(f"left behind: {found}")


def values(folder: Path) -> dict[str, str]:
    """The frames of the last sweep's jobs, by label."""
    jobs = json.loads(max(folder.glob("results/*/summary/jobs.json"), key=os.path.getmtime).read_text())
    return {j["label"]: Results.load(Path(j["results"])).frame.to_csv() for j in jobs if j["status"] == "FINISHED"}


class Sweep:
    """A sweep of two jobs, which has run undisturbed once."""

    def __init__(self, folder: Path) -> None:
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
        import plotly.offline  # noqa: F401  # with MLflow what takes longest: the runs' processes are forks of this one

        self.folder = folder
        (folder / "toy.py").write_text(TOY)
        rng = np.random.default_rng(0)
        lines = (" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(60))
        (folder / "text.txt").write_text("\n".join(lines) + "\n")
        with disk(folder / "disk") as mount:
            status, said = self.run(mount)
            if status:
                raise RuntimeError(f"the undisturbed sweep failed:\n{said}")
            self.values = values(mount)
            self.store = folder / "mlflow.db"
            with contextlib.closing(sqlite3.connect(mount / "mlflow.db")) as store:
                store.execute("VACUUM INTO ?", [str(self.store)])

    def run(self, folder: Path, *more: str, full_at: str = "", left: int = 0) -> tuple[int, str]:
        """Exit status of the command with all that it said; the disk gets full at the file `full_at`."""
        words = [
            "-m", f"plugins=[{self.folder / 'toy.py'}]", "model=toy", "model.seed=0,1", "dataset=text",
            f"dataset.path={self.folder / 'text.txt'}", "min_contexts=2", "bootstrap=10", "baseline.size=20",
            "metric=self_similarity", f"cache.folder={folder / 'vectors'}", f"tracking.folder={folder}", *more,
        ]  # fmt: skip
        said = self.folder / "said.txt"
        pid = os.fork()
        if not pid:
            command(words, said)
        ended = (0, 0)
        while ended == (0, 0):
            if full_at and any(folder.glob(full_at)):
                fill(folder, left)
                full_at = ""
            time.sleep(0.001)
            ended = os.waitpid(pid, os.WNOHANG)
        if full_at:
            raise RuntimeError(f"{full_at} never came:\n{said.read_text()}")
        return os.waitstatus_to_exitcode(ended[1]), said.read_text()


def command(words: list[str], said: Path) -> None:
    """Be the command: its words go to the file."""
    status = 70
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        sys.argv = ["ctxexp", *words]
        runpy.run_module("ctxexp", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    finally:
        sys.stdout.flush()
        os._exit(status)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A disk of 32 MB at the folder."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=32m", "ctxexp-faults", str(folder)]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True).returncode:
        raise unittest.SkipTest("no tmpfs can be mounted here: it needs Linux and its root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, left: int) -> None:
    """Take all of the disk but so many bytes; as often as the command itself takes some of them meanwhile."""
    with (folder / FILLER).open("wb", buffering=0) as file:
        for _ in range(100):
            free = os.statvfs(folder)
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - left))
                return
            except OSError:
                continue
    raise RuntimeError("the disk could not be filled")
