"""The smallest groups that have a score, and those just below: what one row more or less makes of each function."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from test_influence import CASES

from ctxexp.maths import finite_mean, influence, mean_cosine
from ctxexp.maths.geometry import explained_variance, mean_cosine_to_mean
from ctxexp.maths.statistics import aggregate, summary

A, B = np.array([3.0, 4.0, 0.0]), np.array([4.0, 3.0, 0.0])


def test_two_rows_have_one_cosine() -> None:
    assert mean_cosine(np.stack([A, B])) == pytest.approx(24 / 25)
    # To the mean of two unit rows: cos of half the angle, sqrt((1 + c) / 2); these have one length.
    assert mean_cosine_to_mean(np.stack([A, B])) == pytest.approx(np.sqrt((1 + 24 / 25) / 2))
    # X'X has the eigenvalues 25 (1 +- c): the first one's share is (1 + c) / 2.
    assert explained_variance(np.stack([A, B])[None])[0] == pytest.approx((1 + 24 / 25) / 2)
    assert explained_variance(np.stack([A, B])[None], definition="centred")[0] == pytest.approx(1)


@pytest.mark.parametrize("score", [mean_cosine, mean_cosine_to_mean])
def test_one_row_has_no_score(score: Callable[[np.ndarray], np.ndarray]) -> None:
    assert np.isnan(score(A[None, None])).tolist() == [True]


@pytest.mark.parametrize("name", CASES)
def test_one_row_has_no_influence(name: str) -> None:
    """NaN in the group's shape, without a division by zero."""
    got = CASES[name][1](np.stack([A[None], B[None]]))
    assert got.shape == (2, 1)
    assert np.isnan(got).all()


def test_two_rows_have_an_influence_and_one_a_score() -> None:
    two = np.stack([A, 2 * B])[None]
    assert np.isnan(influence.of_mean_cosine(two)).all()  # one pair: nothing can be left out
    assert np.isfinite(influence.of_mean_cosine_to_mean(two)).all()
    assert np.isfinite(influence.of_explained_variance(two)).all()
    assert (influence.of_explained_variance(np.arange(1.0, 5)[None, :, None]) == 0).all()  # one column explains all
    no_columns = influence.of_explained_variance(np.ones((3, 4, 0)))
    assert np.isnan(no_columns).all()
    assert no_columns.shape == (3, 4)
    none = influence.jackknife(np.concatenate([two] * 3), mean_cosine)
    assert np.isnan(none).all()
    assert none.shape == (3, 2)


def test_three_rows_have_each_ones_share_of_the_mean_cosine() -> None:
    """The pseudo-values of leaving one of three rows out, which leaves the cosine of the other two."""
    x = np.random.default_rng(0).normal(size=(3, 5))
    left = np.array([float(mean_cosine(np.delete(x, i, axis=0))) for i in range(3)])
    expected = -(left - left.mean()) * np.sqrt(2 / 3)
    np.testing.assert_allclose(influence.of_mean_cosine(x[None])[0], expected, atol=1e-12)
    np.testing.assert_allclose(influence.jackknife(x[None], mean_cosine)[0], expected, atol=1e-12)


def test_a_summary_of_few_values_omits_undefined_parts() -> None:
    assert summary(np.array([5.0, 1.0])) == pytest.approx({"raw": 3, "median": 3, "sd": np.sqrt(8), "n": 2})
    assert summary(np.array([5.0])) == pytest.approx({"raw": 5, "median": 5, "sd": np.nan, "n": 1}, nan_ok=True)
    none = {"raw": np.nan, "median": np.nan, "sd": np.nan, "n": 0}
    assert summary(np.array([])) == pytest.approx(none, nan_ok=True)


def test_a_summary_knows_no_order_to_the_last_bit() -> None:
    values = np.array([1e16, 1.0, -1e16, 3.0])
    assert len({summary(values[list(order)])["raw"] for order in itertools.permutations(range(4))}) == 1


def test_weights_count_as_repeated_scores_do() -> None:
    scores, weights = np.array([0.3, 0.1, np.nan, 0.9, 0.2]), np.array([2, 1, 5, 3, 1])
    got = aggregate(scores, weights.astype(float))
    repeated = np.repeat(scores[[0, 1, 3, 4]], weights[[0, 1, 3, 4]])
    assert got["raw"] == pytest.approx(repeated.mean())
    assert got["median"] == pytest.approx(np.median(repeated))
    assert got["sd"] == pytest.approx(repeated.std() * np.sqrt(4 / 3))
    assert (got["n"], got["undefined"]) == (4, 1)
    two = aggregate(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    assert two["sd"] == pytest.approx(np.repeat([1.0, 3.0], [1, 3]).std() * np.sqrt(2))
    assert np.isnan(aggregate(scores[:1], weights[:1].astype(float))["sd"])
    equal = aggregate(scores, np.ones(5))
    assert {name: equal[name] for name in ("raw", "sd")} == pytest.approx(
        {name: aggregate(scores)[name] for name in ("raw", "sd")}
    )


def test_means_leave_out_what_is_undefined() -> None:
    values, weights = np.array([[1.0, np.nan], [4.0, np.nan], [np.nan, 6.0]]), np.array([[1.0], [3.0], [5.0]])
    np.testing.assert_array_equal(finite_mean(values), [2.5, 6.0])
    np.testing.assert_array_equal(finite_mean(values, weights), [13 / 4, 6.0])
    np.testing.assert_array_equal(finite_mean(values, axis=1), [1.0, 4.0, 6.0])
    assert np.isnan(finite_mean(np.full((2, 1), np.nan))).all()
