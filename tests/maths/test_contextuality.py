"""Contextuality from sums is that of pairs, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.maths.contextuality import Comparison, Uses, strata
from ctxexp.maths.loudness import LayerScale
from ctxexp.maths.word_mix import WordMix
from tests import naive


@pytest.mark.parametrize("all_places", [False, True])
@pytest.mark.parametrize(("first", "places", "dim"), [(0, 6, 40), (30, 6, 40), (0, 2, 12)])
def test_sums_give_what_pairs_give(first: int, places: int, dim: int, *, all_places: bool) -> None:
    rng = np.random.default_rng(first + places)
    sentences, n_words = 180 // places, 24
    word = rng.choice(n_words, (sentences, places), p=np.arange(n_words, 0, -1) / (n_words * (n_words + 1) / 2))
    place = np.tile(first + np.arange(places), sentences)
    document, neighbours = np.repeat(np.arange(sentences) // 2, places), rng.integers(5, size=word.size)
    x = 2 * rng.normal(size=(n_words, dim))[word.ravel()] + rng.normal(size=(word.size, dim))
    x += rng.normal(size=(99, dim))[place] + 20 * rng.normal(size=(word.size, 1)) * rng.normal(size=dim)
    mix = WordMix(bands=(1e-3, 0.04, 1)).of(np.bincount(word.ravel(), minlength=n_words), word.size)
    uses = Uses(form=word.ravel(), place=place, document=document, neighbours=neighbours, mix=mix)
    stratum = np.zeros_like(place) if all_places else strata(place)
    found = Comparison(uses, stratum).measure(LayerScale.of(x.astype(np.float32)).normalized(x)).value
    every = np.ones(n_words, bool)
    weights, shares = mix.by_band(every), mix.shares(every)
    assert len(weights) == 2
    expected = naive.contextuality(x, word.ravel(), place, document, neighbours, weights, shares, all_places=all_places)
    assert found == pytest.approx(expected, abs=2e-5)


def test_places_that_no_two_words_compare_are_taken_as_their_stratum_s() -> None:
    """Eight documents of jagged places, no context: most pairs of places have no two frequent words to tell them."""
    values = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        word = rng.choice(4000, 3200, p=(p := 1 / np.arange(1, 4001)) / p.sum())
        place = np.cumsum(rng.integers(1, 3, (8, 400)), axis=1).ravel()
        x = rng.normal(size=(4000, 96))[word] + rng.normal(size=(900, 96))[place]
        frequent = np.bincount(word)[word] >= 5
        form, counts = np.unique(word[frequent], return_inverse=True, return_counts=True)[1:]
        document = np.repeat(np.arange(8), 400)[frequent]
        mix = WordMix().of(counts, len(word), 5)
        uses = Uses(form=form, place=place[frequent], document=document, neighbours=np.arange(len(form)), mix=mix)
        scale = LayerScale.of(x.astype(np.float32))
        values.append(Comparison(uses, strata(uses.place)).measure(scale.normalized(x[frequent])).value)
    assert np.mean(values) == pytest.approx(0, abs=0.03)  # .2 where such places were taken for equal
