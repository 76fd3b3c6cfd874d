"""The engine on one kind of rows, and metrics over pairs by hand: what tests of measures begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctxexp import Baseline, Corpus, Group, Metric, Occurrences, Pairs, Results
from ctxexp.groups import BLOCK_BYTES, Gather, Place, WordReader
from ctxexp.measuring import measure as path
from ctxexp.measuring.words import Intervals, PairRows, WordRows
from ctxexp.occurrences import Layers
from ctxexp.testing.report import numbers
from ctxexp.transform import Calibration, transform_layers
from ctxexp.vectors.stores import SentenceVectors
from tests.shipped import OnePerSentence

Factories = Mapping[str, Callable[[], Metric]]


def measure(
    store: Layers,
    occurrences: Occurrences,
    metrics: Factories,
    baseline: Baseline | None = None,
    *,
    seed: int = 0,
    eps: float | None = None,
    block_bytes: int = BLOCK_BYTES,
    intervals: Intervals = "new_text",
    **options: Any,
) -> Results:
    """The metrics over a store's words."""
    chance = baseline or OnePerSentence(exact=True)
    rows = WordRows(store, occurrences, chance, seed=seed, eps=eps, block_bytes=block_bytes, intervals=intervals)
    return path.measure([rows], metrics, seed=seed, **options)


def reader_of(layer: np.ndarray, occurrences: Occurrences, i: int = 0, block_bytes: int = BLOCK_BYTES) -> WordReader:
    """What reads a layer's rows (n, d) group by group."""
    return WordReader(Place.of(i), layer, occurrences, Gather(layer.shape[1], block_bytes))


def measure_pairs(
    vectors: SentenceVectors, corpus: Corpus, metrics: Factories, *, seed: int = 0, bootstrap: int = 1000, **space: Any
) -> Results:
    """The metrics over a corpus's gold pairs."""
    own = {name: space.pop(name) for name in ("progress", "folder") if name in space}
    return path.measure([PairRows(vectors, corpus, **space)], metrics, seed=seed, bootstrap=bootstrap, **own)


def calibrated(
    store: Layers, occurrences: Occurrences, factory: Callable[[], Any], *, name: str = "transform", text: Any = None
) -> Layers:
    """The store in the space of a transform."""
    return transform_layers(store, occurrences, Calibration(factory, name), text=text)


@dataclass(frozen=True)
class Sides:
    """A sub-set's pairs by their two sides, as tests make them."""

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n, d)
    gold: np.ndarray
    texts: Sequence[tuple[str, str]]
    ends: np.ndarray | None = None

    def group(self, subset: str) -> Group:
        """What a metric gets."""
        return Group(subset, np.stack([self.x, self.y], axis=1), pairs=Pairs(self.gold, self.texts, self.ends))


def computed(metric: Metric, rng: np.random.Generator | None = None, replicates: int = 0) -> dict[str, float]:
    """The statistics as numbers alone."""
    metric.resampling = rng or np.random.default_rng(0), replicates
    return numbers(metric.compute())
