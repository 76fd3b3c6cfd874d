"""A sink's key and a signed address, given in every place and with odd characters: used, and written or printed
nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.errors import ConfigError

from . import Lost, Silent

PLUGIN = """
import os
from pathlib import Path
import ctxexp

class Watch(ctxexp.Sink):
    secrets = ("pin",)
    def __init__(self, *, pin=""):
        self.pin = pin
    def log(self, results, folder):
        Path(os.environ["RECEIVED"]).write_text(self.pin)

@ctxexp.hookimpl
def register_sinks(register):
    register("watch", Watch)
"""
RUN = ["plugins=[watch.py]", "dataset=text", "dataset.path=text.txt", "model=word_vectors", "model.path=vectors.txt"]
RUN += ["metric=word_norm", "min_contexts=2", "cache.folder=cache", "sink=watch"]
PLACES: dict[str, tuple[list[str], list[str], bool]] = {  # flags and words of a command line, and whether it runs
    "an argument": ([], ["sink.watch.pin={}"], True),
    "an argument of a sweep": (["-m"], ["seed=0,1", "sink.watch.pin={}"], True),
    "an argument that is forced": ([], ["++sink.watch.pin={}"], True),
    "an argument that is there": ([], ["+sink.watch.pin={}"], False),
    "an argument beside a mistake": ([], ["sink.watch.pin={}", "seed=much"], False),
    "an argument of another sink": ([], ["sink.watcher.pin={}"], False),
    "a config that is shown": (["--cfg", "job"], ["sink.watch.pin={}"], False),
    "a signed address": ([], ["dataset.path=https://host/a.txt?sig={}"], False),
    "an address with a password": ([], ["dataset.path=https://me:{}@host/a.txt"], False),
    "a tracking store": ([], ["sink=mlflow", "sink.mlflow.uri=http://me:{}@127.0.0.1:9"], False),
}
LETTERS = "abcXYZ019"
ODD = "$!*~+.;{}()[]|^% "


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each place in turn; secrets in addresses are of letters alone, as they'd be quoted."""
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        name = list(PLACES)[place % len(PLACES)]
        odd = "" if any("://" in word for word in PLACES[name][1]) else ODD
        secret = "hunter22" + "".join(rng.choice(list(LETTERS + odd), 8)) + "q"
        yield f"{name}: {secret}", partial(tried, name, secret, folder / str(place))


def tried(name: str, secret: str, folder: Path) -> None:
    """Types the command in a folder of its own, and looks for the secret in all that is there afterwards."""
    folder.mkdir()
    (folder / "vectors.txt").write_text("bank 1 0\nriver 0 1\nmoney 1 1\n")
    (folder / "text.txt").write_text("bank river money\nmoney bank river\nriver money bank\n")
    (folder / "watch.py").write_text(PLUGIN)
    received = folder.with_suffix(".received")
    flags, words, runs = PLACES[name]
    done = subprocess.run(
        [sys.executable, "-m", "ctxexp", *flags, *RUN, *(word.format(secret) for word in words)],
        cwd=folder,
        env={**os.environ, "RECEIVED": str(received)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout + done.stderr
    if "Traceback" in printed:
        raise RuntimeError(printed[-2000:])
    if "hunter22" in printed:
        raise Silent(f"printed: {printed[-500:]}")
    for path in folder.rglob("*"):
        if "hunter22" in str(path) or (path.is_file() and b"hunter22" in path.read_bytes()):
            raise Silent(f"written to {path}")
    if runs and (done.returncode or received.read_text() != secret):
        raise Lost(f"the sink didn't get it: {printed[-500:]}")
    if done.returncode and not runs:
        raise ConfigError(done.stderr.strip().splitlines()[-1])
