"""What the engine does beside the numbers: its defaults, its progress, and what it says of metrics that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ctxexp
from ctxexp.command import Progress
from ctxexp.errors import MetricError
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


def test_progress_is_by_layer() -> None:
    stages: list[tuple[object, ...]] = []
    steps: list[float] = []

    class Recorder(Progress):
        @contextmanager
        def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Any]:
            stages.append((name, total, unit))
            yield self

        def advance(self, n: float, **info: object) -> None:
            steps.append(n)

    store, occurrences, _ = world()
    measure(store, occurrences, {"s": SelfSimilarity}, bootstrap=0, progress=Recorder())
    assert stages == [("measuring", 2, "layers")]
    assert steps == [1, 1]


class Fails(SelfSimilarity):
    """It scores no words of five occurrences."""

    size = 5

    def score(self, x: np.ndarray) -> np.ndarray:
        if x.shape[-2] == self.size:
            raise ValueError("five")
        return super().score(x)


def test_a_failing_block_is_named_by_its_first_group_and_size() -> None:
    store, occurrences, _ = world((1.0,))
    counts = occurrences.by_word.counts
    sizes, groups = np.unique(counts, return_counts=True)
    for size, n in zip(sizes.tolist(), groups.tolist(), strict=True):
        first = occurrences.by_word.keys[int(np.flatnonzero(counts == size)[0])]
        more = f" (or one of {n - 1} more of {size} rows)" if n > 1 else ""
        metric = type("Fails", (Fails,), {"size": size})
        with pytest.raises(MetricError, match=re.escape(f"word {first!r}{more}")):
            measure(store, occurrences, {"s": metric}, OnePerSentence(), bootstrap=0)
    assert {1, 2} <= {*groups.tolist()}
