"""Intervals against the truth, on planted corpora: a few replicates of what benchmarks/interval_coverage.py tabulates.

With so few, how wide intervals are is told apart better than how often they hold: widths of resampled words were up to
five times the true ones, those of resampled sentences, where documents are what is independent, little over a half.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from engine import measure

from ctxexp.baselines import OnePerSentence
from ctxexp.dataset import Corpus
from ctxexp.measuring.bootstrap import MOST
from ctxexp.measuring.occurrences import Occurrences

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from interval_coverage import CURVES, METRICS, World, coverage, of_words

WORDS = 0.8 * np.random.default_rng(0).normal(size=(15, 8))


@pytest.mark.parametrize("size", [1, 5])
def test_intervals_are_about_as_wide_as_they_should_be(size: int) -> None:
    rngs = (np.random.default_rng([size, i]) for i in range(25))
    found = coverage([of_words(rng, WORDS, n=75, size=size, bootstrap=100) for rng in rngs])
    for key in CURVES:
        held, width = found[key]
        most = 3 if "centred" in key else 1.9  # the spectrum about the mean has no first direction of its own here
        assert 0.65 < width < most, (key, width)
        assert held > 0.75, (key, held)


def test_documents_are_drawn_whole_where_they_are_known() -> None:
    world = World(np.random.default_rng(0), n=60, size=6, words=WORDS)
    alone = Corpus("alone", world.corpus.sentences)
    widths, values = {}, []
    for corpus in (world.corpus, alone):
        occurrences = Occurrences.of(world, corpus)
        found = measure(world, occurrences, METRICS, OnePerSentence(size=60, redraws=0, exact=True), seed=0)
        widths[found.info.resampled.unit] = {
            key: float((found.by_name[f"{key}_ci_high"] - found.by_name[f"{key}_ci_low"])[0]) for key in CURVES
        }
        assert found.info.resampled.n == (10 if corpus.documents else 60)
        values.append(found.by_name["self_similarity/raw"][0])
    assert values[0] == values[1]  # what is drawn anew moves the interval alone
    key = "intra_sentence_similarity/raw"
    assert widths["document"][key] > 1.3 * widths["sentence"][key]


def test_blocks_hold_many_units() -> None:
    world = World(np.random.default_rng(0), n=MOST + 5, size=1, words=WORDS)
    units = Occurrences.of(world, world.corpus).units
    assert (units.name, units.n, units.n_blocks) == ("sentence", MOST + 5, MOST)
    assert units.of_sentence[:6].tolist() == [*units.of_sentence[MOST:].tolist(), 5]
    assert len(units.of_sentence) == MOST + 5
