"""The defaults of a run from Python."""

from __future__ import annotations

import numpy as np

import ctxexp
from ctxexp.results import Key
from tests.shipped import SelfSimilarity


def test_a_seed_of_0_and_1000_resamples_are_the_defaults() -> None:
    text = ["The river bank was steep.", "The bank lent money.", "Money flowed like a river."]
    metrics = {"s": SelfSimilarity}
    plain = ctxexp.measure("bert", text, metrics=metrics, min_contexts=2, progress=False)
    named = ctxexp.measure(
        "bert", text, metrics=metrics, min_contexts=2, bootstrap=1000, progress=False, options=["seed=0"]
    )
    assert plain.replicates[Key("s", "raw")].shape == (5, 1000)
    np.testing.assert_array_equal(plain.replicates[Key("s", "adjusted")], named.replicates[Key("s", "adjusted")])
    assert (plain.info.seed, plain.info.bootstrap) == (0, 1000)
