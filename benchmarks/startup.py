"""What a start costs: a run with everything cached, by phase, and what five installed plugins add to `--help`.

`python benchmarks/startup.py`: in CPU seconds and as ratios; runs alternate with what they are held against, and the
least of each counts, since neighbours' load only adds.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLUGIN = '''
"""A plugin with a model."""

import ctxexp


def model{i}(*, path: str = "x", size: int = 3):
    """Vectors of plugin {i}."""


@ctxexp.hookimpl
def register_models(register):
    register("model{i}", model{i})
'''
PATH = os.environ.get("PYTHONPATH", "")
RUNS = 4  # of a cached run; the first of all fills the cache


def install(site: Path, i: int) -> None:
    """A module and the metadata that pip would leave."""
    site.joinpath(f"plugin{i}.py").write_text(PLUGIN.format(i=i), encoding="utf-8")
    info = site / f"plugin{i}-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin{i}\nVersion: 1.0\n", encoding="utf-8")
    info.joinpath("entry_points.txt").write_text(f"[ctxexp]\nplugin{i} = plugin{i}\n", encoding="utf-8")


def seconds(*words: str, **env: str) -> tuple[float, str]:
    """CPU seconds of that Python command, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, **env}, stdout=subprocess.PIPE, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def help_seconds(path: str, expected: int) -> float:
    """CPU seconds of one `--help`, which must list `expected` plugin models."""
    took, said = seconds("-m", "ctxexp", "--help", PYTHONPATH=os.pathsep.join(filter(None, [path, PATH])))
    found = sum(f"model{i}" in said for i in range(5))
    if found != expected:
        raise SystemExit(f"--help lists {found} of the plugins' models instead of {expected}")
    return took


def phases(words: list[str]) -> dict[str, float]:
    """CPU seconds of each phase of one run in this process; what is left to Python, Hydra and our imports is `rest`."""
    from ctxexp.command import Built, compose
    from ctxexp.command.cli import main as command
    from ctxexp.jobs import Job, Sinks, execute

    took: dict[str, float] = {"imports of the command": time.process_time()}

    def timed(phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def wrapped(*given: Any, **named: Any) -> Any:
            before = time.process_time()
            try:
                return call(*given, **named)
            finally:
                took[phase] = took.get(phase, 0.0) + time.process_time() - before

        return wrapped

    watched: list[tuple[str, Any, str]] = [
        ("words checked", compose, "check_command"),
        ("store opened", Sinks, "prepared"),
        ("text and model", execute, "_load"),
        ("measured", Built, "run"),
        ("results written", Job, "save"),
        ("figures drawn", execute, "run_figures"),
        ("results sent", Job, "log"),
    ]
    for phase, owner, name in watched:
        setattr(owner, name, timed(phase, getattr(owner, name)))
    sys.argv = ["ctxexp", *words]
    try:
        command()
    except SystemExit as leaving:
        if leaving.code:
            raise
    return {**took, "rest": time.process_time() - sum(took.values())}


def cached_run() -> None:
    """Print the phases of a default run whose vectors are cached, in a store that is there."""
    with tempfile.TemporaryDirectory() as folder:
        words = (__file__, "model=bert", f"tracking.folder={folder}/runs")
        env = {"CTXEXP_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        seconds(*words, **env)
        held = [(seconds(*words, **env), seconds("-c", "import torch")[0]) for _ in range(RUNS)]
    (took, said), _ = min(held)
    torch = min(other for _, other in held)
    parts = json.loads(said.splitlines()[-1])
    for phase, part in {**parts, "process left": took - sum(parts.values())}.items():
        print(f"{phase:<24}{part:6.2f} CPU s")
    print(f"{'a cached run':<24}{took:6.2f} CPU s; / `import torch` ({torch:.2f}): {took / torch:.1f}")


def main() -> None:
    if sys.argv[1:]:
        print(json.dumps(phases(sys.argv[1:])))
        return
    with tempfile.TemporaryDirectory() as folder:
        for i in range(5):
            install(Path(folder), i)
        pairs = [(help_seconds("", 0), help_seconds(folder, 5)) for _ in range(6)][1:]
    without, having = (min(side) for side in zip(*pairs, strict=True))
    print(f"--help: {without:.2f} CPU s; with five plugins / without: {having / without:.2f}   at most 1.2")
    cached_run()


if __name__ == "__main__":
    main()
