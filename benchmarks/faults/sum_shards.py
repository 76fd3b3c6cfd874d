"""Sums of one pass, shard by shard, that are swapped, foreign, cut or changed before their run goes on: it gives the
numbers of an undisturbed run, or is refused. (Shards of vectors are attacked by `vector_shards`.)"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

import ctxexp
from ctxexp import Corpus, Results

from . import Lost, Silent
from .cache_damage import heard
from .damages import EVERY, copy_over
from .plugin import Drawn

SHARDS = 6
REST, STRANGE = "a killed worker's rest", "a foreign shard"
NAMES = (STRANGE, REST, *EVERY)


def text(name: str, n: int = 60) -> Corpus:
    rng = np.random.default_rng(len(name))
    return Corpus.of(name, [[*(f"w{i}" for i in rng.integers(0, 9, 1 + j % 7)), name, str(j)] for j in range(n)])


def measured(folder: Path, run: str) -> Results:
    """The results of a run by its name: the one that is attacked, or one that differs from it in a single choice."""
    options = {"one_pass.shards": SHARDS - (run == "fewer shards"), "cache.folder": str(folder), "batch_tokens": 20}
    with heard():
        return ctxexp.measure(
            Drawn("two" if run == "another model" else "one"),
            text("others" if run == "another text" else "one", 90 if run == "a longer text" else 60),
            metrics="one_pass",
            control="no_first" if run == "another control" else None,
            min_contexts=3 if run == "another bound" else 2,
            bootstrap=20,
            options=options,
            progress=False,
        )


FOREIGN = ("another text", "a longer text", "another model", "another bound", "another control", "fewer shards")


@cache
def reference_run(folder: Path, run: str) -> tuple[Path, Results]:
    """The folder of an undisturbed run's shards, and its results."""
    own = folder / run.replace(" ", "-")
    found = measured(own, run)
    (shards,) = own.glob("sums-*")
    return shards, found


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every damage in turn, to one to three shards of a run, some of which are still to come."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name, run = NAMES[number % len(NAMES)], FOREIGN[number // len(NAMES) % len(FOREIGN)]
        title = f"{name} of {run}" if name == STRANGE else name
        yield title, partial(try_case, name, run, rng, folder / str(number))


def try_case(name: str, run: str, rng: np.random.Generator, own: Path) -> None:
    """Spoil shards of a run that was stopped, and let it go on."""
    shards, expected = reference_run(own.parent, "whole")
    foreign, _ = reference_run(own.parent, run)
    here = own / shards.name
    shutil.copytree(shards, here)
    present = sorted(here.iterdir())
    hit = rng.choice(len(present), int(rng.integers(1, 4)), replace=False)
    others = sorted(foreign.iterdir())
    for at in hit:
        neighbour = present[(at + int(rng.integers(1, SHARDS))) % SHARDS]
        if name == REST:
            present[at].with_suffix(".killed-1.npz").write_bytes(rng.bytes(99))
        elif name == STRANGE:
            copy_over(present[at], others[min(at, len(others) - 1)], rng)
        else:
            EVERY[name](present[at], neighbour, rng)
    for at in set(range(SHARDS)) - set(hit.tolist()):
        if rng.random() < 0.3:
            present[at].unlink()  # the run was stopped before it
    found = measured(own, "whole")
    agree(found, expected)
    if found.info.encoded > expected.info.encoded:
        raise Silent(f"{found.info.encoded} sentences were encoded of {expected.info.encoded}")
    agree(again := measured(own, "whole"), expected)
    if again.info.encoded:
        raise Lost("the shards were not made whole")
    if left := {path.name for path in here.iterdir()} - {path.name for path in shards.iterdir()}:
        raise Lost(f"left over: {left}")
    shutil.rmtree(own)


def agree(found: Results, expected: Results) -> None:
    """Raise Silent unless every value, interval and count is the undisturbed run's."""
    if found.info.corpus != expected.info.corpus:
        raise Silent(f"another text: {found.info.corpus}, not {expected.info.corpus}")
    if not found.frame.equals(expected.frame):
        both = found.frame.merge(expected.frame, on=["measure", "statistic", "layer"], suffixes=("", "_right"))
        other = both[(both.value != both.value_right) & ~(both.value.isna() & both.value_right.isna())]
        raise Silent(f"other numbers: {other.head(3).to_dict('records')}")
    for name, table in expected.tables.items():
        if not found.tables[name].equals(table):
            raise Silent(f"another table {name}")
