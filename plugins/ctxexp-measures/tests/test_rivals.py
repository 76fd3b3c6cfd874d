"""Weighted removal, ranks and clusters: against their definitions, on spaces with a known answer, and turned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.calibration.clusterwise import Clusterwise, kmeans
from ctxexp_measures.calibration.rank import Rank
from ctxexp_measures.calibration.weighted_removal import WeightedRemoval
from scipy.stats import rankdata, spearmanr

from ctxexp.errors import ConfigError, TransformError
from ctxexp.testing import check
from tests.clouds import cloud, cosines, mapped, rotation
from tests.shipped import AllButTheTop

CLOSED: dict[str, Callable[[], Any]] = {
    "weighted_removal": partial(WeightedRemoval, 3),
    "clusterwise": Clusterwise,
    "rank": Rank,
}


def test_weighted_removal_takes_its_share_of_each_direction() -> None:
    x = cloud()
    wide = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    u, s, vt = np.linalg.svd(wide, full_matrices=False)

    def by_hand(weights: Any) -> np.ndarray:
        left = np.ones(len(s))
        left[: len(weights)] -= weights
        return (u * s * left) @ vt  # type: ignore[no-any-return]

    np.testing.assert_allclose(mapped(partial(WeightedRemoval, 4), x), by_hand(s[:4] / s[0]), atol=2e-5)
    given = [1.0, 0.25, 0]
    np.testing.assert_allclose(mapped(partial(WeightedRemoval, weights=given), x), by_hand(given), atol=2e-5)
    ones = mapped(partial(WeightedRemoval, weights=[1, 1]), x)
    np.testing.assert_allclose(ones, mapped(partial(AllButTheTop, 2), x), atol=1e-6)
    assert not mapped(partial(WeightedRemoval, weights=[1.0, 1.0]), np.ones((5, 4), np.float32)).any()


# Rank.


def test_ranks_are_scipys_and_their_cosine_is_spearmans_correlation() -> None:
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=(40, 9)), rng.integers(0, 4, (60, 9)), np.zeros((2, 9)), rng.normal(size=(3, 1))):
        x = x.astype(np.float32)
        expected = rankdata(x, axis=1) - (x.shape[1] + 1) / 2
        np.testing.assert_array_equal(mapped(Rank, x), expected)
    x = rng.integers(0, 6, (8, 30)).astype(np.float32)
    expected = spearmanr(x.astype(np.float64), axis=1).statistic[np.triu_indices(8, 1)]
    np.testing.assert_allclose(cosines(mapped(Rank, x)), expected, atol=1e-12)


# Clusterwise.


def lumps() -> tuple[np.ndarray, np.ndarray]:
    """Rows (900, 10) in three separate clusters, stretched along directions of its own, and the cluster of each."""
    rng = np.random.default_rng(0)
    parts = []
    for c in range(3):
        shape = rng.normal(size=(300, 10)) * [5, 3, 1, 1, 1, 1, 1, 1, 1, 1]
        parts.append(shape @ rotation(10, 10 + c) + 60 * rotation(10, 20)[c])
    order = rng.permutation(900)
    return np.concatenate(parts).astype(np.float32)[order], np.repeat(np.arange(3), 300)[order]


def test_clusterwise_is_all_but_the_top_in_the_cluster_whose_centre_is_nearest() -> None:
    x, label = lumps()
    seen, unseen = x[:600], x[600:]
    fitted = Clusterwise(3, components=2).fit(seen)
    y = fitted.apply(unseen)
    for c in range(3):
        own = AllButTheTop(2).fit(seen[label[:600] == c])
        np.testing.assert_allclose(y[label[600:] == c], own.apply(unseen[label[600:] == c]), atol=1e-4)


def test_k_means_finds_planted_clusters_and_no_better_move() -> None:
    x, label = lumps()
    origin = x.mean(axis=0, dtype=np.float64)
    for seed in range(5):
        centres = kmeans(x, origin, 3, seed) + origin
        means = np.stack([x[label == c].mean(axis=0, dtype=np.float64) for c in range(3)])
        order = [int(np.linalg.norm(centres - m, axis=1).argmin()) for m in means]
        assert sorted(order) == [0, 1, 2]
        np.testing.assert_allclose(centres[order], means, atol=1e-5)
    noise = cloud(500)
    centres = kmeans(noise, np.zeros(12), 7, 1)
    mine = ((noise[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    again = np.stack([noise[mine == c].mean(axis=0, dtype=np.float64) for c in range(7)])
    np.testing.assert_allclose(centres, again, atol=1e-5)  # a fixed point: each centre is the mean of its own
    np.testing.assert_array_equal(kmeans(noise, np.zeros(12), 7, 1), centres)
    assert np.abs(kmeans(noise, np.zeros(12), 7, 2) - centres).max() > 0.1


def test_clusters_too_small_for_their_directions_are_dissolved() -> None:
    x, _ = lumps()
    lonely = x.copy()
    lonely[:4] = 200  # four equal rows, far away: a cluster without a direction
    fitted = Clusterwise(4, components=2).fit(lonely)
    assert len(fitted.centres) == 3
    assert fitted.record() == {"clusters": [3]}
    assert np.abs(fitted.means).max() < 100  # the four are in one of the three
    assert all(u.shape == (10, 2) for u in fitted.directions)
    few = Clusterwise(27, components=2).fit(x[:20])
    assert all(u.shape == (10, 2) for u in few.directions)
    assert len(few.centres) < 4


@pytest.mark.parametrize("factory", CLOSED.values(), ids=CLOSED)
def test_the_contract(factory: Callable[[], Any]) -> None:
    assert not check("transform", factory).failures


def test_there_are_as_many_weights_as_directions() -> None:
    with pytest.raises(ConfigError, match="1 weights for k=2 directions; give one each"):
        WeightedRemoval(2, weights=[1.0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (partial(WeightedRemoval, weights=[1.0] * 13), r"k=13 of 12 columns would leave nothing"),
        (partial(Clusterwise, components=11), r"20 rows are too few to remove 11 directions .* at least 24"),
    ],
)
def test_what_the_rows_do_not_allow_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(TransformError, match=message):
        build().fit(cloud(20))
