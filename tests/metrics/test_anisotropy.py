"""The histogram of random pairs' cosines, against the double loop; the tables that a run leaves."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_measures.frequency.degeneration import statistics

from ctxexp import Group
from ctxexp.maths import geometry as cosines_of_pairs
from ctxexp.metrics import similarity
from tests import naive
from tests.shipped import Anisotropy


@pytest.mark.parametrize(("n", "block"), [(2, 7), (90, 7), (90, 1024)])
def test_the_histogram_is_the_double_loops(n: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosines_of_pairs, "BLOCK", block)
    x = np.random.default_rng(n).normal(0.3, 1, size=(n, 6)).astype(np.float32)
    cosines = np.array(naive.cosines(x))
    counts, positive = cosines_of_pairs.histogram(x)
    assert counts.tolist() == np.histogram(cosines, 50, (-1, 1))[0].tolist()
    assert positive == pytest.approx((cosines > 0).mean())


def test_planted_rows() -> None:
    same = np.ones((10, 4), np.float32)
    counts, positive = cosines_of_pairs.histogram(same)
    assert (counts[-1], counts.sum(), positive) == (45, 45, 1)
    counts, positive = cosines_of_pairs.histogram(np.r_[same[:1], -same[:1]])
    assert (counts[0], counts.sum(), positive) == (1, 1, 0)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0]
    assert cosines_of_pairs.histogram(turn)[1] == 0  # orthogonal up to rounding: none is above 0
    assert statistics(turn, rows=100, seed=0)[0]["positive_pairs"] == 0  # the same number under both names
    assert cosines_of_pairs.histogram(np.random.default_rng(0).normal(5, 1, (30, 8)))[1] == 1


def test_zero_rows_and_lone_rows_are_undefined() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    counts, positive = cosines_of_pairs.histogram(np.r_[x, np.zeros((1, 3))])
    assert counts.tolist() == cosines_of_pairs.histogram(x)[0].tolist()
    assert np.isnan(positive)
    for none in (x[:1], x[:0]):
        assert cosines_of_pairs.histogram(none)[0].sum() == 0
        assert np.isnan(cosines_of_pairs.histogram(none)[1])


def test_of_many_occurrences_some_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "MAX_OCCURRENCES", 5)
    x = np.random.default_rng(0).normal(size=(9, 3))
    metric = Anisotropy()
    metric.update(Group(0, x))
    assert metric.outputs()["cosine_histogram"].counts.tolist() == cosines_of_pairs.histogram(x[::2])[0].tolist()
    assert metric.compute()["positive_pairs"] == cosines_of_pairs.histogram(x[::2])[1]
