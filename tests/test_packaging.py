"""The wheel holds what a run needs, and the files of the project keep to its rules."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ctxexp

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_wheel_holds_configs_data_and_weights(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern, prefix in (("conf", "**/*.yaml", "ctxexp/conf"), ("ctxexp", "**/*", "ctxexp")):
        for path in (ROOT / folder).glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{prefix}/{path.relative_to(ROOT / folder).as_posix()}" in names
    assert not any("mlruns" in name or name.startswith("tests") for name in names)


def test_the_constraints_hold_every_version_that_is_here() -> None:
    """Names and versions of all that ctxexp and its tests ask for; `.ci/constraints.py` writes them."""
    script = runpy.run_path(str(ROOT / ".ci" / "constraints.py"))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)
    held = dict(line.split("==") for line in lines)
    here = script["versions"](script["asked"](("test", "lint", "gguf")))
    assert {name: held.get(name) for name in here} == here, "run .ci/constraints.py"
    assert {"torch", "mkdocs", "sqlalchemy", "pytest", "twine"} <= {*held}


def test_one_version_everywhere() -> None:
    written = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CITATION.cff")]
    found = [re.search(r'^version ?[:=] "?([\w.]+)', text, flags=re.MULTILINE) for text in written]
    assert [m and m[1] for m in found] == [ctxexp.__version__] * 2


def test_no_file_names_a_registry_host() -> None:
    """Where packages come from is the installing machine's business."""
    for pattern in (
        "*.toml",
        "*.txt",
        "Makefile",
        "Dockerfile",
        ".ci/*",
        ".github/**/*.yml",
        "*.y*ml",
        "*.md",
        "docs/**/*.md",
    ):
        for path in ROOT.glob(pattern):
            assert not re.search(r"(pypi|pythonhosted|npmjs)\.org|--index-url|--extra-index", path.read_text()), path
