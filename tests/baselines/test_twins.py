"""Baselines of twins: classes that are pooled, bands of frequency, the laws of a baseline, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ctxexp.errors import ConfigError
from ctxexp.maths.resampling import Units
from ctxexp.occurrences import Groups
from ctxexp.testing import check
from ctxexp.twins import FrequencyMatched, PositionMatched, Twins, bands, pool, strata_level
from tests.composed import composed


@pytest.mark.parametrize("scheme", [PositionMatched, FrequencyMatched])
def test_they_keep_the_laws_of_a_baseline(scheme: Callable[[], Twins]) -> None:
    check("baseline", scheme)


def test_neighbouring_classes_are_pooled_until_they_suffice() -> None:
    assert pool(np.array([5, 1, 1, 4, 0, 9, 1]), 5).tolist() == [0, 1, 1, 1, 2, 2, 2]
    assert pool(np.array([1, 1]), 5).tolist() == [0, 0]
    assert pool(np.array([7, 7, 7]), 5).tolist() == [0, 1, 2]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_no_word_rules_its_band(share: float) -> None:
    counts = np.random.default_rng(1).zipf(1.4, 3000).clip(max=5000)
    band = bands(counts, share)
    assert band.max() > 2
    for b in range(band.max() + 1):
        inside = counts[band == b]
        assert inside.max() <= share * inside.sum()
        assert b == 0 or inside.max() <= counts[band == b - 1].min()
    assert bands(np.array([9, 1, 1]), 0.2).tolist() == [0, 0, 0]  # no band would do: one is all there is


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("position_matched baseline.twins=0", r"baseline\.twins=0: expected at least 1"),
        ("frequency_matched baseline.share=1.5", r"baseline\.share=1\.5: expected at most 1"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed(*f"baseline={words}".split())


def test_the_mean_level_and_its_influence_weigh_groups() -> None:
    """Both are linear in the weights: those of one group alone add up to those of all."""
    rng = np.random.default_rng(0)
    x, strata = rng.normal(size=(60, 8)) + 1, rng.integers(0, 3, 60)
    rows, starts = np.arange(60), np.array([0, 4, 10, 30])
    units = Units("sentence", 20, np.arange(20), rows // 3)
    occurrences: Any = SimpleNamespace(units=units)
    groups = Groups(["a", "b", "c"], starts, rng.permutation(60)[:30])
    weights = np.array([0.5, 0.2, 0.3])
    alone = [
        strata_level(x.__getitem__, occurrences, groups.subset(np.array([i])), rows, strata).influence for i in range(3)
    ]
    for given, w in ((weights, weights), (None, np.full(3, 1 / 3))):
        made = strata_level(x.__getitem__, occurrences, groups, rows, strata, given)
        np.testing.assert_allclose(made.influence, w @ np.stack(alone), atol=1e-6)
        assert np.abs(made.influence).max() > 1e-3
