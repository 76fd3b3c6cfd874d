"""The smallest groups that have a score, and those just below: what one row more or less makes of each function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from test_influence import CASES

from ctxexp.maths import influence
from ctxexp.maths.geometry import explained_variance, mean_cosine, mean_cosine_to_mean
from ctxexp.metrics.sense_separation import _influence

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


def test_two_rows_have_an_influence_where_one_row_has_a_score() -> None:
    two = np.stack([A, 2 * B])[None]
    assert np.isnan(influence.of_mean_cosine(two)).all()  # one pair: nothing can be left out
    assert np.isfinite(influence.of_mean_cosine_to_mean(two)).all()
    assert np.isfinite(influence.of_explained_variance(two)).all()
    assert np.isnan(influence.by_leaving_out(two, mean_cosine)).all()


def test_three_rows_have_each_ones_share_of_the_mean_cosine() -> None:
    """The pseudo-values of leaving one of three rows out, which leaves the cosine of the other two."""
    x = np.random.default_rng(0).normal(size=(3, 5))
    left = np.array([float(mean_cosine(np.delete(x, i, axis=0))) for i in range(3)])
    expected = -(left - left.mean()) * np.sqrt(2 / 3)
    np.testing.assert_allclose(influence.of_mean_cosine(x[None])[0], expected, atol=1e-12)
    np.testing.assert_allclose(influence.by_leaving_out(x[None], mean_cosine)[0], expected, atol=1e-12)


@pytest.mark.parametrize("labels", ["aaabb", "aabb", "aaaabbc", "aabbcc"])
def test_a_sense_of_two_occurrences_moves_the_separation(labels: str) -> None:
    """Against the pairs that are left without each row; a sense of one occurrence has no pair of its own and is out."""
    x = np.random.default_rng(1).normal(size=(len(labels), 6)) + 1
    at = [i for i, label in enumerate(labels) if labels.count(label) > 1]
    u = x / np.linalg.norm(x, axis=1, keepdims=True)

    def separation(rows: list[int]) -> float:
        pairs = [(i, j) for i in rows for j in rows if i < j]
        same = [u[i] @ u[j] for i, j in pairs if labels[i] == labels[j]]
        cross = [u[i] @ u[j] for i, j in pairs if labels[i] != labels[j]]
        return float(np.mean(same) - np.mean(cross))

    moved = np.array([separation(at) - separation([i for i in at if i != out]) for out in at])
    got = _influence(tuple(labels), x)
    np.testing.assert_allclose(got[at], (moved - moved.mean()) * np.sqrt((len(at) - 1) / len(at)), atol=1e-12)
    assert (got[at] != 0).all()
    assert not np.delete(got, at).any()
