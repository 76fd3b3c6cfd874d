"""Clusters, replicates and intervals against the plain way to compute them; pairs drawn together; streams of a seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from ctxexp_compare.contract import ComparisonStream

from ctxexp import Corpus, Pair, Sentence
from ctxexp.maths import Curve, Resamples, Stream, interval, resamples, resampling
from ctxexp.maths.resampling import _narrow, pair_groups, replicates_of, resampled_cluster
from ctxexp.maths.statistics import finite_mean
from ctxexp.occurrences import clusters_of


def test_units_are_documents_where_the_corpus_has_them() -> None:
    sentences = tuple(Sentence.of(text.split()) for text in ("a b", "c", "a b", "d", "e"))
    place = np.array([0, 1, 0, 3, 4])  # the third repeats the first
    rows, sentence = np.array([0, 1, 2, 0, 1, 5]), np.array([0, 0, 1, 2, 2, 4])  # rows 3 and 4 aren't measured
    clusters = clusters_of(Corpus("plain", sentences), place, rows, sentence, 6)
    assert (clusters.name, clusters.n, clusters.n_blocks) == ("sentence", 4, 4)
    assert clusters.of_sentence.tolist() == [0, 1, 0, 2, 3]
    assert clusters.of_row.tolist() == [0, 0, 1, -1, -1, 3]
    clusters = clusters_of(Corpus("told", sentences, documents=(7, 7, 9, 9, 9)), place, rows, sentence, 6)
    assert (clusters.name, clusters.n) == ("document", 2)
    assert clusters.of_sentence.tolist() == [0, 0, 0, 1, 1]
    assert clusters.of_row.tolist() == [0, 0, 0, -1, -1, 1]


def test_sentences_that_gold_pairs_link_are_one_cluster() -> None:
    """Through a sentence that stands twice too; unless most of the text would be one, or documents are known."""
    sentences = tuple(Sentence.of([text]) for text in "abcdebfgh")
    links = Corpus("told", sentences, tuple(Pair(a, b, 1.0, "all") for a, b in ((0, 1), (5, 2), (3, 4))))
    place = np.array([0, 1, 2, 3, 4, 1, 6, 7, 8])
    clusters = clusters_of(links, place, np.arange(9), np.arange(9), 9)
    assert (clusters.name, clusters.n) == ("group of paired sentences", 5)
    assert clusters.of_sentence.tolist() == [0, 0, 0, 1, 1, 0, 2, 3, 4]
    alike = tuple(Pair(a, a + 1, 1.0, "all") for a in range(8))
    assert clusters_of(replace(links, pairs=alike), place, np.arange(9), np.arange(9), 9).name == "sentence"
    known = clusters_of(replace(links, documents=(0,) * 9), place, np.arange(9), np.arange(9), 9)
    assert (known.name, known.n, known.pair_group) == ("document", 1, None)


def test_a_row_belongs_to_its_first_sentences_cluster() -> None:
    sentences = tuple(Sentence.of([text]) for text in "abc")
    clusters = clusters_of(Corpus("shared", sentences), np.arange(3), np.array([0, 0, 1]), np.array([0, 1, 2]), 2)
    assert clusters.of_row.tolist() == [0, 2]


def test_many_units_share_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "MOST", 3)
    sentences = tuple(Sentence.of([text]) for text in "abcde")
    clusters = clusters_of(Corpus("many", sentences), np.arange(5), np.arange(5), np.arange(5), 5)
    assert (clusters.n, clusters.n_blocks, clusters.of_sentence.tolist()) == (5, 3, [0, 1, 2, 0, 1])
    summed = clusters.sum_by_block(clusters.of_row, np.array([1.0, 2, np.nan, 4, 8]))
    np.testing.assert_array_equal(summed, [5, 10, 0])


@pytest.mark.parametrize("at_once", [1, 20, 2**21])
def test_replicates_of_a_mean_average_the_same_draws(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widened by Student's factor, which large samples hardly are."""
    monkeypatch.setattr(resampling, "COUNTS", at_once)
    y = np.random.default_rng(1).normal(size=(2, 7))
    clusters = resampling.Clusters("sentence", 7, np.arange(7), np.arange(7))
    curve = Curve(y.mean(axis=1), (y - y.mean(axis=1, keepdims=True)) / 7)
    got = Resamples(clusters, 15, np.random.default_rng(0)).of(curve)
    drawn = np.concatenate(list(resampling.draw_counts(7, 15, np.random.default_rng(0))))
    assert got.shape == (2, 15)
    assert (drawn.sum(axis=1) == 7).all()
    means = curve.value[:, None] + (y @ drawn.T / 7 - curve.value[:, None]) * Resamples.student(7)
    np.testing.assert_allclose(got, means, atol=1e-6)
    shifted = Resamples(clusters, 15, np.random.default_rng(0)).of(Curve(curve.value, curve.influence + 1))
    np.testing.assert_allclose(shifted, got, atol=1e-6)  # as many clusters are drawn as there are
    other = Curve(2 * curve.value, 3 * curve.influence)
    np.testing.assert_allclose((other - curve).value, curve.value)
    np.testing.assert_allclose((other - curve).influence, 2 * curve.influence)


def test_one_cluster_has_no_known_spread() -> None:
    curve = Curve(np.ones(2), np.zeros((2, 1)))
    clusters = resampling.Clusters("sentence", 1, np.zeros(1, int), np.zeros(1, int))
    assert np.isnan(Resamples(clusters, 3, np.random.default_rng(0)).of(curve)).all()
    two = resampling.Clusters("sentence", 2, np.arange(2), np.arange(2))
    assert Resamples(two, 0, np.random.default_rng(0)).of(Curve(np.ones(2), np.zeros((2, 2)))).shape == (2, 0)
    assert np.isfinite(Resamples(two, 3, np.random.default_rng(0)).of(Curve(np.ones(2), np.zeros((2, 2))))).all()


def test_intervals_means_and_weighted_means_leave_out_what_is_undefined() -> None:
    values = np.random.default_rng(0).normal(size=(4, 50))
    values[1, 3:] = np.nan
    values[2, 1:] = np.nan
    values[3, 2:] = np.nan
    low, high = interval(values)
    for i in (0, 1, 3):
        expected = np.percentile(values[i][np.isfinite(values[i])], [2.5, 97.5])
        assert (low[i], high[i]) == pytest.approx(tuple(expected))
    assert np.isnan([low[2], high[2]]).all()  # one value spreads nowhere
    assert np.isnan(interval(np.full((2, 3), np.nan))).all()
    np.testing.assert_allclose(finite_mean(np.array([[1.0, np.nan], [3, np.nan]])), [2, np.nan])
    levels = np.array([[1.0, np.nan, 4], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(finite_mean(levels, np.array([1.0, 5, 2]), axis=-1), [3, np.nan])


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
    assert resampled_cluster([APART]) == "pair"
    assert resampled_cluster([APART, CHAIN]) == "group of pairs"
    assert resampled_cluster([STAR, APART]) == "sentence"
    assert resampled_cluster([APART[:1]]) == "pair"
    assert resampled_cluster([APART[:0]]) == "pair"
    assert resampled_cluster([STAR[:2]]) == "sentence"  # two pairs of one sentence are all of their stratum
    assert resampled_cluster([np.concatenate([STAR[:3], APART[3:]])]) == "group of pairs"  # three of six aren't most
    assert resampled_cluster([np.concatenate([STAR[:4], APART[3:]])]) == "sentence"


def counts_of(strata: list[np.ndarray], n: int) -> np.ndarray:
    """How often each pair was drawn (n, pairs)."""
    drawn = []
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
    assert resampled_cluster([ends]) == "sentence"
    values = hard * rng.normal(size=(4000, n))[:, ends].sum(axis=2) + rng.normal(size=(4000, len(ends)))
    true, found = values.mean(axis=1).std(), []
    for y in values[:20]:
        mean = lambda counts, y=y: {"mean": counts @ y / counts.sum(axis=1)}  # noqa: E731
        found.append(replicates_of([ends], 300, np.random.default_rng(2), mean)["mean"].std())
    assert np.mean(found) == pytest.approx(true, rel=rel)


def test_streams_are_told_apart() -> None:
    drawn = [np.random.default_rng([3, stream]).random(4) for stream in Stream]
    assert all(not np.isclose(a, b).any() for a, b in combinations(drawn, 2))
    assert 0 not in list(Stream)
    assert not {int(stream) for stream in Stream} & {int(stream) for stream in ComparisonStream}
