"""Which one-token changes of the code that counts no test notices, by mutmut (extra `dev`), in a copy of this checkout.

    python benchmarks/mutation.py FOLDER                  every mutant of ROOMS that FOLDER has no verdict on yet
    python benchmarks/mutation.py FOLDER --sample 200     so many of them, by --seed
    python benchmarks/mutation.py FOLDER --changed main   those of files that differ from a branch
    python benchmarks/mutation.py FOLDER --table          what FOLDER holds, as a table

FOLDER holds the copy and the verdicts: a run that was stopped goes on when it is repeated; after a change of the code
take a fresh one. A mutant meets only the tests that call its function, the quickest first, and is noticed by the first
that fails. mutmut leaves decorated functions and what stands outside of functions as they are.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("maths", "measuring", "metrics", "baselines")
COPY = ("ctxexp", "conf", "tests", "docs", "plugins", "benchmarks", "pyproject.toml")
TESTS = ("maths", "measuring", "metrics", "baselines", "controls")
SLOW = "tests/measuring/test_coverage.py"  # draws planted corpora by the hundred
KILLED, NO_TESTS, SURVIVED = 1, 33, 0  # of mutmut's exit codes; others are timeouts and crashes, which are noticed


def copy(folder: Path) -> None:
    """The checkout's code and tests, with mutmut's settings."""
    for name in COPY:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            hidden = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
            shutil.copytree(source, target, ignore=hidden, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    lists = {
        "source_paths": ["ctxexp/"],
        "only_mutate": [f"ctxexp/{room}/*" for room in ROOMS],
        "pytest_add_cli_args_test_selection": [f"tests/{room}" for room in TESTS],
        "pytest_add_cli_args": [f"--ignore={SLOW}"],
        "also_copy": [f"{name}/" for name in COPY if (ROOT / name).is_dir() and name not in ("ctxexp", "tests")],
    }
    lines = [f"{key}=\n" + "".join(f"  {value}\n" for value in values) for key, values in lists.items()]
    settings = "track_dependencies=false\nuse_git_change_detection=false\n"
    (folder / "setup.cfg").write_text("[mutmut]\n" + "".join(lines) + settings, encoding="utf-8")


def verdicts(folder: Path) -> dict[str, int | None]:
    """Exit codes by mutant; None: not tried yet."""
    codes: dict[str, int | None] = {}
    for path in sorted((folder / "mutants" / "ctxexp").rglob("*.py.meta")):
        codes |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def changed(branch: str) -> list[str]:
    """Patterns of the mutants of files of ROOMS that differ from the branch."""
    paths = [f"ctxexp/{room}" for room in ROOMS]
    done = subprocess.run(
        ["git", "diff", "--name-only", branch, "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path.removesuffix(".py").replace("/", ".") + ".*" for path in done.stdout.split() if path.endswith(".py")]


def run(folder: Path, names: Sequence[str] = ()) -> None:
    """mutmut on these mutants, or on all without a verdict."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "CTXEXP_CACHE": str(folder / "cache")}
    env.setdefault("CTXEXP_SHARED", str(ROOT.parent / "shared"))
    log = folder / "mutmut.log"
    with log.open("ab") as file:
        command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names]
        done = subprocess.run(command, cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        print(f"mutmut ended with {done.returncode}; its words are in {log}", file=sys.stderr)


def table(codes: dict[str, int | None]) -> Iterator[str]:
    """By room: mutants tried, noticed, survived, without a test, and the share noticed."""
    yield "| room | mutants | tried | noticed | survived | without a test | share noticed |"
    yield "|---|---|---|---|---|---|---|"
    for room in (*ROOMS, "all"):
        mine = [code for name, code in codes.items() if room == "all" or name.startswith(f"ctxexp.{room}.")]
        kinds = Counter(
            "survived" if c == SURVIVED else "none" if c == NO_TESTS else "noticed" for c in mine if c is not None
        )
        tried = sum(kinds.values())
        share = f"{kinds['noticed'] / tried:.3f}" if tried else "-"
        counts = [len(mine), tried, *(kinds[kind] for kind in ("noticed", "survived", "none"))]
        yield f"| {room} | {' | '.join(map(str, counts))} | {share} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/mutation.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, help="so many mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--changed", metavar="BRANCH", help="mutants of files that differ from it")
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    if folder.is_relative_to(ROOT):
        parser.error(f"{folder} is in the checkout, of which it would be a copy; take a folder outside of it")
    folder.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        if not (folder / "setup.cfg").exists():
            copy(folder)
        if not verdicts(folder):  # mutants have names once they are made: one is tried
            run(folder, ["ctxexp.maths.summary.*"])
        names = list(verdicts(folder))
        if asked.changed:
            patterns = changed(asked.changed)
            names = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
        if asked.sample is not None:
            names = random.Random(asked.seed).sample(sorted(names), min(asked.sample, len(names)))
        if asked.changed or asked.sample is not None:
            names = [name for name in names if verdicts(folder)[name] is None]
            for start in range(0, len(names), 500):  # a command line has its bounds
                run(folder, names[start : start + 500])
        else:
            run(folder)
    codes = verdicts(folder)
    print("\n".join(table(codes)))
    for name, code in codes.items():
        if code in (SURVIVED, NO_TESTS):
            print(f"{'survived' if code == SURVIVED else 'no test'}: {name}")


if __name__ == "__main__":
    main()
