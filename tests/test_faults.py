"""The fault bench itself, and a few seconds of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults import concurrency
from benchmarks.faults.bench import BAD, endings
from ctxexp.plugins.registry import load_plugin_files


@pytest.fixture(autouse=True)
def _no_plugin_file_stays() -> Iterator[None]:
    yield
    load_plugin_files([])


SHORT = {
    "vector_shards": 2,
    "cache_damage": 4,
    "eviction": 2,
    "sum_shards": 1,
    "drivers": 1,
}
"""How many the suite tries; a full disk has tests of its own, which need no disk."""


@pytest.mark.parametrize("kind", [*[*SHORT][:-1], pytest.param("drivers", marks=pytest.mark.nightly)])
def test_a_few_of_each_kind_end_well(kind: str) -> None:
    found = list(endings(kind, 1, SHORT[kind]))
    bad = [e for e in found if e.outcome in BAD or (e.outcome == "refused" and kind not in ("eviction", "sum_shards"))]
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.nightly
def test_a_sweep_that_is_killed_resumes_whole() -> None:
    (ending,) = endings("kills", 1, 1)  # SIGKILL, half-way
    assert ending.outcome == "well", str(ending)


@pytest.mark.slow
def test_processes_that_start_together_on_one_store_succeed(tmp_path: Path) -> None:
    ((_, case),) = concurrency.cases(0, 1, tmp_path, processes=2)
    case()
