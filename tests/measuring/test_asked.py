"""What measuring asks of metrics and of baselines, when, and what it says of those that answer amiss."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from ctxexp import Baseline, GroupMean, Metric, Occurrences
from ctxexp.errors import MetricError
from ctxexp.measuring import baseline_levels, build
from tests.engine import measure, small
from tests.shipped import OnePerSentence


class Fails(GroupMean):
    over = "word"

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def score(self, x: np.ndarray) -> np.ndarray:
        if x.shape[-2] == self.at:
            raise ZeroDivisionError("no norm")
        return np.abs(x).mean(axis=(-1, -2), dtype=np.float64)


@pytest.mark.parametrize(("at", "where"), [(2, "word 'a' (or one of 2 more of 2 rows)"), (3, "word 'd'")])
def test_a_failure_names_the_groups_it_may_be_of(at: int, where: str) -> None:
    store, occurrences = small(["a", "b", "c", "d"], ["c", "a", "d", "b"], ["d", "e"])
    message = f"metric 'm' (Fails) failed at layer 0, {where}: ZeroDivisionError: no norm"
    with pytest.raises(MetricError, match=f"^{re.escape(message)}$"):
        measure(store, occurrences, {"m": partial(Fails, at)}, OnePerSentence(size=2), bootstrap=0)


class Bare(Metric):
    """Gives what it is told to."""

    over = "corpus"

    def __init__(self, found: object = None) -> None:
        self.found = found

    def update(self, group: object) -> None: ...

    def compute(self) -> Any:
        return self.found


@pytest.mark.parametrize("found", [3.0, {"n": 1, "raw": [2.0]}])
def test_statistics_are_numbers_by_name(found: object) -> None:
    store, occurrences = small(["a", "b"], ["a", "c"])
    with pytest.raises(MetricError, match=r"^metric 'm': compute\(\) gave .*; expected numbers by name; .*Estimate"):
        measure(store, occurrences, {"m": partial(Bare, found)}, bootstrap=0)
    results = measure(store, occurrences, {"m": partial(Bare, {"one": 1, "two": np.float32(2)})}, bootstrap=0)
    assert (results.by_name["m/one"].tolist(), results.by_name["m/two"].tolist()) == ([1], [2])
    assert not results.replicates  # it has none of its own


class Hasty(Fails):
    def __init__(self) -> None:
        pass


class Odd(Bare):
    over: ClassVar[Any] = "page"


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (dict, "expected a ctxexp.Metric, got dict"),
        (Hasty, r"Hasty.__init__ leaves its base's out: begin it with super\(\).__init__\(\)"),
        (Odd, "over='page'; expected one of .*word.*"),
    ],
)
def test_what_is_no_metric_is_refused(factory: Callable[[], Metric], message: str) -> None:
    with pytest.raises(MetricError, match=f"^metric 'm': {message}$"):
        build("m", factory)
    assert isinstance(build("m", Bare), Bare)


class Gives(Baseline):
    name = "gives"

    def __init__(self, groups: Callable[[], Iterator[list[Any]]]) -> None:
        self.given = groups

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        return map(np.asarray, self.given())


def drawn(*groups: list[Any], endless: bool = False) -> list[list[int]]:
    _, occurrences = small(["a", "b"], ["a", "c"])
    given = partial(itertools.cycle, groups) if endless else partial(iter, groups)
    found = baseline_levels.random_groups(Gives(given), occurrences, np.random.default_rng(0))
    return [rows.tolist() for rows in found]


def test_random_groups_are_any_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_levels, "MAX_GROUPS", 3)
    assert drawn([0]) == [[0]]
    assert drawn([0, 3], [1, 1], [2]) == [[0, 3], [1, 1], [2]]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "gave no group, or an empty one"),
        ([[0], [-1, 2]], r"gave .*; expected numbers of rows, from 0 to 3"),
        ([[0], [1, 4]], r"gave .*; expected numbers of rows, from 0 to 3"),
        ([[True]], r"gave .*; expected numbers of rows, from 0 to 3"),
    ],
)
def test_other_groups_are_refused(groups: list[list[Any]], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_levels, "MAX_GROUPS", 3)
    with pytest.raises(MetricError, match=f"^baseline 'gives' {message}$"):
        drawn(*groups)


def test_groups_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_levels, "MAX_GROUPS", 3)
    with pytest.raises(MetricError, match="gave more than 3 groups"):
        drawn([0], endless=True)
