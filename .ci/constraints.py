"""Writes constraints.txt: the versions of all that ctxexp, its extras and the plugins here ask for, on every system
and Python that ELSEWHERE names.

`.venv/bin/python .ci/constraints.py`, with the extra `dev` installed; further folders of distributions may be named.
What is installed here gives the versions; a resolver (uv) adds what only other systems and Pythons get, under these
versions: the CUDA libraries that pip's default torch asks for on Linux, what IPython needs on macOS.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "constraints.txt"
HEAD = "# Versions that the tests ran with (.ci/constraints.py); `pip install -c constraints.txt -e .` repeats them.\n"
ELSEWHERE = [  # system, as the resolver calls it, and Python
    (system, python)
    for system in ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
    for python in ("3.11.5", "3.12", "3.13", "3.14")
]


def asked(extras: Iterable[str] | None = None) -> Iterator[str]:
    """What ctxexp asks for, of its extras (None: all) too, and the plugins here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    yield from project["dependencies"]
    for extra in optional if extras is None else extras:
        yield from optional[extra]
    for path in sorted(ROOT.glob("plugins/ctxexp-*/pyproject.toml")):
        plugin = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        yield from plugin["dependencies"]
        for requirements in plugin["optional-dependencies"].values():
            yield from requirements


def versions(requirements: Iterable[str], folders: Iterable[str] = ()) -> dict[str, str]:
    """The version of each distribution that these ask for, directly or not; what isn't installed is left out."""
    return {name: version for name, version in closure(requirements, folders).items() if version}


def closure(
    requirements: Iterable[str], folders: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The same with an empty version for what isn't installed; `environment` holds markers of another machine, such
    as `sys_platform`, for which the distributions' own metadata are read here."""
    installed: dict[str, Distribution] = {}
    for distribution in distributions(path=[*sys.path, *folders]):
        installed.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution)
    ours = {name for name in installed if name.split("-")[0] == "ctxexp"} | {"ctxexp"}
    names: dict[str, str] = {}
    todo, seen = [Requirement(text) for text in requirements], set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if str(requirement) in seen or name in ours or not applies(requirement, requirement.extras, environment):
            continue
        seen.add(str(requirement))
        names[name] = Version(installed[name].version).public if name in installed else ""
        for text in (installed[name].requires if name in installed else None) or ():
            further = Requirement(text)
            if applies(further, requirement.extras, environment):
                further.marker = None
                todo.append(further)
    return dict(sorted(names.items()))


def applies(requirement: Requirement, extras: Iterable[str], environment: Mapping[str, str] | None) -> bool:
    marker = requirement.marker
    return not marker or any(marker.evaluate({**(environment or {}), "extra": extra}) for extra in ("", *extras))


def elsewhere() -> dict[str, str]:
    """What every system and Python of ELSEWHERE gets under constraints.txt; it ends where these don't go together."""
    wanted = "".join(f"{text}\n" for text in asked() if not text.startswith("ctxexp"))
    # A folder of wheels at hand may hold a torch without CUDA; torch's wheels for macOS ask for 14.
    environment = {k: v for k, v in os.environ.items() if k != "UV_FIND_LINKS"} | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    resolve = [sys.executable, "-m", "uv", "pip", "compile", "-q", "--no-config", "--no-annotate", "--no-header"]
    versions: dict[str, str] = {}
    for system, python in ELSEWHERE:
        place = ["--python-platform", system, "--python-version", python, "-c", str(FILE), "-"]
        done = subprocess.run([*resolve, *place], input=wanted, text=True, capture_output=True, env=environment)
        if done.returncode:
            sys.exit(f"{system}, Python {python}: {done.stderr.strip()}")
        versions |= re.findall(r"^([a-z0-9-]+)==([\w.]+)", done.stdout, flags=re.MULTILINE)
    return versions


def write(versions: Mapping[str, str]) -> None:
    lines = sorted(f"{name}=={version}\n" for name, version in versions.items())
    FILE.write_text(HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    here = versions(asked(), sys.argv[1:])
    write(here)
    write(elsewhere() | here)
