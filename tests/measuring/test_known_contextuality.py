"""Contextuality where it is known: a few of the worlds and knobs that benchmarks.known_contextuality tabulates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.known_contextuality import DIALS, WORLDS, measured, orders, plant, values, with_knob
from ctxexp import Corpus
from tests.shipped import polysemy

ERRORS = {
    "plain": 0.02,
    "place as large as the rest": 0.02,
    "word x place interaction": 0.03,
    "one noisy dimension x10": 0.06,
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_planted_dial_is_read(name: str) -> None:
    planted = plant(replace(WORLDS[name], sentences=400), seed=1)
    found = values(planted.measure(["contextuality"]))["contextuality"]
    np.testing.assert_allclose(found, planted.truth, atol=ERRORS[name])
    assert abs(found[0]) < 0.02  # the dial stands at 0
    assert (np.diff(found) > 0.5 * np.diff(DIALS)).all()


def test_models_of_one_truth_are_put_in_no_order() -> None:
    """A loud direction that only noise is in, scaled down, still adds .04: the variant that leaves it out tells."""
    names = "plain", "place as large as the rest", "common direction, random sign a token"
    planted = [plant(replace(WORLDS[name], sentences=400), seed) for seed, name in enumerate(names)]
    runs = [(one, one.measure(["contextuality"], bootstrap=100)) for one in planted]
    counts = {of: (n, out_of) for of, estimator, n, out_of in orders(runs) if estimator == "contextuality"}
    assert counts["false orders"] == (0, 12)


def test_words_that_do_not_see_each_other_have_no_context() -> None:
    some = Corpus("some", polysemy().sentences[::15])
    found = values(measured(with_knob("gpt2", 0.0), some, ["contextuality"]))["contextuality"]
    assert (np.abs(found) < 0.02).all(), found
