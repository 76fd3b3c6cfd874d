"""Groups' first directions against LAPACK's, on both sides of each size where the way to them changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

from ctxexp.maths.geometry import explained_variance
from ctxexp.maths.spectra import Spread

EPS = float(np.finfo(np.float32).eps)


def block(n: int, d: int) -> np.ndarray:
    """(3, n, d) float32 rows off the origin: groups of a leading direction, of hardly any, and of few directions."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(3, n, d))
    x[0] *= 1 + 20 * np.eye(d)[1]
    x[2, :, 3:] = 0
    return (x + 4 * np.eye(d)[0]).astype(np.float32)


def spread_of(x: np.ndarray) -> Any:
    return Spread(x, x.sum(axis=1, dtype=np.float64), EPS)


SIZES = [(16, 24), (17, 24), (60, 16), (128, 200), (129, 200), (300, 128), (700, 129)]


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_first_directions_equal_lapacks(n: int, d: int) -> None:
    x = block(n, d)
    spread = spread_of(x)
    for i, rows in enumerate(x.astype(np.float64)):
        about_mean = rows - rows.mean(axis=0)
        for got, reference in ((spread.centred_direction, about_mean), (spread.raw_direction, rows)):
            u, s, v = np.linalg.svd(reference, full_matrices=False)
            assert got.value[i] == pytest.approx(s[0] ** 2, rel=1e-6)
            assert got.variance[i] == pytest.approx(np.square(about_mean @ v[0]).sum(), rel=1e-3)
            assert abs(u[:, 0] @ got.projections[i]) == pytest.approx(s[0], rel=1e-3)


def planted(n: int, d: int, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, d) float32 rows, two of whose directions stand out, the first (d,) of them as given."""
    basis = np.linalg.qr(np.column_stack([first, rng.standard_normal((d, d - 1))]))[0].T
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    return (left * np.r_[1, 0.99, rng.uniform(0, 0.1, d - 2)] @ basis).astype(np.float32)


def test_no_start_hides_the_first_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start that the iteration took becomes one that the next group's first direction has no share of."""
    starts, solve = [], scipy.sparse.linalg.eigsh
    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", lambda *args, **kw: starts.append(kw["v0"]) or solve(*args, **kw))
    rng = np.random.default_rng(0)
    x = planted(300, 140, rng.standard_normal(140), rng)
    for _ in range(4):
        share = explained_variance(x[None])[0]
        s = np.linalg.svd(x.astype(np.float64), compute_uv=False)
        assert share == pytest.approx(s[0] ** 2 / (s**2).sum(), rel=1e-6)
        start = starts[-1] / np.linalg.norm(starts[-1])
        first = rng.standard_normal(140)
        x = planted(300, 140, first - start * (first @ start), rng)
    assert len(starts) == 4


@pytest.mark.parametrize(("n", "d"), [(5, 8), (9, 4), (30, 32), (150, 160)])
@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_values_grow_with_the_rows(n: int, d: int, scale: float) -> None:
    x = np.random.default_rng(n).normal(size=(3, n, d)).astype(np.float32)
    small, large = spread_of(x), spread_of(x * np.float32(scale))
    for a, b in ((small.centred_direction, large.centred_direction), (small.raw_direction, large.raw_direction)):
        np.testing.assert_allclose(b.value, a.value * scale**2, rtol=1e-5)
        np.testing.assert_allclose(np.abs(b.projections), np.abs(a.projections) * scale, rtol=0.01, atol=1e-3 * scale)
