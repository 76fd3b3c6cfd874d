"""What five installed plugins add to the start: CPU seconds of `--help` with and without them, as a ratio.

`python benchmarks/startup.py`: runs alternate, and the least of each counts, since neighbours' load only adds.
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


def install(site: Path, i: int) -> None:
    """A module and the metadata that pip would leave."""
    site.joinpath(f"plugin{i}.py").write_text(PLUGIN.format(i=i), encoding="utf-8")
    info = site / f"plugin{i}-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin{i}\nVersion: 1.0\n", encoding="utf-8")
    info.joinpath("entry_points.txt").write_text(f"[ctxexp]\nplugin{i} = plugin{i}\n", encoding="utf-8")


def seconds(path: str, expected: int) -> float:
    """CPU seconds of one `--help`, which must list `expected` plugin models."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "ctxexp", "--help"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = sum(f"model{i}" in done.stdout for i in range(5))
    if found != expected:
        raise SystemExit(f"--help lists {found} of the plugins' models instead of {expected}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for i in range(5):
            install(Path(folder), i)
        pairs = [(seconds("", 0), seconds(folder, 5)) for _ in range(6)][1:]
    without, having = (min(side) for side in zip(*pairs, strict=True))
    print(f"--help: {without:.2f} CPU s; with five plugins / without: {having / without:.2f}   at most 1.2")


if __name__ == "__main__":
    main()
