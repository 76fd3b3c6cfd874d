"""The fault bench itself, and a few seconds of it."""

from __future__ import annotations

import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.faults import Lost, Silent, bench, concurrency
from benchmarks.faults.__main__ import main
from benchmarks.faults.bench import BAD, FULL, endings, kinds, read_log, table
from ctxexp.errors import ConfigError
from ctxexp.plugins.registry import load_plugin_files


def raising(error: BaseException) -> Callable[[], object]:
    def case() -> None:
        raise error

    return case


ENDINGS: list[tuple[str, Callable[[], object], str]] = [
    ("right", lambda: None, "well"),
    ("refused", raising(ConfigError("`x=1`: x is a name, not a number")), "refused"),
    ("wordless", raising(ConfigError("  ")), "silent"),
    ("a wall of text", raising(ConfigError("line\n" * 40)), "traceback"),
    ("gone", raising(Lost("results.json of job 3")), "lost"),
    ("wrong", raising(Silent("0.3, not 0.4")), "silent"),
    ("wrong by an assertion", raising(AssertionError()), "silent"),
    ("a mistake of ours", raising(KeyError("x")), "traceback"),
    ("a wordless exit", raising(SystemExit(1)), "traceback"),
    ("cannot be tried here", raising(unittest.SkipTest("no tmpfs")), "skipped"),
    ("hangs", lambda: time.sleep(60), "traceback"),
]


@pytest.fixture(autouse=True)
def _no_plugin_file_stays() -> Iterator[None]:
    yield
    load_plugin_files([])


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A kind with every ending, and the names of its cases that were tried."""
    tried: list[str] = []

    def cases(_kind: str, _seed: int, count: int, _folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
        for name, case, _ in ENDINGS[:count]:
            yield name, lambda name=name, case=case: (tried.append(name), case())

    monkeypatch.setattr(bench, "cases", cases)
    return tried


def test_every_ending_is_sorted_and_counted(planted: list[str]) -> None:
    found = list(endings("kills", 0, 99, limit=0.5))
    assert [e.outcome for e in found] == [outcome for _, _, outcome in ENDINGS]
    assert all(e.message for e in found if e.outcome != "well")
    header, _, kills, everything = table(found).splitlines()
    assert [c.strip() for c in header.split("|")[1:5]] == ["kind", "tried", "ended well", "of them refused"]
    assert [c.strip() for c in kills.split("|")[2:9]] == ["10", "2", "1", "1", "3", "4", "1"]
    assert kills.replace("kills", "all  ") == everything


def test_a_failure_names_the_command_that_repeats_it(planted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", "kills", "--seed", "7", "--count", "6"]) == 1
    told = capsys.readouterr().err
    assert "lost: kills 4, gone\n  results.json of job 3\n" in told
    repeat = told.partition("results.json of job 3\n  python -m benchmarks.faults ")[2].splitlines()[0].split()
    planted.clear()
    assert main(repeat) == 1
    assert planted == ["gone"]
    assert main(["--kind", "kills", "--count", "2"]) == 0


def test_a_run_that_was_stopped_goes_on_where_it_was(planted: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = ["--kind", "kills", "--limit", ".5", "--log", str(log)]
    assert main([*command, "--count", "3"]) == 1
    log.write_text(log.read_text() + '{"kind": "cut')
    planted.clear()
    assert main([*command, "--count", "99"]) == 1
    assert planted == [name for name, _, _ in ENDINGS[3:]]
    assert [e.name for e in read_log(log)] == [name for name, _, _ in ENDINGS]


SHORT = {
    "vector_shards": 2,
    "cache_damage": 4,
    "eviction": 2,
    "sum_shards": 1,
    "drivers": 1,
}
"""How many the suite tries; a full disk has tests of its own, which need no disk."""


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind in SHORT])
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


def test_every_kind_of_fault_has_its_file_and_its_count() -> None:
    files = {p.stem for p in Path(bench.__file__).parent.glob("*.py") if "\ndef cases(" in p.read_text()} - {"bench"}
    assert files == set(kinds()) == set(FULL)
