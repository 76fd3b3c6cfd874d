"""Made-up spaces, and what transforms make of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np


def cloud(n: int = 600, d: int = 12, *, seed: int = 0, mean: float = 5.0) -> np.ndarray:
    """Rows (n, d) float32 with correlated columns, variances over four orders of magnitude, far from the origin."""
    rng = np.random.default_rng(seed)
    turn = rotation(d, seed + 1)
    x = rng.normal(size=(n, d)) * np.geomspace(10, 0.1, d) @ turn + mean * rng.normal(size=d)
    return x.astype(np.float32)


def rotation(d: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]  # type: ignore[no-any-return]


def cosines(x: np.ndarray) -> np.ndarray:
    """Cosine of every two rows, in float64."""
    u = x.astype(np.float64)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return (u @ u.T)[np.triu_indices(len(x), 1)]


def mapped(factory: Callable[[], Any], x: np.ndarray) -> np.ndarray:
    y = factory().fit(x).apply(x)
    assert y.dtype == np.float32
    return y  # type: ignore[no-any-return]


def planted(n: int = 400, d: int = 24, *, dominant: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows `A z + m` of an ill-conditioned A with `dominant` strong directions and a large m; the cosines of the z."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=(n, d))
    strength = np.geomspace(1, 0.3, d)
    strength[:dominant] = 3
    x = z @ (rotation(d, 1) * strength @ rotation(d, 2)) + 10 * rng.normal(size=d)
    return x.astype(np.float32), cosines(z)


def check_memory(factory: Callable[[], Any]) -> None:
    """Fitting many rows, and moving some at a time, hold less than a copy of all in float64."""
    x = cloud(50_000, 128)
    tracemalloc.start()
    try:
        fitted = factory().fit(x)
        in_fit = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        for at in range(0, len(x), 5000):
            fitted.apply(x[at : at + 5000])
        in_apply = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert in_fit < 1.1 * x.nbytes  # a copy in float64 would be 2
    assert in_apply < 1.1 * x.nbytes


def check_no_rows_and_views(factory: Callable[[], Any], name: str) -> None:
    """No rows give no rows, and a view that isn't contiguous what its copy gives."""
    x = cloud()
    fitted = factory().fit(x)
    assert len(fitted.apply(x[:0])) == 0, name
    np.testing.assert_allclose(fitted.apply(x[::-2]), fitted.apply(x[::-2].copy()), atol=1e-4, err_msg=name)
