"""The smallest texts, what a level brings along, and metrics and baselines that answer amiss."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from ctxexp import Baseline, GroupMean, Metric, Occurrences
from ctxexp.errors import MetricError
from ctxexp.maths import Stream
from ctxexp.measuring import baseline_levels
from ctxexp.measuring.record import checked_metrics
from ctxexp.results import Key
from tests.measuring_helpers import measure, small, world
from tests.shipped import (
    MaxExplainableVariance,
    OnePerSentence,
    SizeMatched,
    WordNorm,
)


class LengthOfSample(WordNorm):
    """A measure without scores of groups that has a level of its own making."""

    def baseline_value(self, x: np.ndarray) -> float:
        return float(np.linalg.norm(x, axis=-1).mean())


def test_a_measure_without_groups_scores_is_held_against_the_sample() -> None:
    """Whatever the baseline gives to groups that have scores."""
    store, occurrences, _ = world()
    baseline = SizeMatched(size=40)
    results = measure(store, occurrences, {"length": LengthOfSample, "bare": WordNorm}, baseline, seed=3, bootstrap=0)
    rows = next(iter(baseline.groups(occurrences, np.random.default_rng([3, Stream.BASELINE]))))
    level = np.array([float(np.linalg.norm(layer[rows], axis=-1).mean()) for layer in store.layers])
    raw = results.by_key[Key("length", "raw")].value
    np.testing.assert_allclose(results.by_key[Key("length", "baseline")].value, level, rtol=1e-6)
    np.testing.assert_allclose(results.by_key[Key("length", "adjusted")].value, raw - level, rtol=1e-4)
    assert Key("bare", "baseline") not in results.by_key


class OfMany(GroupMean):
    """How many rows a group has, where that is at least five."""

    over = "word"
    min_rows = 5

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), float(x.shape[-2]))


@pytest.mark.parametrize(("size", "known"), [(4, False), (5, True)])
def test_a_random_group_too_small_is_no_level(size: int, known: bool) -> None:
    store, occurrences, _ = world((1.0,))
    results = measure(store, occurrences, {"m": OfMany}, OnePerSentence(size=size), bootstrap=0)
    assert (Key("m", "baseline") in results.by_key) == known
    assert not known or results.by_key[Key("m", "baseline")].value.tolist() == [size]


def test_rounding_is_no_spread_of_the_smallest_random_group() -> None:
    store, occurrences, _ = world((1.0,))
    steps = np.random.default_rng(0).integers(-1, 2, store.layers[0].shape)
    store.layers[0] = (1 + 2.0**-8 * steps).astype(np.float32)
    metric = partial(MaxExplainableVariance, definition="centred", baselines=("run",))
    for eps, known in ((None, True), (2.0**-8, False)):
        results = measure(
            store, occurrences, {"m": metric}, OnePerSentence(size=metric().min_rows), eps=eps, bootstrap=0
        )
        assert (Key("m", "baseline") in results.by_key) == known


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


class Hasty(OfMany):
    def __init__(self) -> None:
        pass


class Odd(Bare):
    over = "page"


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
        checked_metrics({"m": factory()})
    assert checked_metrics({"m": (bare := Bare())}) == {"m": bare}


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


def test_random_groups_are_any_rows_there_are_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_levels, "MAX_GROUPS", 3)
    assert drawn([0, 3], [1, 1], [2]) == [[0, 3], [1, 1], [2]]
    with pytest.raises(MetricError, match=r"^baseline 'gives' gave no group, or an empty one$"):
        drawn()
    for odd in ([-1, 2], [1, 4], [True]):
        with pytest.raises(MetricError, match=r"^baseline 'gives' gave .*; expected numbers of rows, from 0 to 3$"):
            drawn([0], odd)
    with pytest.raises(MetricError, match="gave more than 3 groups"):
        drawn([0], endless=True)
