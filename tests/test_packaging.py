"""The wheel holds what a run needs, and the files of the project keep to its rules."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git")
def test_git_ignores_nothing_that_it_holds() -> None:
    """The wheel leaves out what .gitignore names: a package called build, for one."""
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout == ""


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What `.ci/constraints.py` defines."""
    return runpy.run_path(str(ROOT / ".ci" / "constraints.py"))


@pytest.fixture(scope="module")
def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)
    return dict(line.split("==") for line in lines)


SETUP = ("test", "lint", "gguf")  # the extras of which `make setup` brings all or some
MACHINES = [
    {"sys_platform": system, "platform_system": name, "platform_machine": machine, "python_version": python}
    for system, name, machine in (
        ("linux", "Linux", "x86_64"),
        ("linux", "Linux", "aarch64"),
        ("darwin", "Darwin", "arm64"),
    )
    for python in ("3.11", "3.14")  # a marker names versions below one or from one on
]


def test_the_constraints_hold_every_version_that_is_here(script: dict[str, Any], constraints: dict[str, str]) -> None:
    """Names and versions of all that ctxexp and its tests ask for; `.ci/constraints.py` writes them."""
    here = script["versions"](script["asked"](SETUP))
    assert {name: constraints.get(name) for name in here} == here, "run .ci/constraints.py"
    assert {"torch", "mkdocs", "sqlalchemy", "pytest", "twine"} <= {*constraints}


def test_the_constraints_hold_what_pips_default_torch_brings_on_linux(
    script: dict[str, Any], constraints: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata of its CUDA build and of the libraries that this asks for, as their wheels have them, without their
    gigabytes: names of `tests/torch_cuda.json`, taken anew for another torch."""
    if sys.platform != "linux":
        pytest.skip("torch has CUDA builds for Linux")
    wheels = json.loads((ROOT / "tests" / "torch_cuda.json").read_text(encoding="utf-8"))
    for name, wheel in wheels.items():
        folder = tmp_path / f"{name.replace('-', '_')}-{wheel['version']}.dist-info"
        folder.mkdir()
        lines = [f"Name: {name}", f"Version: {wheel['version']}", *(f"Requires-Dist: {r}" for r in wheel["requires"])]
        (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    here = script["versions"](script["asked"](SETUP))
    assert {"nvidia-cublas", "nvidia-nvjitlink", "triton", "cuda-pathfinder"} <= {*here}
    assert {*wheels} <= {*here}
    assert {name: constraints.get(name) for name in here} == here, "run .ci/constraints.py"


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda m: "-".join(m[k] for k in ("platform_system", "platform_machine", "python_version"))
)
def test_the_constraints_name_what_other_systems_and_pythons_get(
    script: dict[str, Any], constraints: dict[str, str], machine: dict[str, str]
) -> None:
    """On paper: by the markers of what is installed here."""
    asked = script["closure"](script["asked"](SETUP), environment=machine)
    assert {*asked} - {*constraints} == set(), "run .ci/constraints.py"
    assert ("appnope" in asked) == (machine["sys_platform"] == "darwin")


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


LATER = {  # keywords that came with a patch release of a Python that we support: the call, the keyword
    ("extractall", "filter"),  # 3.11.4; Debian 12 has 3.11.2
    ("unpack_archive", "filter"),
}


def test_nothing_needs_a_patch_release() -> None:
    """`requires-python` says 3.11, which systems have without its patches."""
    folders = ["ctxexp", "plugins", "tests", "docs", "benchmarks", ".ci"]
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                late = [word.arg for word in node.keywords if (name, word.arg) in LATER]
                assert not late, f"{path}:{node.lineno}: {name}({late[0]}=...) is not in 3.11.0"


# Modules that a distribution of another name brings; the rest are called as their distribution is.
DISTRIBUTION = {
    "hydra": "hydra-core",
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "huggingface_hub": "huggingface-hub",
}
# Not asked for: what a user's own objects bring, or what is tried and may be missing.
OPTIONAL = {
    "IPython": "asked whether there is a notebook",
    "alembic": "MLflow's own migrations",
    "annotated_types": "pydantic's own constraints",
    "requests": "MLflow's own errors",
    "torchao": "a user's quantised model",
}


@pytest.mark.parametrize("project", [ROOT, *sorted(ROOT.glob("plugins/ctxexp-*"))], ids=lambda path: path.name)
def test_a_distribution_asks_for_what_it_imports(project: Path) -> None:
    """A plugin has what ctxexp, of which it asks for some version, asks for itself."""
    declared = set()
    for file in filter(Path.exists, (ROOT / "pyproject.toml", project / "pyproject.toml")):
        asked = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        lists = [asked["dependencies"], *asked.get("optional-dependencies", {}).values()]
        declared |= {canonicalize_name(Requirement(text).name) for requirements in lists for text in requirements}
    package = project / project.name.replace("-", "_") if project != ROOT else ROOT / "ctxexp"
    paths = [*package.rglob("*.py"), *project.glob("ctxexp_*.py")]
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for name in {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names} - {*OPTIONAL}:
                if name != "ctxexp" and not name.startswith("ctxexp_"):
                    assert canonicalize_name(DISTRIBUTION.get(name, name)) in declared, f"{path}: {name}"
