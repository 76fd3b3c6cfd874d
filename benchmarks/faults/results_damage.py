"""Damage to the files of finished jobs: resume computes again, and a comparison goes on without them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

from ctxexp import Results

from . import Lost, Silent
from .damages import EVERY, Damage, rewrite
from .kills import compared, run, texts

FILES = (
    "results.json",
    "results.parquet",
    "run.json",
    "status.json",
    "files.json",
    "replicates.npz",
    "config.yaml",
)


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kind of damage in turn to drawn files."""
    rng = np.random.default_rng(seed)
    order = [list(DAMAGES)[i] for i in rng.permutation(len(DAMAGES))]
    finished = cache(lambda: make(folder))
    for number in range(count):
        drawn = np.random.default_rng([seed, number])
        file, how = str(drawn.choice(FILES)), order[number % len(order)]
        yield f"{file}: {how}", partial(try_case, finished, file, how, drawn)


def make(folder: Path) -> tuple[Path, dict[str, Results]]:
    """A folder with a finished sweep of three jobs beside a copy of its files, and its results by label."""
    sweep = folder / "place"
    texts(sweep)
    child = run(sweep)
    child.join()
    if child.exitcode:
        raise Lost(f"the undisturbed sweep failed: {(sweep / 'said').read_text()[-2000:]}")
    shutil.copytree(sweep / "mlruns", folder / "whole")
    return sweep, compared(sweep)


def try_case(
    finished: Callable[[], tuple[Path, dict[str, Results]]], file: str, how: str, rng: np.random.Generator
) -> None:
    """Damage a file of one job, resume the sweep, and look for jobs that are lost or other."""
    folder, expected = finished()
    store = folder / "mlruns"
    shutil.rmtree(store)
    shutil.copytree(folder.parent / "whole", store)
    (folder / "said").unlink(missing_ok=True)
    damaged, other = rng.permutation([one.parent for one in sorted(store.glob(f"results/*/0*/{file}"))])[:2]
    DAMAGES[how](damaged / file, other / file, rng)
    again = run(folder, "resume=true")
    again.join()
    said = (folder / "said").read_text()
    if "Traceback (most recent call last)" in said:
        raise RuntimeError(said[said.index("Traceback") :][-3000:])
    if again.exitcode:
        raise Lost(f"the resumed sweep ended with {again.exitcode}: {said[-1500:]}")
    found = compared(folder)
    if found.keys() != expected.keys():
        raise Lost(f"expected {sorted(expected)}, got {sorted(found)}: {said[-500:]}")
    for label, results in found.items():
        if not same(results, expected[label]):
            raise Silent(f"resume takes other numbers for {label}")


def same(one: Results, other: Results) -> bool:
    drawn, again = one.replicates, other.replicates
    return (
        one.frame.equals(other.frame)
        and one.tables.keys() == other.tables.keys()
        and all(one.tables[name].equals(other.tables[name]) for name in one.tables)
        and drawn.keys() == again.keys()
        and all(np.array_equal(drawn[key], again[key], equal_nan=True) for key in drawn)
    )


def digit(data: bytearray, rng: np.random.Generator) -> None:
    """Another digit: a JSON file stays one."""
    digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()] or [0]
    at = digits[rng.integers(len(digits))]
    data[at] = ord("0") + (data[at] - ord("0") + 1) % 10


def deep(path: Path, _: Path, rng: np.random.Generator) -> None:
    path.write_text("[" * 100_000)


def odd(path: Path, _: Path, rng: np.random.Generator) -> None:
    """JSON of another shape: every value of another type."""
    values: list[object] = [None, 5, "x", [1], {}, True, 1e999, 10**400]
    try:
        keys = list(json.loads(path.read_text()))
    except ValueError:
        keys = ["values", "status"]
    path.write_text(json.dumps({key: values[rng.integers(len(values))] for key in keys}))


DAMAGES: dict[str, Damage] = EVERY | {"one digit": rewrite(digit), "deeply nested": deep, "other types": odd}
