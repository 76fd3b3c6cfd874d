"""Which gold pairs are drawn together, and what that does to an interval."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths import resamples
from ctxexp.maths.resampling import _narrow, pair_groups, replicates_of, resampled_unit

APART = np.arange(12).reshape(6, 2)
CHAIN = np.array([[0, 1], [1, 2], [5, 6], [7, 8], [9, 5], [3, 4], [20, 21]])
STAR = np.array([[0, i] for i in range(1, 6)] + [[8, 9]])


def test_pairs_that_share_a_sentence_are_one_group() -> None:
    group = pair_groups(CHAIN)
    assert group[0] == group[1]
    assert group[2] == group[4]
    assert len(set(group.tolist())) == 5
    assert pair_groups(APART).tolist() == list(range(6))
    assert len(pair_groups(APART[:0])) == 0


def test_what_is_drawn_follows_the_pairs() -> None:
    assert resampled_unit([APART]) == "pair"
    assert resampled_unit([APART, CHAIN]) == "group of pairs"
    assert resampled_unit([STAR, APART]) == "sentence"
    assert resampled_unit([APART[:1]]) == "pair"
    assert resampled_unit([APART[:0]]) == "pair"
    assert resampled_unit([STAR[:2]]) == "sentence"  # two pairs of one sentence are all of their stratum
    assert resampled_unit([np.concatenate([STAR[:3], APART[3:]])]) == "group of pairs"  # three of six aren't most
    assert resampled_unit([np.concatenate([STAR[:4], APART[3:]])]) == "sentence"


def counts_of(strata: list[np.ndarray], n: int) -> np.ndarray:
    """How often each pair was drawn (n, pairs)."""
    drawn: list[np.ndarray] = []
    kept = lambda counts: drawn.append(counts) or {"n": counts.sum(axis=1)}  # type: ignore[func-returns-value]  # noqa: E731
    replicates_of(strata, n, np.random.default_rng(0), kept)
    return np.concatenate(drawn)


def test_groups_are_drawn_whole_within_their_stratum() -> None:
    counts = counts_of([APART, CHAIN], 50)
    assert counts.shape == (50, 13)
    assert (counts[:, :6].sum(axis=1) == 6).all()
    np.testing.assert_array_equal(counts[:, 6], counts[:, 7])
    np.testing.assert_array_equal(counts[:, 8], counts[:, 10])
    counts = counts_of([APART[:1], APART[:0], APART[1:]], 50)
    assert counts.shape == (50, 6)
    assert (counts[:, 0] == 1).all()
    assert (counts[:, 1:].sum(axis=1) == 5).all()


def test_a_pair_counts_as_often_as_both_its_ends() -> None:
    (of_sentences,) = resamples([8], 40, np.random.default_rng(0))  # 0 to 5, 8 and 9
    ends = np.searchsorted([0, 1, 2, 3, 4, 5, 8, 9], STAR)
    np.testing.assert_array_equal(counts_of([STAR], 40)[:40], of_sentences[:, ends[:, 0]] * of_sentences[:, ends[:, 1]])


@pytest.mark.parametrize("scale", [1.1, 1.5, 3.0])
def test_narrowed_replicates_lose_at_most_twice_the_pairs_variance(scale: float) -> None:
    rng = np.random.default_rng(0)
    alone, wide = rng.normal(5, 1, 300), rng.normal(2, scale, 200)
    alone[7] = wide[:3] = np.nan
    got = _narrow(wide, alone)
    v, pairs = np.nanvar(wide), np.nanvar(alone)
    assert np.nanvar(got) == pytest.approx(max(v - 2 * pairs, pairs))
    assert np.nanmean(got) == pytest.approx(np.nanmean(alone))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wide))
    assert np.corrcoef(got[3:], wide[3:])[0, 1] == pytest.approx(1)


def test_replicates_are_narrowed_where_both_kinds_have_two_that_differ() -> None:
    nan, two = np.nan, np.array([1.0, 5.0, np.nan])
    assert np.nanvar(_narrow(two, np.array([3.0, nan, 4.0]))) == pytest.approx(4 - 2 * 0.25)
    for wide, alone in (
        (np.array([1.0, nan, nan]), np.array([3.0, 4.0, 5.0])),
        (two, np.array([3.0, nan, nan])),
        (np.array([2.0, 2.0, 2.0]), np.array([3.0, 4.0, 5.0])),
    ):
        np.testing.assert_array_equal(_narrow(wide, alone), wide)


@pytest.mark.parametrize(("hard", "rel"), [(0.0, 0.25), (1.0, 0.25)])
def test_the_spread_is_true_for_sentences_in_many_pairs(hard: float, rel: float) -> None:
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
