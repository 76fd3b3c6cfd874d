"""Nearest neighbours against the double loop far from the origin, where there are few, and of rows without a value."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_measures.frequency.neighbours import NeighbourMeasure, nearest

from ctxexp.errors import MetricError


def double_loop(x: np.ndarray, by: NeighbourMeasure, k: int) -> np.ndarray:
    """(n, k) values from the definition, best first."""
    x = x.astype(np.float64)
    found = np.full((len(x), k), np.nan)
    for i, a in enumerate(x):
        values = []
        for j, b in enumerate(x):
            if i == j:
                continue
            if by == "l2":
                values.append(float(np.linalg.norm(a - b)))
            elif by == "dot":
                values.append(-float(a @ b))
            elif np.linalg.norm(a) and np.linalg.norm(b):
                values.append(-float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))
        best = np.sort(values)[:k] * (1 if by == "l2" else -1)
        found[i, : len(best)] = best
    return found


@pytest.mark.parametrize("by", ["l2", "dot", "cosine"])
def test_near_ties_far_from_the_origin_are_still_exact(by: NeighbourMeasure) -> None:
    """Rows that float32 products can't tell apart: spread 1e-3 about a mean of length 300, and one long row that
    spoils the scale of the centred rows."""
    rng = np.random.default_rng(3)
    x = 1e-3 * rng.normal(size=(200, 8)) + 100.0 * np.array([1, -1, 1, 1, 0, 2, 1, 0])
    x[0] *= -5
    got = nearest(x, k=5, by=[by], chunk_bytes=8 * 200 * 13)[by]  # 13 queries at a time
    expected = double_loop(x, by, 5)
    np.testing.assert_allclose(got.values[1:], expected[1:], rtol=1e-9, atol=0 if by == "l2" else 1e-14)


def test_fewer_rows_than_neighbours_and_zero_rows_are_nan() -> None:
    x = np.array([[1.0, 0], [0, 2], [0, 0], [1, 1]])
    found = nearest(x, k=5)
    assert np.isnan(found["l2"].values[:, 3:]).all()
    assert (found["l2"].rows[:, 3:] == -1).all()
    assert np.isfinite(found["l2"].values[:, :3]).all()
    np.testing.assert_allclose(found["cosine"].values, double_loop(x, "cosine", 5), rtol=1e-12)
    assert (found["cosine"].rows[2] == -1).all()
    assert np.isnan(found["cosine"].mean(3)).all()
    np.testing.assert_allclose(found["cosine"].mean(2)[3], np.sqrt(0.5))
    for empty in (nearest(x[:1], k=2), nearest(x, k=2, queries=np.array([], np.int64))):
        assert all(np.isnan(n.values).all() for n in empty.values())


def test_rows_that_are_not_finite_are_refused() -> None:
    with pytest.raises(MetricError, match="NaN or infinity; leave those rows out"):
        nearest(np.full((3, 2), np.inf), k=1)
