"""The measured words of a text: the rows of a store, against which baselines, for which question of intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ctxexp.baselines import Baseline, builtin_baseline
from ctxexp.groups import BLOCK_BYTES, Gather, Place, WordReader
from ctxexp.maths.resampling import Stream
from ctxexp.maths.word_mix import MixedWords
from ctxexp.measuring.record import with_sizes
from ctxexp.metrics import Metric
from ctxexp.occurrences import Layers, Occurrences, Text
from ctxexp.results.run_info import BaselineInfo, MixInfo, ResamplingInfo, RunInfo

if TYPE_CHECKING:
    import pandas as pd


Intervals = Literal["new_text", "these_words"]
"""The question of intervals of means over words: other documents like these, whose words have other frequencies; or the
same words, each as frequent as here, in other contexts."""


class Observer(Protocol):
    """Takes each layer's rows, and has a table in the end.

    `follow_up` gives the observer, if any, that the word tables of the measures call for; it takes every layer anew,
    and its table's rows come after the first's.
    """

    def take(self, reader: WordReader) -> None: ...
    def follow_up(self, tables: Mapping[str, pd.DataFrame]) -> Observer | None: ...
    def table(self) -> pd.DataFrame: ...


class WordRows:
    """The measured occurrences of a store, layer by layer.

    Measures are held against the `baseline`, and those that `named_baseline` gives by name. One layer and one block (or
    the largest single group) are in memory at a time; results don't depend on `block_bytes` (up to the last bits of
    float32 sums). `eps` is the machine epsilon of the type that the vectors were computed in, where that is coarser
    than the type they come in (`ctxexp.maths.geometry.PreparedRows`). The `observers`, by their tables' names, take
    each layer; every metric meets the `text`. `intervals` says what intervals are for. Of a half of a text nothing is
    said that the whole says.
    """

    def __init__(
        self,
        store: Layers,
        occurrences: Occurrences,
        baseline: Baseline,
        *,
        named_baseline: Callable[[str], Baseline] = builtin_baseline,
        seed: int = 0,
        eps: float | None = None,
        observers: Mapping[str, Observer] | None = None,
        text: Text | None = None,
        block_bytes: int = BLOCK_BYTES,
        intervals: Intervals = "new_text",
        is_half: bool = False,
    ) -> None:
        self.store, self.occurrences = store, occurrences
        self.baseline, self.named_baseline = baseline, named_baseline
        self.seed, self.eps, self.is_half = seed, eps or 0.0, is_half
        self.places = [Place.of(layer) for layer in store.layer_numbers]
        self.observers, self.text = observers or {}, text
        self.buffer = Gather(store.dim, block_bytes)
        self.intervals = intervals

    def group_indices(self, metric: Metric) -> np.ndarray | None:
        """The indices of the groups of its kind that the metric gets, ascending; None: all."""
        if metric._sample is None or metric.over == "sample":
            return None
        n = len(self.occurrences.groups(metric.over))
        if metric._sample >= n:
            return None
        rng = np.random.default_rng([self.seed, Stream.SAMPLE])
        return np.sort(rng.choice(n, metric._sample, replace=False))

    def describe(self, info: RunInfo, baseline_size: int) -> RunInfo:
        """A run's metadata with what it records of them."""
        clusters, n_words = self.occurrences.clusters, len(self.occurrences.words)
        return replace(
            info,
            model=with_sizes(info.model, self.store),
            corpus=replace(info.corpus, occurrences=self.occurrences.n_occurrences, words=n_words),
            baseline=BaselineInfo(
                name=self.baseline.name, size=baseline_size, matched=self.baseline.has_group_baselines
            ),
            resampled=ResamplingInfo(unit=clusters.name, n=clusters.n, intervals=self.intervals),
            mix=replace(mix_info(self.occurrences.mixed_words), wanted=self.occurrences.missing_words),
        )


def mix_info(mixed: MixedWords) -> MixInfo:
    """The record of how a run's words were weighed."""
    return MixInfo(
        weights=mixed.mix.weights,
        bands=tuple(mixed.mix.bands),
        words=tuple(mixed.words_in_bands.tolist()),
        filled=tuple(mixed.filled.tolist()),
    )
