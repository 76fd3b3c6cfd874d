"""Corrections and thresholds of the lab's statistics, a row each, with a right value by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ctxexp_lab.first_word.words import near_zero
from ctxexp_lab.multiverse.joint import Statistic, _against_twin, _interval, _share_falling_between
from ctxexp_lab.multiverse.specifications import Specification
from ctxexp_lab.steps.command import _blame
from ctxexp_lab.steps.figure import overshoots

SOURCE: Any = SimpleNamespace(info=SimpleNamespace(shares_resamples=lambda _: True))


def falling(change: list[float]) -> Specification:
    """One whose resamples change so much from the first layer to the last."""
    drawn = np.array([np.zeros(len(change)), change])
    return Specification((), float(np.mean(change)), np.nan, np.nan, drawn.mean(axis=1), drawn, SOURCE)


def p_against_twins(n: int) -> float:
    """Of n resamples that all lie beyond the twin's."""
    own = [Statistic(name, 0.0, 0.0, 0.0, "", 0.0, 0.0, 1) for name in ("median effect", "share that falls")]
    return _against_twin([falling([-1.0] * n)], [falling([0.0] * n)], own)[0].p


def is_blamed(outer: float) -> bool:
    """Whether three checkpoints are out of order, the outer two so far apart and the others 1."""
    return any(_blame(np.array([[0.0, 1.0, outer], [1.0, 0.0, 1.0], [outer, 1.0, 0.0]]), [0, 1, 2]).values())


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "the data are one of the draws behind p": (lambda: p_against_twins(9), 0.1),
    "a fall lies below 0 in 97.5% of resamples": (
        lambda: [_share_falling_between([falling([-1.0] * (100 - n) + [1.0] * n)], 0, 1) for n in (4, 2)],
        [0, 1],
    ),
    "an interval leaves 2.5% out at either end": (lambda: _interval(np.arange(1001.0)), [25, 975]),
    "a curve overshoots by a tenth of its change": (
        lambda: [overshoots([0.0, top, 1.0]) for top in (1.09, 1.11)], [False, True],
    ),
    "checkpoints are out of order by a fiftieth": (lambda: [is_blamed(0.985), is_blamed(0.975)], [False, True]),
    "a layer within .05 of 0 is near": (lambda: near_zero(pd.Series([0.049, -0.049, 0.051, np.nan])), [2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right = ROWS[row][0](), ROWS[row][1]
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(right, float), rtol=1e-6)
