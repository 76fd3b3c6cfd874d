"""What a start costs: a run with everything cached, and what five installed plugins add to `--help model`.

`python benchmarks/startup.py`: in CPU seconds and as ratios; runs alternate with what they are held against, and the
least of each counts, since neighbours' load only adds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

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
    """CPU seconds of one `--help model`, which must list `expected` plugin models."""
    took, said = seconds("-m", "ctxexp", "--help", "model", PYTHONPATH=os.pathsep.join(filter(None, [path, PATH])))
    found = sum(f"model{i}" in said for i in range(5))
    if found != expected:
        raise SystemExit(f"--help model lists {found} of the plugins' models instead of {expected}")
    return took


def cached_run() -> None:
    """Print what a default run takes whose vectors are cached, in a store that is there."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("-m", "ctxexp", "model=bert", f"tracking.folder={folder}/runs")
        env = {"CTXEXP_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        seconds(*words, **env)
        held = [(seconds(*words, **env)[0], seconds("-c", "import torch")[0]) for _ in range(RUNS)]
    took, torch = (min(side) for side in zip(*held, strict=True))
    print(f"a cached run: {took:.2f} CPU s; / `import torch` ({torch:.2f}): {took / torch:.1f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for i in range(5):
            install(Path(folder), i)
        pairs = [(help_seconds("", 0), help_seconds(folder, 5)) for _ in range(6)][1:]
    without, having = (min(side) for side in zip(*pairs, strict=True))
    print(f"--help model: {without:.2f} CPU s; with five plugins / without: {having / without:.2f}   at most 1.2")
    cached_run()


if __name__ == "__main__":
    main()
