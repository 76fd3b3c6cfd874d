"""Runs that differ in their seed alone: one mean with its spread, named where it is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ctxexp.report import LabelledResults
from ctxexp.report.related_runs import average_seeds
from ctxexp.results import Key
from tests.sample_results import results, with_value

SELF = Key("self_similarity", "raw")


def run(label: str, seed: int, *, protocol: str = "a", model: str = "bert") -> LabelledResults:
    made = results(model, 5, seed=seed)
    return label, replace(made, info=replace(made.info, seed=seed, protocol=protocol))


def family() -> list[LabelledResults]:
    return [run(f"bert (seed {seed})", seed) for seed in (3, 4, 5)]


def test_the_interval_over_seeds_is_their_standard_deviation() -> None:
    [(label, mean)] = average_seeds(family())
    assert label == "bert, mean of 3 seeds ± sd"
    assert mean.info.seeds == (3, 4, 5)
    for key in (SELF, Key("anisotropy", "mean_cosine"), Key("word_norm", "raw")):
        curves = [one.by_key[key].value.tolist() for _, one in family()]
        for layer, values in enumerate(zip(*curves, strict=True)):
            expected = sum(values) / 3
            sd = (sum((value - expected) ** 2 for value in values) / 2) ** 0.5
            found = [float(column[layer]) for column in mean.by_key[key]]
            assert found == pytest.approx([expected, expected - sd, expected + sd], abs=1e-12)


def test_only_equal_protocols_with_different_seeds_are_averaged() -> None:
    others = [run("elmo (seed 3)", 3, protocol="b", model="elmo"), run("x", 3, protocol="c"), run("y", 3, protocol="c")]
    found = average_seeds([*others, *family(), run("old", 9, protocol=""), run("older", 8, protocol="")])
    labels = ["elmo (seed 3)", "x", "y", "bert, mean of 3 seeds ± sd", "old", "older"]
    assert [label for label, _ in found] == labels
    assert average_seeds(found) == found


def test_what_a_seed_lacks_the_mean_lacks() -> None:
    runs = family()
    label, second = runs[1]
    frame = with_value(second, "self_similarity", "raw", 2, np.nan).frame
    runs[1] = label, replace(second, frame=frame[frame["measure"] != "word_norm"])
    [(_, mean)] = average_seeds(runs)
    held = mean.by_key[SELF]
    assert np.isnan(np.stack(held)).all(axis=0).tolist() == [False, False, True, False, False]
    assert "word_norm" not in mean.measures()
