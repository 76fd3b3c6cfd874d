"""Correlations against scipy and scikit-learn, partial ones against regression, resamples against the plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ctxexp.maths import interval, midranks, partial_correlation, resampled_spearman, resamples, spearman
from ctxexp.maths.statistics import pearson


def columns(seed: int, n: int = 60, ties: int = 0) -> np.ndarray:
    """Three correlated columns (3, n); with `ties`, so many distinct values each."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, n)) + rng.normal(size=n)
    return np.round(x * ties / 6) if ties else x


@pytest.mark.parametrize("ties", [0, 3, 20])
def test_correlations_are_scipys(ties: int) -> None:
    x, y, _ = columns(1, ties=ties)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-13)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-13)
    np.testing.assert_array_equal(midranks(x), stats.rankdata(x))


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_pearson_doesnt_mind_units(scale: float) -> None:
    x, y, _ = columns(3)
    assert pearson(x * scale, y) == pytest.approx(pearson(x, y), abs=1e-12)
    assert pearson(x, y * scale) == pytest.approx(pearson(x, y), abs=1e-12)


def test_the_fewest_values_that_are_defined() -> None:
    two, three = np.array([1.0, 3.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(two, two) == 1
    assert pearson(two, -two) == -1
    np.testing.assert_allclose(np.ravel(interval(np.array([[1.0, np.nan, 2.0]]))), (1.025, 1.975))
    # Three drawn of five pairs, once each.
    counts, x = np.array([[1.0, 0, 1, 0, 1], [2, 0, 0, 0, 0]]), np.arange(5.0)
    rho = resampled_spearman([x, np.array([1.0, 9, 3, 9, 2])], counts)[:, 0, 1]
    np.testing.assert_allclose(rho, [spearman(x[:3], three), np.nan])


def test_correlations_never_leave_their_bounds() -> None:
    """Where they are 1 or -1 rounding goes past them now and then; and three correlations need not agree."""
    rng, n = np.random.default_rng(0), 40
    x = rng.normal(size=(300, n))
    y = x * rng.choice([-1, 1], (300, 1)) * rng.uniform(1, 3, (300, 1))
    counts = rng.multinomial(n, np.ones(n) / n, 300).astype(np.float64)
    for values in (
        np.array([pearson(a, b) for a, b in zip(x, y, strict=True)]),
        resampled_spearman([x[0], -x[0]], counts),
    ):
        assert np.abs(values).max() == 1
        np.testing.assert_allclose(np.abs(values), 1)
    assert partial_correlation(0.9, -0.9, 0.9) == 1
    assert partial_correlation(-0.9, 0.9, 0.9) == -1


def test_undefined_is_nan() -> None:
    x, constant = np.arange(5.0), np.full(5, 2.5)
    for value in (
        spearman(x, constant),
        pearson(constant, x),
        spearman(x[:1], x[:1]),
        spearman(x[:2], x[:2]),  # of two pairs it is always 1 or -1
        spearman(x[:0], x[:0]),
        interval(np.array([[1.0, np.nan]]))[0],
    ):
        assert np.isnan(value)
    assert np.isnan(resampled_spearman([x, constant], np.ones((2, 5)))[:, 0, 1]).all()
    assert np.isnan(resampled_spearman([x[:2], x[1:3]], np.ones((2, 2)))).all()
    assert np.isnan(partial_correlation(0.5, 1.0, 0.5))


@pytest.mark.parametrize("ties", [0, 4])
def test_resampled_statistics_are_those_of_the_drawn_pairs(ties: int) -> None:
    """The plain loop: repeat each pair as often as it was drawn, and ask scipy."""
    x, y, z = columns(7, n=25, ties=ties)
    (counts,) = resamples([10, 15], 40, np.random.default_rng(8))
    rho = resampled_spearman([x, y, z], counts)
    for row, got in zip(counts.astype(int), rho, strict=True):
        drawn = [np.repeat(c, row) for c in (x, y, z)]
        np.testing.assert_allclose(got, stats.spearmanr(np.stack(drawn, axis=1)).statistic, atol=1e-12)


def test_resamples_draw_as_many_from_each_stratum_by_the_seed() -> None:
    drawn = np.concatenate(list(resamples([3, 0, 400], 2000, np.random.default_rng(9))))
    assert drawn.shape == (2000, 403)
    assert (drawn[:, :3].sum(1) == 3).all()
    assert (drawn[:, 3:].sum(1) == 400).all()
    assert drawn[:, :3].mean() == pytest.approx(1, abs=1e-12)
    assert drawn.mean(0)[3:].std() < 0.04  # each as likely as the others: sqrt(1 / 2000) = .022
    again = np.concatenate(list(resamples([3, 0, 400], 2000, np.random.default_rng(9))))
    np.testing.assert_array_equal(drawn, again)
    assert list(resamples([4], 0, np.random.default_rng(0))) == []
    assert list(resamples([], 5, np.random.default_rng(0))) == []


def test_a_partial_correlation_is_that_of_residuals() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=200)
    x, y = z + rng.normal(size=200), 0.3 * z + rng.normal(size=200)  # z explains unequal shares of them
    left = [values - np.polyval(np.polyfit(z, values, 1), z) for values in (x, y)]
    assert partial_correlation(pearson(x, y), pearson(x, z), pearson(y, z)) == pytest.approx(pearson(*left), abs=1e-12)
