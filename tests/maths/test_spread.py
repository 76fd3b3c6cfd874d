"""The second moments of groups where an iteration isn't done in its steps, at any scale, and beside groups that are."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths import spectra
from ctxexp.maths.spectra import Spread

EPS = float(np.finfo(np.float32).eps)


def block(n: int, d: int) -> np.ndarray:
    """(2, n, d) float32 rows off the origin: one group of a leading direction, one of hardly any."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n, d))
    x[0] *= 1 + 20 * np.eye(d)[1]
    return (x + 4 * np.eye(d)[0]).astype(np.float32)


def spread_of(x: np.ndarray) -> Spread:
    return Spread(x, x.sum(axis=1, dtype=np.float64), EPS)


@pytest.mark.parametrize(("n", "d"), [(60, 64), (120, 200), (200, 256), (256, 256), (300, 40), (700, 24)])
@pytest.mark.parametrize("checks", [(2,), (12,), (60,)])
def test_eigenvalues_and_loads_equal_lapacks_after_any_steps(
    n: int, d: int, checks: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CHECKS", "CHECKS_CENTRED", "CHECKS_LARGE"):
        monkeypatch.setattr(spectra, name, checks)
    x = block(n, d)
    spread = spread_of(x)
    centred, raw = spread.solve_centred(), spread.solve_uncentred(with_variance=True)
    for i, rows in enumerate(x.astype(np.float64)):
        about_mean = rows - rows.mean(axis=0)
        u, s, v = np.linalg.svd(about_mean, full_matrices=False)
        assert centred[0][i] == pytest.approx(s[0] ** 2, rel=2e-4)
        assert abs(u[:, 0] @ centred[1][i]) == pytest.approx(s[0], rel=0.02)
        u, s, v = np.linalg.svd(rows, full_matrices=False)
        assert raw[0][i] == pytest.approx(s[0] ** 2, rel=2e-4)
        assert raw.variance[i] == pytest.approx(np.square(about_mean @ v[0]).sum(), rel=0.01)
        assert abs(u[:, 0] @ raw.projections[i]) == pytest.approx(s[0], rel=0.01)


@pytest.mark.parametrize(("n", "d"), [(5, 8), (9, 4), (30, 32)])
@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_loads_grow_with_the_rows(n: int, d: int, scale: float) -> None:
    x = np.random.default_rng(n).normal(size=(3, n, d)).astype(np.float32)
    small, large = spread_of(x), spread_of(x * np.float32(scale))
    np.testing.assert_allclose(large.solve_centred()[0], small.solve_centred()[0] * scale**2, rtol=1e-3)
    for projections, reference in (
        (large.solve_centred()[1], small.solve_centred()[1]),
        (large.solve_uncentred().projections, small.solve_uncentred().projections),
    ):
        np.testing.assert_allclose(np.abs(projections), np.abs(reference) * scale, rtol=0.01, atol=1e-3 * scale)
