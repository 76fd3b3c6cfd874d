"""Occurrences as rows: the groups of a corpus's words, and their baselines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from ctxexp.baseline import Baseline
from ctxexp.baselines import builtin_baseline
from ctxexp.errors import plugin_call
from ctxexp.measuring.baseline_levels import BaselineLevels
from ctxexp.measuring.bootstrap import Stream
from ctxexp.measuring.mix import MixedWords
from ctxexp.measuring.occurrences import Occurrences, Text
from ctxexp.measuring.rows import BLOCK_BYTES, Gather, Place, Rows, WordReader
from ctxexp.metric import Metric
from ctxexp.results.run_info import BaselineInfo, CorpusInfo, MixInfo, ModelInfo, ResamplingInfo, RunInfo
from ctxexp.vectors.layers import Layers, layer_subset

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")

Intervals = Literal["new_text", "these_words"]
"""What intervals of means over words are for: other documents like these, whose words have other frequencies; or the
same words, each as frequent as here, in other contexts."""


class Observer(Protocol):
    """Takes each layer's rows, and has a table in the end.

    `follow_up` gives the observer, if any, that the word tables of the measures call for; it takes every layer anew,
    and its table's rows come after the first's.
    """

    def take(self, reader: WordReader) -> None: ...
    def follow_up(self, tables: Mapping[str, pd.DataFrame]) -> Observer | None: ...
    def table(self) -> pd.DataFrame: ...


class WordRows(Rows):
    """The measured occurrences of a store, layer by layer.

    Measures are held against the `baseline`, and those that `named_baseline` gives by name. One layer and one block (or
    the largest single group) are in memory at a time; results don't depend on `block_bytes` (up to the last bits of
    float32 sums). `eps` is the machine epsilon of the type that the vectors were computed in, where that is coarser
    than the type they come in (`ctxexp.maths.prepared.PreparedRows`). The `observers`, by their tables' names, take
    each layer; every metric meets the `text`. `intervals` says what intervals are for.
    """

    stage: ClassVar[tuple[str, str]] = ("measuring", "layers")
    kinds = (("word",), ("sense",), ("sentence", "occurrence"), ("corpus",), ("sample",))
    threads: ClassVar[int | None] = 1  # products here are small: a second thread costs more than it brings

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
        is_part: bool = False,
    ) -> None:
        self.is_part = is_part  # of a measured text: what its words lack the whole says
        self.store, self.occurrences = store, occurrences
        self.baseline, self.named_baseline = baseline, named_baseline
        self.seed, self.eps = seed, eps or 0.0
        self.places = [Place.of(layer) for layer in store.layer_numbers]
        self.units, self.observers, self.text = occurrences.units, observers or {}, text
        self.buffer = Gather(store.dim, block_bytes)
        self.intervals = intervals
        self.reader: WordReader | None = None

    def kind_of(self, metric: Metric) -> str | None:
        return None if metric.over == "pair" else metric.over

    def prepare(self, prototypes: Mapping[str, Metric]) -> None:
        if any(prototype.over == "word" for prototype in prototypes.values()):
            self.occurrences.require_contexts()  # before the baseline says that there is nothing to draw
        indices = {label: self.group_indices(prototype) for label, prototype in prototypes.items()}
        named = self.named_baseline
        self.baselines = BaselineLevels(self.occurrences, self.baseline, named, prototypes, indices, self.seed)
        if not self.is_part:
            warn_idle(self.occurrences, prototypes)

    def at(self, place: Place) -> WordReader:
        assert place.layer is not None
        self.reader = None  # and with it the layer before: one is in memory at a time
        vectors = np.asarray(self.store.layer(place.layer))
        samples = self.baselines.sample.samples
        self.reader = WordReader(place, vectors, self.occurrences, self.buffer, samples=samples, eps=self.eps)
        return self.reader

    def bind_text(self, metric: Metric) -> None:
        if self.text is not None:
            metric.bind_text(self.text)

    def measure_baselines(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        assert self.reader is not None
        self.baselines.observe_layer(self.reader, metrics, influence=influence)
        for name, observer in self.observers.items():
            with plugin_call("observer", name):
                observer.take(self.reader)

    def own_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        import pandas as pd

        own: dict[str, pd.DataFrame] = {}
        for name, observer in self.observers.items():
            with plugin_call("observer", name):
                parts, more = [observer.table()], observer.follow_up(tables)
                if more is not None:
                    for place in self.places:
                        more.take(self.at(place))
                    parts.append(more.table())
                own[name] = pd.concat(parts, ignore_index=True)
        return own

    def group_indices(self, metric: Metric) -> np.ndarray | None:
        if metric.sample is None or metric.over == "sample":
            return None
        n = len(self.occurrences.groups(metric.over))
        if metric.sample >= n:
            return None
        rng = np.random.default_rng([self.seed, Stream.SAMPLE])
        return np.sort(rng.choice(n, metric.sample, replace=False))

    def mixed_words(self, metric: Metric, indices: np.ndarray | None) -> MixedWords | None:
        return self.occurrences.mixed(metric.over, indices)

    def info(self) -> RunInfo:
        size, units = len(self.baselines.sample.samples[0]), self.occurrences.units
        return RunInfo(
            model=ModelInfo(n_layers=self.store.n_layers, layers=layer_subset(self.store), dim=self.store.dim),
            corpus=CorpusInfo(occurrences=self.occurrences.n_occurrences, words=len(self.occurrences.words)),
            baseline=BaselineInfo(name=self.baseline.name, size=size, matched=self.baseline.has_group_baselines),
            resampled=ResamplingInfo(unit=units.name, n=units.n, intervals=self.intervals),
            mix=replace(mix_info(self.occurrences.mixed_words), wanted=self.occurrences.words_wanted),
        )

    def baseline_source(self, label: str) -> str:
        return self.baselines.baseline_source(label)


def mix_info(mixed: MixedWords) -> MixInfo:
    """How the run's words were weighed."""
    return MixInfo(
        weights=mixed.mix.weights,
        bands=tuple(mixed.mix.bands),
        words=tuple(mixed.words_in_bands.tolist()),
        filled=tuple(mixed.filled.tolist()),
    )


def warn_idle(occurrences: Occurrences, prototypes: Mapping[str, Metric]) -> None:
    """Say which measures no group of the corpus is large enough for: their curves are NaN."""
    idle: dict[str, list[str]] = {}
    for label, prototype in prototypes.items():
        if prototype.scored and prototype.over in ("word", "sense", "sentence"):
            counts = occurrences.groups(prototype.over).counts
            if not len(counts) or (prototype.over == "sentence" and counts[-1] < 2 <= prototype.min_rows):
                idle.setdefault(prototype.over, []).append(label)
    word, contexts = occurrences.commonest
    why = {
        "word": f"no word reaches min_contexts={occurrences.min_contexts} distinct sentences; the most frequent, "
        f"{word[:40]!r}, has {contexts:,}",
        "sense": "no measured unit has a sense label",
        "sentence": "no sentence has 2 measured words",
    }
    for over, labels in idle.items():
        log.warning(f"{', '.join(labels)}: undefined (NaN) in every layer, since {why[over]}")
