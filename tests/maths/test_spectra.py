"""Sums over rows and what spectra with known answers give, against plain loops; k-means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ctxexp.maths import Moments, effective_rank, isoscore, kmeans, participation_ratio, spectra


def rows() -> np.ndarray:
    """A column of one value, one of zeros, one about 0, and a row without direction."""
    x = np.random.default_rng(0).normal(size=(9, 5)) * [1, 2, 3, 1, 1] + [0, 1, 2, 0, 0]
    x[:, 3] = 0
    x[4] = 0
    return x


@pytest.mark.parametrize("at_once", [2, 4, 100])
def test_moments_do_not_depend_on_the_parts(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "WIDENED", at_once)
    x = rows()
    for cut in (0, 1, 5, 9):
        moments, rest = Moments().add(x[:cut]), Moments().add(x[cut:])
        moments.merge(rest)
        known = x[np.linalg.norm(x, axis=1) > 0]
        unit = known / np.linalg.norm(known, axis=1, keepdims=True)
        cosines = [a @ b for a, b in itertools.combinations(unit, 2)]
        assert moments.mean_cosine() == pytest.approx(np.mean(cosines), abs=1e-12)
        centred = np.cov(x.T)
        raw = x.T @ x
        np.testing.assert_allclose(moments.trace_one_covariance(), centred / np.trace(centred), atol=1e-12)
        np.testing.assert_allclose(moments.trace_one_covariance(centred=False), raw / np.trace(raw), atol=1e-12)
        assert moments.nonzero_columns().tolist() == [True, True, True, False, True]


def test_the_fewest_rows() -> None:
    two = np.array([[3.0, 4], [4, 3]])
    assert Moments().add(two).mean_cosine() == pytest.approx(24 / 25)
    assert np.isnan(Moments().add(two[:1]).mean_cosine())
    assert np.isnan(Moments().add(np.array([[3.0, 4], [0, 0]])).mean_cosine())
    assert np.isnan(Moments().mean_cosine())
    # A column of ones varies nowhere, one of 1 and -1 has no mean: both are used.
    assert Moments().add(np.array([[1.0, 1, 0], [1, -1, 0]])).nonzero_columns().tolist() == [True, True, False]


def test_equal_and_infinite_rows_have_no_shape() -> None:
    rng = np.random.default_rng(1)
    for n in (3, 7, 50):
        assert np.isnan(Moments().add(np.full((n, 4), 0.1)).trace_one_covariance()).all()
    noise = rng.normal(size=(50, 4)) * [3, 2, 1, 1]
    expected = np.cov(noise.T) / np.trace(np.cov(noise.T))
    np.testing.assert_allclose(Moments().add(1 + 1e-8 * noise).trace_one_covariance(), expected, atol=1e-6)
    assert np.isnan(Moments().add(np.array([[1e200, 0], [-1e200, 0], [0, 1]])).trace_one_covariance()).all()


def test_dimensions_of_known_spectra() -> None:
    for k in (1, 2, 5):
        s = np.diag(np.r_[np.full(k, 0.3), np.zeros(6 - k)])
        assert participation_ratio(s) == pytest.approx(k)
        assert effective_rank(s) == pytest.approx(k)
        assert isoscore(s) == pytest.approx((k - 1) / 5)
    s = np.diag([3.0, 1.0])
    assert participation_ratio(s) == pytest.approx(16 / 10)
    assert isoscore(s) == pytest.approx(0.6)
    assert np.isnan(isoscore(np.eye(1)))
    for none in (np.zeros((0, 0)), np.full((2, 2), np.nan), np.diag([np.inf, 1])):
        assert np.isnan(participation_ratio(none))
        assert np.isnan(effective_rank(none))


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-9])
def test_singular_values_at_rounding_level_do_not_count(scale: float) -> None:
    """The square of a value beside the largest's: below its epsilon times their number it is rounding."""
    assert effective_rank(scale * np.array([1.0, 1, 1e-8])) == pytest.approx(2, abs=1e-12)
    p = np.array([1.0, 1, 1e-7])
    p /= p.sum()
    assert effective_rank(scale * np.array([1.0, 1, 1e-7])) == pytest.approx(np.exp(-(p * np.log(p)).sum()), abs=1e-10)
    assert effective_rank(scale * np.array([1.0, 0.25])) == pytest.approx(5 / 4**0.8)
    assert np.isnan(effective_rank(np.zeros(3)))
    assert np.isnan(effective_rank(np.zeros(0)))


def inertia(x: np.ndarray, labels: np.ndarray) -> float:
    return sum(float(((x[labels == c] - x[labels == c].mean(0)) ** 2).sum()) for c in np.unique(labels))


def test_seeds_repeat_clusters_and_more_starts_help() -> None:
    x = np.random.default_rng(4).normal(size=(120, 5))
    labels, centres = kmeans(x, 6, seed=1, starts=10)
    assert (labels == kmeans(x, 6, seed=1, starts=10)[0]).all()
    assert set(labels.tolist()) == set(range(6))
    np.testing.assert_allclose(centres, [x[labels == c].mean(0) for c in range(6)])
    assert inertia(x, labels) <= min(inertia(x, kmeans(x, 6, seed=seed)[0]) for seed in range(5)) * 1.02


def test_it_goes_on_until_no_row_changes_its_cluster() -> None:
    x = np.random.default_rng(0).uniform(size=(600, 2))
    labels, centres = kmeans(x, 12, seed=0)
    np.testing.assert_allclose(centres, [x[labels == c].mean(0) for c in range(12)])
    np.testing.assert_array_equal(labels, ((x[:, None] - centres) ** 2).sum(-1).argmin(1))
    early = kmeans(x, 12, seed=0, rounds=3)[0]
    assert not np.array_equal(labels, early)


def test_fewer_different_rows_than_clusters() -> None:
    x = np.repeat(np.eye(2), [5, 1], axis=0)
    labels, centres = kmeans(x, 3, seed=0)
    assert len(centres) == 2
    assert len(set(labels[:5].tolist()) & set(labels[5:].tolist())) == 0
    assert kmeans(np.ones((2, 3)), 5, seed=0)[0].tolist() == [0, 0]
