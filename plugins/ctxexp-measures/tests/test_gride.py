"""GRIDE: against the likelihood as printed, TwoNN, known dimensions, noise at small scales, laws and edges."""

from __future__ import annotations

import doctest
from functools import partial
from math import lgamma

import ctxexp_measures.isotropy as iso
import numpy as np
import pytest
from ctxexp_measures.isotropy import generalized_ratios as module
from ctxexp_measures.isotropy.generalized_ratios import SCALES

from ctxexp import Group
from ctxexp.errors import MetricError
from ctxexp.testing import check


def value(x: np.ndarray, n1: int = 16, redraws: int = 0) -> dict[str, float]:
    metric = iso.Gride(n1=n1, redraws=redraws)
    metric.update(Group(0, x))
    return metric.compute()


def log_density(mu: np.ndarray, d: float, n1: int, n2: int) -> np.ndarray:
    """Log of the density of ratios as the paper prints it, in powers of mu."""
    log_beta = lgamma(n2 - n1) + lgamma(n1) - lgamma(n2)
    result: np.ndarray = np.log(d) - log_beta - (d * (n2 - 1) + 1) * np.log(mu)
    return result + (n2 - n1 - 1) * np.log(mu**d - 1) if n2 - n1 > 1 else result


def test_it_keeps_a_metrics_laws_and_declared_invariances() -> None:
    check("metric", partial(iso.Gride, n1=2, redraws=1))
    check("metric", partial(iso.Gride, n1=1))


def test_the_example_runs() -> None:
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 0


@pytest.mark.parametrize("n1", [1, 2, 8, 64])
def test_the_printed_density_is_one_and_that_of_a_beta(n1: int) -> None:
    log_mu = np.linspace(1e-9, 40 / n1, 400_001)
    mu = np.exp(log_mu)
    density = np.exp(log_density(mu, 3.0, n1, 2 * n1)) * mu  # by log mu
    assert np.trapezoid(density, log_mu) == pytest.approx(1, abs=1e-4)
    drawn = np.log(np.random.default_rng(n1).beta(n1, n1, size=200_000)) / -3
    assert np.trapezoid(density * log_mu, log_mu) == pytest.approx(drawn.mean(), rel=0.02)


@pytest.mark.parametrize("n1", [1, 2, 4, 16])
@pytest.mark.parametrize("dim", [2, 7])
def test_the_root_is_the_maximum_by_a_grid(dim: int, n1: int) -> None:
    distances = iso.neighbour_distances(np.random.default_rng(dim).normal(size=(200, dim)), 2 * n1)
    mu = distances[:, 2 * n1 - 1] / distances[:, n1 - 1]
    grid = np.arange(0.5, 12, 0.005)
    best = grid[np.argmax([log_density(mu, d, n1, 2 * n1).sum() for d in grid])]
    assert iso.gride(distances, n1) == pytest.approx(best, abs=0.0051)


@pytest.mark.parametrize("n1", SCALES)
def test_the_dimension_of_ratios_is_found(n1: int) -> None:
    """Ratios drawn from the likelihood itself: within four of its standard errors, at low and high dimensions."""
    rng = np.random.default_rng(n1)
    for d in (0.5, 3.0, 200.0):
        mu = rng.beta(n1, n1, size=20_000) ** (-1 / d)
        distances = np.ones((len(mu), 2 * n1))
        distances[:, 2 * n1 - 1] = mu
        assert iso.gride(distances, n1) == pytest.approx(d, rel=4 / np.sqrt(20_000))


def test_scale_one_is_two_nn_by_maximum_likelihood() -> None:
    x = np.random.default_rng(0).normal(size=(500, 6))
    near = iso.neighbour_distances(x, 2)
    assert iso.gride(near, 1) == pytest.approx(500 / np.log(near[:, 1] / near[:, 0]).sum(), rel=1e-12)
    assert value(x)["scale_1"] == pytest.approx(iso.gride(near, 1), rel=1e-12)
    assert iso.two_nn(near) == pytest.approx(iso.gride(near, 1), rel=0.1)  # the paper's fit of the same ratios


@pytest.mark.parametrize(("dim", "tolerance"), [(2, 0.08), (5, 0.15), (10, 0.25)])
def test_known_dimensions(dim: int, tolerance: float) -> None:
    """Cubes and Gaussians in 30 dimensions; what is short of 5 and 10 are the edges, where neighbours lie on one
    side."""
    rng = np.random.default_rng(dim)
    turn = np.linalg.qr(rng.normal(size=(30, dim)))[0]
    for inside in (rng.uniform(size=(2000, dim)), rng.normal(size=(2000, dim))):
        got = value(inside @ turn.T)
        for n1 in (1, 4, 16):
            assert got[f"scale_{n1}"] == pytest.approx(dim, rel=tolerance)
        assert got["raw"] == got["scale_16"]


def test_high_dimensions_fall_short_as_stated() -> None:
    assert value(np.random.default_rng(0).normal(size=(1000, 50)))["raw"] == pytest.approx(23, abs=1)


def test_noise_is_a_high_dimension_at_small_scales_alone() -> None:
    rng = np.random.default_rng(0)
    x = np.zeros((2000, 10))
    x[:, :2] = rng.uniform(size=(2000, 2))
    got = value(x + 0.005 * rng.normal(size=x.shape), n1=64)
    assert got["scale_1"] > 4
    assert got["raw"] == pytest.approx(2, rel=0.15)
    assert all(got[f"scale_{a}"] > got[f"scale_{2 * a}"] for a in (1, 2, 4, 8))
    assert value(x)["scale_1"] == pytest.approx(2, rel=0.1)  # it is the noise


def test_rotation_shift_and_scale() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 8))
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    got, moved, larger = value(x), value(x @ turn + 7), value(250 * x)
    assert moved == pytest.approx(got, rel=1e-6, nan_ok=True)
    assert larger["radius"] == pytest.approx(250 * got["radius"])
    for key in set(got) - {"radius"}:
        assert larger[key] == pytest.approx(got[key], rel=1e-6, nan_ok=True)


def test_radius_is_the_mean_distance_of_the_further_neighbour() -> None:
    x = np.random.default_rng(1).normal(size=(60, 3))
    distances = [sorted(float(np.linalg.norm(a - b)) for b in x)[8] for a in x]  # itself is the first
    assert value(x, n1=4)["radius"] == pytest.approx(np.mean(distances))


def test_equal_rows_and_too_few() -> None:
    x = np.random.default_rng(2).normal(size=(100, 4)).astype(np.float32)
    twice = value(np.concatenate([x, x[:30]]))
    assert twice["duplicates"] == 30
    assert {**twice, "duplicates": 0} == pytest.approx(value(x), rel=1e-6, nan_ok=True)
    assert np.isfinite(twice["scale_32"])
    assert np.isnan(twice["scale_64"])
    few = value(x[:32])  # neighbour 32 takes 33 rows
    assert np.isnan(few["raw"])
    assert np.isnan(few["radius"])
    assert np.isfinite(few["scale_8"])
    assert np.isfinite(value(x[:33])["raw"])
    for rows in (np.zeros((50, 4)), np.full((50, 4), np.nan), np.ones((2, 4)), np.ones((1, 4))):
        got = value(rows)
        assert all(np.isnan(got[key]) for key in ("raw", "radius", *(f"scale_{n1}" for n1 in SCALES)))
    assert np.isnan(iso.Gride().compute()["raw"])
    assert np.isnan(value(np.eye(40))["raw"])  # all distances equal: no ratio


def test_the_spread_is_that_of_the_redraws() -> None:
    rng = np.random.default_rng(3)
    metric, samples = iso.Gride(n1=4, redraws=2), rng.normal(size=(4, 60, 5))
    for key, x in enumerate(samples):
        metric.update(Group(key, x))
    each = [value(x, n1=4)["raw"] for x in samples]
    assert metric.compute()["raw"] == each[0]
    assert metric.compute()["sd"] == pytest.approx(np.std(each[1:3], ddof=1))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(MetricError, match="gride n1=3: expected one of 1, 2, 4, 8, 16, 32, 64"):
        iso.Gride(n1=3)
    for n1 in (0, 2):
        with pytest.raises(MetricError, match=f"gride n1={n1}: expected 1 or more, and 2 n1 neighbours"):
            iso.gride(np.ones((5, 3)), n1)
