"""Areas under ROC curves and partial correlations: where they are undefined, and resamples against the loop."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_measures.calibration.edit_distance import partial_spearman
from ctxexp_measures.calibration.qnli import auc, resampled_auc
from sklearn.metrics import roc_auc_score

from ctxexp.maths import partial_correlation, resampled_spearman, resamples


def columns(seed: int, n: int = 60, ties: int = 0) -> np.ndarray:
    """Three correlated columns (3, n); with `ties`, so many distinct values each."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, n)) + rng.normal(size=n)
    return np.round(x * ties / 6) if ties else x


def test_undefined_is_nan() -> None:
    x = np.arange(5.0)
    values = (
        partial_spearman(x, x, np.full(5, 2.5)),
        partial_spearman(x, x**2, x[::-1]),
        auc(x, np.ones(5, bool)),
        auc(x[:0], np.ones(0, bool)),
    )
    assert np.isnan(values).all()


@pytest.mark.parametrize("ties", [0, 4])
def test_resampled_statistics_are_those_of_the_drawn_pairs(ties: int) -> None:
    x, y, z = columns(7, n=25, ties=ties)
    (counts,) = resamples([10, 15], 40, np.random.default_rng(8))
    rho, area = resampled_spearman([x, y, z], counts), resampled_auc(x, y > 0, counts)
    for row, got, got_area in zip(counts.astype(int), rho, area, strict=True):
        drawn = [np.repeat(c, row) for c in (x, y, z)]
        by_hand = pytest.approx(partial_spearman(*drawn), abs=1e-11)
        assert partial_correlation(got[0, 1], got[0, 2], got[1, 2]) == by_hand
        assert got_area == pytest.approx(roc_auc_score(drawn[1] > 0, drawn[0]), abs=1e-12)
