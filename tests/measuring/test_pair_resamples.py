"""Which gold pairs are drawn together, and what that does to an interval."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.measuring.pair_resamples import components, replicates_of, resampled_unit

APART = np.arange(12).reshape(6, 2)
CHAIN = np.array([[0, 1], [1, 2], [5, 6], [7, 8], [9, 5], [3, 4], [20, 21]])
STAR = np.array([[0, i] for i in range(1, 6)] + [[8, 9]])


def test_pairs_that_share_a_sentence_are_one_group() -> None:
    assert components(CHAIN).tolist() == [0, 0, 1, 2, 1, 3, 4] or len(set(components(CHAIN)[[0, 1]])) == 1
    group = components(CHAIN)
    assert group[0] == group[1]
    assert group[2] == group[4]
    assert len(set(group.tolist())) == 5
    assert components(APART).tolist() == list(range(6))
    assert len(components(APART[:0])) == 0


def test_what_is_drawn_follows_the_pairs() -> None:
    assert resampled_unit([APART]) == "pair"
    assert resampled_unit([APART, CHAIN]) == "group of pairs"
    assert resampled_unit([STAR, APART]) == "sentence"
    assert resampled_unit([APART[:1]]) == "pair"
    assert resampled_unit([APART[:0]]) == "pair"


def test_groups_are_drawn_whole_within_their_stratum() -> None:
    drawn: list[np.ndarray] = []
    kept = lambda counts: drawn.append(counts) or {"n": counts.sum(axis=1)}  # type: ignore[func-returns-value]  # noqa: E731
    replicates_of([APART, CHAIN], 50, np.random.default_rng(0), kept)
    counts = np.concatenate(drawn)
    assert counts.shape == (50, 13)
    assert (counts[:, :6].sum(axis=1) == 6).all()
    np.testing.assert_array_equal(counts[:, 6], counts[:, 7])
    np.testing.assert_array_equal(counts[:, 8], counts[:, 10])


@pytest.mark.parametrize(("hard", "rel"), [(0.0, 0.25), (1.0, 0.25)])
def test_the_spread_is_the_true_one_where_sentences_are_in_many_pairs(hard: float, rel: float) -> None:
    """Means of values with sentences' and pairs' own parts: over fresh sentences, against the replicates' spread."""
    rng = np.random.default_rng(1)
    n, degree = 60, 5
    ends = np.concatenate([rng.permutation(n).reshape(-1, 2) for _ in range(degree)])
    assert resampled_unit([ends]) == "sentence"
    values = hard * rng.normal(size=(4000, n))[:, ends].sum(axis=2) + rng.normal(size=(4000, len(ends)))
    true, found = values.mean(axis=1).std(), []
    for y in values[:20]:
        mean = lambda counts, y=y: {"mean": counts @ y / counts.sum(axis=1)}  # noqa: E731
        found.append(replicates_of([ends], 300, np.random.default_rng(2), mean)["mean"].std())
    assert np.mean(found) == pytest.approx(true, rel=rel)
