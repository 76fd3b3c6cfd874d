"""A sink's key and a signed address, with odd characters: used where a reference leads to it, refused in clear, and
written or printed nowhere."""

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
import json
import os
from pathlib import Path
from urllib.parse import quote
import ctxexp

class Watch(ctxexp.Sink):
    secrets = ("pin",)
    def __init__(self, *, pin=""):
        self.pin = pin
    def log(self, results, folder):
        Path(os.environ["RECEIVED"]).write_text(self.pin)

class Leaky(Watch):
    # It quotes its key in a link and, where it is told a form, in an error.
    def __init__(self, *, pin="", form="none"):
        self.pin, self.form = pin, form
    def log(self, results, folder):
        Path(os.environ["RECEIVED"]).write_text(self.pin)
        if self.form != "none":
            raise ValueError(FORMS[self.form](self.pin))
    def metadata(self):
        return {"link": f"https://host/runs?id={self.pin}"}

FORMS = {
    "plain": str,
    "glued": "no such key{}_v2".format,
    "Python": lambda key: f"no such key: {dict(pin=key)}",
    "JSON": lambda key: json.dumps({"pin": key}),
    "URL": lambda key: f"https://host/?pin={quote(key, safe='')}",
    "cut": lambda key: f"no such key: {key}"[:-3] + "...",
    "folded": lambda key: key.replace(" ", "\\n  "),
}

@ctxexp.hookimpl
def register_sinks(register):
    register("watch", Watch)
    register("leaky", Leaky)
"""
YAML = "# @package _global_\nsink:\n  leaky:\n    name: leaky\n    form: Python\n    pin: ${oc.env:MYKEY}\n"
RUN = ["plugins=[watch.py]", "dataset=text", "dataset.path=text.txt", "model=word_vectors", "model.path=vectors.txt"]
RUN += ["metric=word_norm", "min_contexts=2", "cache.folder=cache", "sink=watch"]
LEAKY = ["sink=leaky", "sink.leaky.pin=${{oc.env:MYKEY}}"]
MINE = ["sink=none", "experiment=mine"]
PLACES: dict[str, tuple[list[str], list[str], bool]] = {  # flags and words of a command line, and whether it runs
    "a reference": ([], ["sink.watch.pin=${{oc.env:MYKEY}}"], True),
    "a reference of a sweep": (["-m"], ["seed=0,1", "sink.watch.pin=${{oc.env:MYKEY}}"], True),
    "a reference that is shown": (["--cfg", "job", "--resolve"], ["sink.watch.pin=${{oc.env:MYKEY}}"], False),
    "an argument": ([], ["sink.watch.pin={}"], False),
    "an argument of a sweep": (["-m"], ["seed=0,1", "sink.watch.pin={}"], False),
    "an argument that is forced": ([], ["++sink.watch.pin={}"], False),
    "an argument that is there": ([], ["+sink.watch.pin={}"], False),
    "an argument beside a mistake": ([], ["sink.watch.pin={}", "seed=much"], False),
    "an argument of another sink": ([], ["sink.watcher.pin={}"], False),
    "a config that is shown": (["--cfg", "job"], ["sink.watch.pin={}"], False),
    "a signed address": ([], ["dataset.path=https://host/a.txt?sig={}"], False),
    "an address with a password": ([], ["dataset.path=https://me:{}@host/a.txt"], False),
    "a tracking store": ([], ["sink=mlflow", "sink.mlflow.uri=http://me:{}@127.0.0.1:9"], False),
    "an argument behind -m": ([], ["-m", "seed=0,1", "sink.watch.pin={}"], False),
    "an argument beside an unknown flag": ([], ["--hlep", "sink.watch.pin={}"], False),
    "an argument in place of a flag's value": ([], ["--info", "sink.watch.pin={}"], False),
    "an argument beside --help": ([], ["sink.watch.pin={}", "--help"], False),
    "a link": ([], LEAKY, True),
    "an error": ([], [*LEAKY, "sink.leaky.form=plain"], False),
    "an error beside MLflow": ([], [*LEAKY, "sink=[mlflow,leaky]", "sink.leaky.form=plain"], False),
    "an error of workers": (["-m"], [*LEAKY, "sink.leaky.form=plain", "seed=0,1", "hydra/launcher=joblib"], False),
    "an error, glued": ([], [*LEAKY, "sink.leaky.form=glued"], False),
    "an error, as Python": ([], [*LEAKY, "sink.leaky.form=Python"], False),
    "an error, as JSON": ([], [*LEAKY, "sink.leaky.form=JSON"], False),
    "an error, in a URL": ([], [*LEAKY, "sink.leaky.form=URL"], False),
    "an error, cut": ([], [*LEAKY, "sink.leaky.form=cut"], False),
    "an error, folded": ([], [*LEAKY, "sink.leaky.form=folded"], False),
    "an error of a YAML": (["--config-dir=configs"], MINE, False),
    "a YAML that is shown": (["--config-dir=configs", "--cfg", "job", "--resolve"], MINE, False),
    "conform": (["conform"], ["watch", "pin={}"], False),
    "conform with an error": (["conform"], ["leaky", "form=plain", "pin=${{oc.env:MYKEY}}"], False),
}
LETTERS = "abcXYZ019"
ODD = "$!*~+.;{}()[]|^% "
QUOTES = "'\"\\/<&é\t"  # of a variable of the environment, which no grammar reads


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each place in turn; secrets in addresses are of letters alone, as they'd be quoted."""
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        name = list(PLACES)[place % len(PLACES)]
        words = PLACES[name][1]
        of_environment = not any("{}" in word for word in words)
        odd = "" if any("://" in word for word in words) else ODD + (QUOTES if of_environment else "")
        secret = "hunter22" + "".join(rng.choice(list(LETTERS + odd), 8)) + "q"
        yield f"{name}: {secret}", partial(tried, name, secret, folder / str(place))


def tried(name: str, secret: str, folder: Path) -> None:
    """Types the command in a folder of its own, and looks for the secret in all that is there afterwards."""
    folder.mkdir()
    (folder / "vectors.txt").write_text("bank 1 0\nriver 0 1\nmoney 1 1\n")
    (folder / "text.txt").write_text("bank river money\nmoney bank river\nriver money bank\n")
    (folder / "watch.py").write_text(PLUGIN)
    received = folder.with_suffix(".received")
    (folder / "configs" / "experiment").mkdir(parents=True)
    (folder / "configs" / "experiment" / "mine.yaml").write_text(YAML)
    flags, words, runs = PLACES[name]
    common = (
        RUN[:1]
        if flags == ["conform"] or "--help" in words
        else RUN[:-1]
        if any(word.startswith("sink=") for word in words)
        else RUN
    )
    done = subprocess.run(
        [sys.executable, "-m", "ctxexp", *flags, *common, *(word.format(secret) for word in words)],
        cwd=folder,
        env={**os.environ, "RECEIVED": str(received), "MYKEY": secret, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"},
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
        raise ConfigError(printed.strip().splitlines()[-1])
