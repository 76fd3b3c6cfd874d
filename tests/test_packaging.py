"""The wheel holds what a run needs, and the files of the project keep to its rules."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ctxexp

ROOT = Path(__file__).resolve().parent.parent


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


def test_the_constraints_hold_every_version_that_is_here(script: dict[str, Any], constraints: dict[str, str]) -> None:
    """Names and versions of all that ctxexp and its tests ask for; `.ci/constraints.py` writes them."""
    here = script["versions"](script["asked"](SETUP))
    assert {name: constraints.get(name) for name in here} == here, "run .ci/constraints.py"
    assert {"torch", "mkdocs", "sqlalchemy", "pytest", "twine"} <= {*constraints}


def test_one_version_everywhere() -> None:
    written = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CITATION.cff")]
    found = [re.search(r'^version ?[:=] "?([\w.]+)', text, flags=re.MULTILINE) for text in written]
    assert [m and m[1] for m in found] == [ctxexp.__version__] * 2


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
    if project.name == "ctxexp-light":  # whose files are those of a folder of ctxexp-compare
        package = ROOT / "plugins" / "ctxexp-compare" / "ctxexp_compare" / "light"
        declared = {"numpy", "pandas"}  # for Parquet, where it is there
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
