"""Lanczos iteration: where it stops, and that it says so where it could not."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths.lanczos import lanczos


def ritz(a: np.ndarray, start: np.ndarray, steps: int) -> tuple[float, float, float]:
    """Of the Krylov space of so many steps: the largest Ritz value, its pair's residual, its gap to the next value."""
    basis = start[:, None] / np.linalg.norm(start)
    for _ in range(steps - 1):
        basis = np.linalg.qr(np.column_stack([basis, a @ basis[:, -1]]))[0]
    values, vectors = np.linalg.eigh(basis.T @ a @ basis)
    v = basis @ vectors[:, -1]
    return values[-1], float(np.linalg.norm(a @ v - values[-1] * v)), values[-1] - (values[-2] if steps > 1 else 0)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize(("checks", "size"), [((1, 2, 3, 4, 5, 6), 12), ((2, 4, 7), 12), ((3, 9), 5)])
def test_lanczos_returns_a_pair_once_its_bound_is_met(checks: tuple[int, ...], size: int, vectors: bool) -> None:
    """Against Ritz values by QR. The loose tolerance makes the values of one step and the next differ."""
    rng, tolerance = np.random.default_rng(size), 0.02
    roots = rng.normal(size=(60, size, size)) * rng.uniform(0.3, 0.9, (60, 1, 1)) ** np.arange(size)
    a = 0.01 * roots @ roots.transpose(0, 2, 1)
    start = rng.normal(size=(60, size))
    start[:20] = np.linalg.eigh(a)[1][:20, :, -1] + 0.05 * start[:20]  # near the first eigenvector: soon found
    options = {"vectors": True} if vectors else {}
    got = lanczos(lambda v: np.einsum("wij,wj->wi", a, v), start, checks=checks, tolerance=tolerance, **options)
    taken_at = []
    for i in range(60):
        taken_at.append(0)  # not found
        for steps in sorted({min(c, size) for c in checks}):
            value, residual, gap = ritz(a[i], start[i], steps)
            if (residual / gap * value if vectors else min(residual, residual**2 / gap)) <= tolerance * value:
                v = got.vector[i]
                assert got.value[i] == pytest.approx(value, rel=1e-9)
                assert np.linalg.norm(a[i] @ v - value * v) == pytest.approx(residual, abs=1e-9 * value)
                taken_at[-1] = steps
                break
    np.testing.assert_array_equal(got.converged, np.array(taken_at) > 0)
    assert len(set(taken_at)) > 1


def test_lanczos_tells_what_it_could_not_find() -> None:
    """Two equal leading eigenvalues: the value is found, the vector is not."""
    eigenvalues = np.ones(64, np.float32)
    eigenvalues[:2] = 5
    start = np.ones((1, 64), np.float32)
    value = lanczos(lambda v: v * eigenvalues, start, checks=(4, 8))
    assert value.converged.all()
    assert value.value[0] == pytest.approx(5, rel=1e-6)
    close = np.linspace(1, 2, 64).astype(np.float32)
    close[-1] = close[-2] * (1 + 1e-6)
    assert not lanczos(lambda v: v * close, start, checks=(4, 8), vectors=True).converged.any()
