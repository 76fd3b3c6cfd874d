"""Sums over rows against plain loops, whatever parts they come in; what spectra with known answers give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ctxexp.maths import Moments, effective_rank, isoscore, participation_ratio, spectra


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
