"""Units, replicates of curves and their intervals, each against the plain way to compute it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ctxexp import Corpus, Pair, Sentence
from ctxexp.maths import Curve, Resamples, interval, resampling
from ctxexp.maths.statistics import finite_mean
from ctxexp.occurrences import units_of


def test_units_are_documents_where_the_corpus_has_them() -> None:
    sentences = tuple(Sentence.of(text.split()) for text in ("a b", "c", "a b", "d", "e"))
    place = np.array([0, 1, 0, 3, 4])  # the third repeats the first
    rows, sentence = np.array([0, 1, 2, 0, 1, 5]), np.array([0, 0, 1, 2, 2, 4])  # rows 3 and 4 aren't measured
    units = units_of(Corpus("plain", sentences), place, rows, sentence, 6)
    assert (units.name, units.n, units.n_blocks) == ("sentence", 4, 4)
    assert units.of_sentence.tolist() == [0, 1, 0, 2, 3]
    assert units.of_row.tolist() == [0, 0, 1, -1, -1, 3]
    units = units_of(Corpus("told", sentences, documents=(7, 7, 9, 9, 9)), place, rows, sentence, 6)
    assert (units.name, units.n) == ("document", 2)
    assert units.of_sentence.tolist() == [0, 0, 0, 1, 1]
    assert units.of_row.tolist() == [0, 0, 0, -1, -1, 1]


def test_sentences_that_gold_pairs_link_are_one_cluster() -> None:
    """Through a sentence that stands twice too; unless most of the text would be one, or documents are known."""
    sentences = tuple(Sentence.of([text]) for text in "abcdebfgh")
    links = Corpus("told", sentences, tuple(Pair(a, b, 1.0, "all") for a, b in ((0, 1), (5, 2), (3, 4))))
    place = np.array([0, 1, 2, 3, 4, 1, 6, 7, 8])
    units = units_of(links, place, np.arange(9), np.arange(9), 9)
    assert (units.name, units.n) == ("group of paired sentences", 5)
    assert units.of_sentence.tolist() == [0, 0, 0, 1, 1, 0, 2, 3, 4]
    alike = tuple(Pair(a, a + 1, 1.0, "all") for a in range(8))
    assert units_of(replace(links, pairs=alike), place, np.arange(9), np.arange(9), 9).name == "sentence"
    known = units_of(replace(links, documents=(0,) * 9), place, np.arange(9), np.arange(9), 9)
    assert (known.name, known.n, known.pair_group) == ("document", 1, None)


def test_a_row_belongs_to_its_first_sentences_cluster() -> None:
    sentences = tuple(Sentence.of([text]) for text in "abc")
    units = units_of(Corpus("shared", sentences), np.arange(3), np.array([0, 0, 1]), np.array([0, 1, 2]), 2)
    assert units.of_row.tolist() == [0, 2]


def test_many_units_share_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "MOST", 3)
    sentences = tuple(Sentence.of([text]) for text in "abcde")
    units = units_of(Corpus("many", sentences), np.arange(5), np.arange(5), np.arange(5), 5)
    assert (units.n, units.n_blocks, units.of_sentence.tolist()) == (5, 3, [0, 1, 2, 0, 1])
    summed = units.sum_by_block(units.of_row, np.array([1.0, 2, np.nan, 4, 8]))
    np.testing.assert_array_equal(summed, [5, 10, 0])


@pytest.mark.parametrize("at_once", [1, 20, 2**21])
def test_replicates_of_a_mean_average_the_same_draws(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widened by Student's factor, which large samples hardly are."""
    monkeypatch.setattr(resampling, "COUNTS", at_once)
    y = np.random.default_rng(1).normal(size=(2, 7))
    units = resampling.Units("sentence", 7, np.arange(7), np.arange(7))
    curve = Curve(y.mean(axis=1), (y - y.mean(axis=1, keepdims=True)) / 7)
    got = Resamples(units, 15, np.random.default_rng(0)).of(curve)
    drawn = np.concatenate(list(resampling.counts(7, 15, np.random.default_rng(0))))
    assert got.shape == (2, 15)
    assert (drawn.sum(axis=1) == 7).all()
    means = curve.value[:, None] + (y @ drawn.T / 7 - curve.value[:, None]) * Resamples.student(7)
    np.testing.assert_allclose(got, means, atol=1e-6)
    shifted = Resamples(units, 15, np.random.default_rng(0)).of(Curve(curve.value, curve.influence + 1))
    np.testing.assert_allclose(shifted, got, atol=1e-6)  # as many units are drawn as there are
    other = Curve(2 * curve.value, 3 * curve.influence)
    np.testing.assert_allclose((other - curve).value, curve.value)
    np.testing.assert_allclose((other - curve).influence, 2 * curve.influence)


def test_one_cluster_has_no_known_spread() -> None:
    curve = Curve(np.ones(2), np.zeros((2, 1)))
    units = resampling.Units("sentence", 1, np.zeros(1, int), np.zeros(1, int))
    assert np.isnan(Resamples(units, 3, np.random.default_rng(0)).of(curve)).all()
    two = resampling.Units("sentence", 2, np.arange(2), np.arange(2))
    assert Resamples(two, 0, np.random.default_rng(0)).of(Curve(np.ones(2), np.zeros((2, 2)))).shape == (2, 0)
    assert np.isfinite(Resamples(two, 3, np.random.default_rng(0)).of(Curve(np.ones(2), np.zeros((2, 2))))).all()


def test_students_factor_is_his_quantiles() -> None:
    for n, rel in ((4, 1e-2), (6, 2e-3), (12, 1e-4), (100, 1e-6)):
        exact = stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975) * np.sqrt(n / (n - 1))
        assert Resamples.student(n) == pytest.approx(exact, rel=rel)


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
