"""Intervals against the truth, on planted corpora: a few replicates of what benchmarks.interval_coverage tabulates.

With so few, how wide intervals are is told apart better than how often they hold: widths of resampled words were up to
five times the true ones, those of resampled sentences, where documents are what is independent, little over a half.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ctxexp
from benchmarks.interval_coverage import CHEAP, VARIANCE, Known, coverage, of_text, planted
from ctxexp import Corpus
from tests.shipped import OnePerSentence

WORDS = 0.8 * np.random.default_rng(0).normal(size=(60, 8))
METRICS = {**CHEAP, **VARIANCE}
BANDS = {"words.bands": [1 / 300, 1 / 100, 1.0]}  # which so short a text fills


@pytest.mark.nightly
@pytest.mark.parametrize("size", [1, 5])
def test_intervals_are_about_as_wide_as_they_should_be(size: int) -> None:
    texts = [planted(np.random.default_rng([size, i]), WORDS, n=150, size=(size, size), topics=0) for i in range(25)]
    found = coverage([of_text(text, METRICS, bootstrap=100, **BANDS) for text in texts])
    assert {"self_similarity/share_of_room", "self_similarity/step", "anisotropy/mean_cosine"} <= found.keys()
    for key, (held, width) in found.items():
        most = 4 if "centred" in key else 1.9  # the spectrum about the mean has no first direction of its own here
        assert ((width > 0.65) & (width < most)).all(), (key, width)
        assert (held > 0.75).all(), (key, held)


def test_documents_are_drawn_whole_where_they_are_known(tmp_path: Path) -> None:
    world = planted(np.random.default_rng(0), WORDS, n=60, size=(6, 6), topics=0)
    bare = Corpus("bare", world.corpus.sentences)
    widths, values = {}, []
    for corpus in (world.corpus, bare):
        alone, options = (
            OnePerSentence(size=60, redraws=0, exact=True),
            {"cache.folder": tmp_path, "figures.explorer": 0},
        )
        found = ctxexp.measure(Known(world), corpus, metrics=METRICS, baseline=alone, options=options)
        ends = [found.by_name[f"intra_sentence_similarity/raw_ci_{end}"][0] for end in ("high", "low")]
        widths[found.info.resampled.unit] = ends[0] - ends[1]
        assert found.info.resampled.n == (10 if corpus.documents else 60)
        values.append(found.by_name["self_similarity/raw"][0])
    assert values[0] == values[1]  # what is drawn anew moves the interval alone
    assert widths["document"] > 1.3 * widths["sentence"]
