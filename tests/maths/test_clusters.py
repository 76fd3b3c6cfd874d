"""k-means: seeded, as good as many beginnings make it, never more clusters than different rows."""

from __future__ import annotations

import numpy as np

from ctxexp.maths import kmeans


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
