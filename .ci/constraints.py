"""Writes constraints.txt: the installed versions of all that ctxexp, its extras and the plugins here ask for.

`.venv/bin/python .ci/constraints.py`, with the extra `dev` installed; further folders of distributions may be named.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Versions that the tests ran with (.ci/constraints.py); `pip install -c constraints.txt -e .` repeats them.\n"


def asked(extras: Iterable[str] | None = None) -> Iterator[str]:
    """What ctxexp asks for, of its extras (None: all) too, and the plugins here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    yield from project["dependencies"]
    for extra in optional if extras is None else extras:
        yield from optional[extra]
    for path in sorted(ROOT.glob("plugins/ctxexp-*/pyproject.toml")):
        yield from tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("dependencies", ())


def versions(requirements: Iterable[str], folders: Iterable[str] = ()) -> dict[str, str]:
    """The version of each distribution that these ask for, directly or not; what isn't installed is left out."""
    held: dict[str, Distribution] = {}
    for found in distributions(path=[*sys.path, *folders]):
        held.setdefault(canonicalize_name(found.metadata["Name"]), found)
    ours = {name for name in held if name.split("-")[0] == "ctxexp"} | {"ctxexp"}
    made: dict[str, str] = {}
    todo, seen = [Requirement(text) for text in requirements], set()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        if str(wanted) in seen or name in ours or name not in held:
            continue
        seen.add(str(wanted))
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
            continue
        made[name] = Version(held[name].version).public
        for text in held[name].requires or ():
            further = Requirement(text)
            if not further.marker or any(further.marker.evaluate({"extra": e}) for e in ("", *wanted.extras)):
                further.marker = None
                todo.append(further)
    return dict(sorted(made.items()))


if __name__ == "__main__":
    lines = [f"{name}=={version}\n" for name, version in versions(asked(), sys.argv[1:]).items()]
    (ROOT / "constraints.txt").write_text(HEAD + "".join(lines), encoding="utf-8")
