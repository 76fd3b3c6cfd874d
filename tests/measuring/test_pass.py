"""What the engine does beside the numbers: its defaults, its progress, and what it says of metrics that fail."""

from __future__ import annotations

import numpy as np

import ctxexp
from ctxexp.results import Key
from tests.engine import measure, world
from tests.shipped import OnePerSentence, SelfSimilarity

RAW = Key("s", "raw")


def test_a_seed_of_0_and_1000_resamples_are_the_defaults() -> None:
    text = ["The river bank was steep.", "The bank lent money.", "Money flowed like a river."]
    metrics = {"s": SelfSimilarity}
    plain = ctxexp.measure("bert", text, metrics=metrics, min_contexts=2, progress=False)
    named = ctxexp.measure(
        "bert", text, metrics=metrics, min_contexts=2, bootstrap=1000, progress=False, options=["seed=0"]
    )
    assert plain.replicates[RAW].shape == (5, 1000)
    np.testing.assert_array_equal(plain.replicates[Key("s", "adjusted")], named.replicates[Key("s", "adjusted")])
    assert (plain.info.seed, plain.info.bootstrap) == (0, 1000)


def test_one_resample_has_a_value_and_no_interval() -> None:
    store, occurrences, _ = world((1.0,))
    results = measure(store, occurrences, {"s": SelfSimilarity}, OnePerSentence(), bootstrap=1)
    assert np.isfinite(results.replicates[RAW]).all()
    assert np.isnan([results.by_key[RAW].low, results.by_key[RAW].high]).all()
