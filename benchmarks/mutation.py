"""Which one-token changes of the code that counts no test notices, by mutmut (extra `dev`), in a copy of this checkout.

    python benchmarks/mutation.py FOLDER                  every mutant of ROOMS that FOLDER has no verdict on yet
    python benchmarks/mutation.py FOLDER --sample 200     so many of them, by --seed
    python benchmarks/mutation.py FOLDER --changed main   those of files that differ from a branch
    python benchmarks/mutation.py FOLDER --table          what FOLDER holds, as a table
    python benchmarks/mutation.py FOLDER --again          those that no test noticed, after tests were added (or their
                                                          verdicts in another FOLDER were copied here)

    python benchmarks/mutation.py FOLDER --room maths     of one room alone (with any of these)

FOLDER holds a copy for each room and the verdicts: a run that was stopped goes on when it is repeated; after a change
of the code take a fresh one. A mutant meets only those of its room's tests that call its function, the quickest first,
and is noticed by the first that fails. It is one token: a number, an operator, a comparison, True for False, a branch
that is always taken. HARMLESS names mutants that change nothing that can be seen, each with the reason; others that
survive are printed in its columns. mutmut's other mutants (arguments left out, None assigned, texts) are not made: most
of them end in a TypeError, or in another word of a message. mutmut leaves decorated functions, and what stands outside
of functions.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fnmatch
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {  # and the tests that try each
    "maths": ("tests/maths", "tests/metrics/test_anisotropy.py", "plugins/ctxexp-measures"),
    "measuring": (
        "tests/measuring",
        "plugins/ctxexp-scale",
        "tests/metrics/test_sense_separation.py",
        "tests/transforms/test_transforms.py",
        "tests/command/test_fit.py",
    ),
    "groups": ("tests/measuring", "tests/metrics"),
    "occurrences": ("tests/measuring", "plugins/ctxexp-scale", "tests/command/test_fit.py"),
    "metrics": ("tests/metrics", "tests/measuring/test_measure.py"),
    "baselines": ("tests/baselines", "tests/measuring", "tests/metrics/test_metrics.py"),
}
FIRST = {  # a few mutants of each
    "maths": "ctxexp.maths.statistics.x_summary*",
    "measuring": "ctxexp.measuring.words.*",
    "groups": "ctxexp.groups.*Block*",
    "occurrences": "ctxexp.occurrences.x_units_of*",
    "metrics": "ctxexp.metrics.similarity.*WordNorm*",
    "baselines": "ctxexp.baselines.*",
}
COPY = ("ctxexp", "conf", "tests", "docs", "plugins", "benchmarks", "pyproject.toml")
SLOW = (  # over a second each, so that a mutant that survives would take a minute
    "tests/measuring/test_coverage.py",
    "tests/metrics/test_sts_published.py",
    "tests/measuring/test_golden.py",
    "plugins/ctxexp-scale/tests/test_bounded.py::test_curves_of_sts_are_those_of_all_contexts",
    "plugins/ctxexp-scale/tests/test_one_pass.py::test_a_stop_loses_one_shard",
    "plugins/ctxexp-scale/tests/test_one_pass.py::test_intervals_of_shards_have_about_the_right_width",
    "plugins/ctxexp-scale/tests/test_one_pass.py::test_a_model_gives_what_stored_rows_give",
)
ONE_TOKEN = ("number", "name", "remove_unary_ops", "keywords", "swap_op", "augmented_assignment", "match", "if_exp")
INNER = "--mutmut"  # this script as mutmut, with the operators of ONE_TOKEN only
HARMLESS = Path(__file__).with_name("harmless_mutants.csv")
UNNOTICED = (0, 33)  # mutmut's exit codes of mutants that survived, or have no test; others end a test in some way


def copy(folder: Path, room: str) -> None:
    """The checkout's code and tests, with mutmut's settings for a room."""
    for name in COPY:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            hidden = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
            shutil.copytree(source, target, ignore=hidden, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    lists = {
        "source_paths": ["ctxexp/"],
        "only_mutate": [f"ctxexp/{room}*"],
        "pytest_add_cli_args_test_selection": list(ROOMS[room]),
        "pytest_add_cli_args": [f"--{'deselect' if '::' in it else 'ignore'}={it}" for it in SLOW] + ["-m", "not slow"],
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
    paths = [f"ctxexp/{room}*" for room in ROOMS]
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
        command = [sys.executable, __file__, INNER, "run", "--max-children", os.environ.get("CHILDREN", "1"), *names]
        done = subprocess.run(command, cwd=folder, env=env, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        print(f"mutmut ended with {done.returncode}; its words are in {log}", file=sys.stderr)


def mutmut() -> None:
    """mutmut's command, with the operators of ONE_TOKEN."""
    from mutmut.__main__ import cli
    from mutmut.mutation.mutators import mutation_operators

    names = {f"operator_{name}" for name in ONE_TOKEN}
    if missing := names - {operator.__name__ for _, operator in mutation_operators}:
        sys.exit(f"this mutmut has no {', '.join(sorted(missing))}")
    mutation_operators[:] = [pair for pair in mutation_operators if pair[1].__name__ in names]  # type: ignore[index]
    cli()


class Change(NamedTuple):
    """A mutant by its text, which stays the same while the numbers of mutants shift."""

    function: str  # with its module and class: maths.cosines.chance_corrected
    line: str
    mutant: str


def change_of(name: str) -> Change:
    """The line that the mutant changes, before and after; call it in the folder."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key

    lines = get_diff_for_mutant(name).splitlines()[2:]
    before, after = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    function, class_name = orig_function_and_class_names_from_key(name)
    module = name.rpartition(".")[0].removeprefix("ctxexp.")
    return Change(".".join(part for part in (module, class_name, function.rpartition(".")[-1]) if part), before, after)


def is_assertion(change: Change) -> bool:
    """Whether only `strict` of a zip changed: it asserts that lengths agree, which they do by construction."""
    before, after = (re.sub(r"strict=(True|False)", "strict", text) for text in (change.line, change.mutant))
    return before == after


def reasons() -> dict[Change, str]:
    """The reason why each mutant on file changes nothing that can be seen."""
    with HARMLESS.open(encoding="utf-8", newline="") as file:
        return {Change(row["function"], row["line"], row["mutant"]): row["why"] for row in csv.DictReader(file)}


def unnoticed(folder: Path) -> dict[str, Change]:
    """The mutants that no test notices, by name."""
    codes = {name: code for name, code in verdicts(folder).items() if code in UNNOTICED}
    if not codes:
        return {}
    from mutmut.configuration import reset_config

    reset_config()  # it holds another room's
    with contextlib.chdir(folder):
        return {name: change_of(name) for name in codes}


def table(codes: Mapping[str, int | None], fine: Container[str]) -> Iterator[str]:
    """By room: mutants, those tried, noticed, not noticed but named in `fine` as harmless, and neither; and the share
    noticed of those tried, and of those tried that aren't harmless."""
    yield "| room | mutants | tried | noticed | harmless | unnoticed | of tried | of those not harmless |"
    yield "|---|---|---|---|---|---|---|---|"
    for room in (*ROOMS, "all"):
        mine = {name: c for name, c in codes.items() if room == "all" or name.startswith(f"ctxexp.{room}.")}
        tried = [name for name, code in mine.items() if code is not None]
        left = [name for name in tried if codes[name] in UNNOTICED]
        harmless = sum(name in fine for name in left)
        noticed = len(tried) - len(left)
        shares = [f"{noticed / n:.3f}" if n else "-" for n in (len(tried), len(tried) - harmless)]
        counts = [len(mine), len(tried), noticed, harmless, len(left) - harmless]
        yield f"| {room} | {' | '.join([*map(str, counts), *shares])} |"


def forget(folder: Path) -> None:
    """The verdicts on mutants that survived are taken back, so that they are tried again."""
    for path in (folder / "mutants" / "ctxexp").rglob("*.py.meta"):
        held = json.loads(path.read_text(encoding="utf-8"))
        codes = held["exit_code_by_key"]
        held["exit_code_by_key"] = {k: None if c in UNNOTICED else c for k, c in codes.items()}
        path.write_text(json.dumps(held), encoding="utf-8")


def try_mutants(folder: Path, room: str, asked: argparse.Namespace) -> None:
    """Get the verdicts on a room's mutants that were asked for, in the room's copy."""
    if not (folder / "setup.cfg").exists():
        folder.mkdir(parents=True, exist_ok=True)
        copy(folder, room)
    if not verdicts(folder):  # mutants have names once they are made: those of one function are tried
        run(folder, [FIRST[room]])
    if asked.again:
        forget(folder)
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/mutation.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--room", choices=list(ROOMS), action="append", help="one room; may be given again")
    parser.add_argument("--sample", type=int, help="so many mutants of each room")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--changed", metavar="BRANCH", help="mutants of files that differ from it")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="those that no test noticed")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    if folder.is_relative_to(ROOT):
        parser.error(f"{folder} is in the checkout, of which it would be a copy; take a folder outside of it")
    rooms = asked.room or list(ROOMS)
    if not asked.table:
        for room in rooms:
            try_mutants(folder / room, room, asked)
    codes: dict[str, int | None] = {}
    changes: dict[str, Change] = {}
    for room in rooms:
        if (folder / room).is_dir():
            codes |= verdicts(folder / room)
            changes |= unnoticed(folder / room)
    why = reasons()
    fine = {name for name, change in changes.items() if change in why or is_assertion(change)}
    print("\n".join(table(codes, fine)))
    rows = csv.writer(sys.stdout)
    rows.writerows((*change, "") for name, change in changes.items() if name not in fine)


if __name__ == "__main__":
    if INNER in sys.argv[1:2]:
        sys.argv[1:2] = []
        mutmut()
    else:
        main()
