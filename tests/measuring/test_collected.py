"""What single rows and groups move of a mean over groups: against plain loops, with weights and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ctxexp import GroupMean, Occurrences
from ctxexp.maths import Resamples
from ctxexp.maths.statistics import WordMix
from ctxexp.results import Key
from tests.engine import measure, world


class Lengths(GroupMean):
    """The mean length of a group's rows."""

    over = "word"

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x.astype(np.float64), axis=-1).mean(axis=-1)

    def influence(self, x: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(x.astype(np.float64), axis=-1)
        return (length - length.mean(axis=-1, keepdims=True)) / x.shape[-2]


class SentenceLengths(Lengths):
    over = "sentence"


def error_of(metric: type[Lengths], rows: np.ndarray, occurrences: Occurrences) -> float:
    """The standard error of the mean over groups: of words their rows are chance, of sentences the groups."""
    groups = occurrences.groups(metric.over)
    chosen = [groups.rows[a:b] for a, b in zip(groups.starts, groups.starts[1:], strict=False)]
    mixed = occurrences.mixed(metric.over)
    given = mixed and mixed.weights(np.ones(len(chosen), bool))
    weights = np.ones(len(chosen)) if given is None else given
    length = np.linalg.norm(rows.astype(np.float64), axis=1)
    scores = np.array([length[at].mean() for at in chosen])
    moved = np.zeros(occurrences.units.n_blocks)
    for at, weight, score in zip(chosen, weights / weights.sum(), scores, strict=True):
        if metric.over == "word":
            np.add.at(moved, occurrences.units.of_row[at], weight * (length[at] - score) / len(at))
        else:
            moved[occurrences.units.of_row[at[0]]] += weight * (score - np.average(scores, weights=weights))
    return float(np.sqrt(np.square(moved).sum()))


@pytest.mark.parametrize("weights", ["equal", "occurrences", "bands"])
@pytest.mark.parametrize("metric", [Lengths, SentenceLengths])
def test_an_interval_of_these_words_is_that_of_the_weighted_mean(metric: type[Lengths], weights: Any) -> None:
    store, occurrences, _ = world((1.0,), mix=WordMix(weights=weights, bands=(0.001, 0.02, 1.0)))
    words = {"bootstrap": 2000, "intervals": "these_words"}
    raw = measure(store, occurrences, {"length": metric}, **words).by_key[Key("length", "raw")]  # type: ignore[arg-type]
    error = error_of(metric, store.layers[0], occurrences) * Resamples.student(occurrences.units.n)
    assert raw.low is not None
    assert raw.high is not None
    assert (raw.high[0] - raw.low[0]) / 2 == pytest.approx(1.96 * error, rel=0.1)
