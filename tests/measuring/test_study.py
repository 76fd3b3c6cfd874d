"""A study: what it hands on to the places that it is measured in, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ctxexp
from ctxexp import Block, Corpus, EncodedSentence, Encoder, Group, Metric, Results, Sentence
from ctxexp.command import Experiment, configured
from ctxexp.maths import mean_cosine
from ctxexp.results import Key
from tests.measuring_helpers import Hashed, rows_by_key, sentences
from tests.shipped import Center, SelfSimilarity, Standardize

CORPUS = Corpus.of("text", sentences(40))


def experiment(
    folder: Path, *options: str, text: Corpus = CORPUS, encoder: Encoder | None = None, **choices: Any
) -> Experiment:
    progress = choices.pop("progress", None)
    usual = {"metrics": {"s": SelfSimilarity}, "bootstrap": 0}
    options = (f"cache.folder={folder / 'cache'}", "figures.explorer=0", *options)
    return Experiment(configured(encoder or Hashed(), text, options, **(usual | choices)), progress)


def ran(folder: Path, *options: str, **choices: Any) -> Results:
    return experiment(folder, *options, **choices).run(folder / "run")


def test_the_space_is_the_one_that_is_measured(tmp_path: Path) -> None:
    """Whatever sentences would be pooled to: they are no part of it."""
    results = ran(tmp_path, transform=Standardize)
    mine = experiment(tmp_path, "sentence.pooling=cls", "sentence.mixes=[[1,9]]", transform=Standardize)
    layers, occurrences, positions = mine.study.space(mine.vectors)
    words = rows_by_key(occurrences.by_word).values()
    for i, expected in enumerate(results.by_name["s/raw"]):
        weights = occurrences.mixed_words.weights(np.ones(len(words), bool))
        assert np.average([mean_cosine(layers.layer(i)[rows]) for rows in words], weights=weights) == pytest.approx(
            expected, abs=1e-6
        )
    assert sorted(positions.tolist()) == sorted(i for s in CORPUS.sentences for i in range(len(s)))


def test_a_text_that_fits_itself_counts_its_sentences_once(tmp_path: Path) -> None:
    twice = replace(CORPUS, sentences=CORPUS.sentences * 2)
    fit = ran(tmp_path, "words.deduplicate=false", text=twice, transform=Center).info.transform.fit
    assert (fit.text, fit.transductive, fit.overlap, fit.sentences) == ("target", True, 1, 40)
    assert ran(tmp_path).info.transform.fit is None


class Coarseness(Metric):
    """The machine epsilon below which rows are equal."""

    over = "corpus"

    def update(self, group: Group) -> None: ...

    def update_block(self, block: Block) -> None:
        self.eps = block.eps

    def compute(self) -> dict[str, float]:
        return {"eps": self.eps}


@pytest.mark.parametrize(
    ("computed", "stored", "bits"),
    [("bfloat16", "float32", 23), ("float16", "float16", 10), ("bfloat16", "float16", 7)],
)
def test_rows_are_as_coarse_as_what_they_were_computed_in(
    computed: str, stored: str, bits: int, tmp_path: Path
) -> None:
    """Where they are kept in a half type; what is kept whole was made whole."""

    class Rounded(Hashed):
        name, dtype = f"rounded {computed} {stored}", computed

        def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
            for one in super().encode(batch):
                yield EncodedSentence(one.units, one.layers.astype(stored))

    assert ran(tmp_path, encoder=Rounded(), metrics={"c": Coarseness}).by_name["c/eps"].tolist() == [2.0**-bits] * 2


def test_a_seed_of_0_and_1000_resamples_are_the_defaults() -> None:
    text = ["The river bank was steep.", "The bank lent money.", "Money flowed like a river."]
    metrics = {"s": SelfSimilarity}
    plain = ctxexp.measure("bert", text, metrics=metrics, min_contexts=2)
    named = ctxexp.measure("bert", text, metrics=metrics, min_contexts=2, bootstrap=1000, options=["seed=0"])
    assert plain.replicates[Key("s", "raw")].shape == (5, 1000)
    np.testing.assert_array_equal(plain.replicates[Key("s", "adjusted")], named.replicates[Key("s", "adjusted")])
    assert (plain.info.seed, plain.info.bootstrap) == (0, 1000)
