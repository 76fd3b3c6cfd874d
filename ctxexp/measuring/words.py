"""Occurrences as rows: the groups of a corpus's words, and the chance levels of a baseline."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ctxexp.baseline import Baseline
from ctxexp.measuring.chances import Chances
from ctxexp.measuring.occurrences import Occurrences, Text
from ctxexp.measuring.reader import BLOCK_BYTES, Gather, WordReader
from ctxexp.measuring.rows import Place, Rows
from ctxexp.measuring.streams import Stream
from ctxexp.metric import Metric
from ctxexp.results.run_info import BaselineInfo, CorpusInfo, ModelInfo, Resampled, RunInfo
from ctxexp.vectors.layers import Layers, fewer

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")


class Onlooker(Protocol):
    """Who is shown each layer and has a table to tell in the end."""

    def take(self, reader: WordReader) -> None: ...
    def table(self) -> pd.DataFrame: ...


class WordRows(Rows):
    """The measured occurrences of a store, layer by layer.

    Chance levels are the `baseline`'s. One layer and one block (or the largest single group) are in memory at a time;
    results don't depend on `block_bytes` (up to the last bits of float32 sums). `eps` is the machine epsilon of the
    type that the vectors were computed in, where that is coarser than the type they come in
    (`ctxexp.maths.geometry.precision`). A `word_map` is shown each layer, and every metric meets the `text`.
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
        seed: int = 0,
        eps: float | None = None,
        word_map: Onlooker | None = None,
        text: Text | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.store, self.occurrences, self.baseline = store, occurrences, baseline
        self.seed, self.eps = seed, eps or 0.0
        self.places = [Place.of(layer) for layer in store.numbers]
        self.units, self.word_map, self.text = occurrences.units, word_map, text
        self.buffer = Gather(store.dim, block_bytes)
        self.reader: WordReader | None = None

    def kind_of(self, metric: Metric) -> str | None:
        return None if metric.over == "pair" else metric.over

    def prepare(self, probes: Mapping[str, Metric]) -> None:
        if any(probe.over == "word" for probe in probes.values()):
            self.occurrences.require_contexts()  # before the baseline says that there is nothing to draw
        chosen = {label: self.chosen(probe) for label, probe in probes.items()}
        self.chances = Chances(self.occurrences, self.baseline, probes, chosen, self.seed)
        warn_idle(self.occurrences, probes)

    def at(self, place: Place) -> WordReader:
        assert place.layer is not None
        self.reader = None  # and with it the layer before: one is in memory at a time
        vectors = np.asarray(self.store.layer(place.layer))
        samples = self.chances.sample.samples
        self.reader = WordReader(place, vectors, self.occurrences, self.buffer, samples=samples, eps=self.eps)
        return self.reader

    def introduce(self, metric: Metric) -> None:
        if self.text is not None:
            metric.meet(self.text)

    def look(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        assert self.reader is not None
        self.chances.look(self.reader, metrics, influence=influence)
        if self.word_map is not None:
            self.word_map.take(self.reader)

    def own_tables(self) -> dict[str, pd.DataFrame]:
        return {} if self.word_map is None else {"word_map": self.word_map.table()}

    def chosen(self, metric: Metric) -> np.ndarray | None:
        if metric.sample is None or metric.over == "sample":
            return None
        n = len(self.occurrences.groups(metric.over))
        if metric.sample >= n:
            return None
        rng = np.random.default_rng([self.seed, Stream.SAMPLE])
        return np.sort(rng.choice(n, metric.sample, replace=False))

    def info(self) -> RunInfo:
        size, units = len(self.chances.sample.samples[0]), self.occurrences.units
        return RunInfo(
            model=ModelInfo(n_layers=self.store.n_layers, layers=fewer(self.store), dim=self.store.dim),
            corpus=CorpusInfo(occurrences=self.occurrences.n_occurrences, words=len(self.occurrences.words)),
            baseline=BaselineInfo(name=self.baseline.name, size=size, matched=self.baseline.matched),
            resampled=Resampled(unit=units.name, n=units.n),
        )

    def level(self, label: str) -> str:
        return self.chances.words(label)


def warn_idle(occurrences: Occurrences, probes: Mapping[str, Metric]) -> None:
    """Say which measures no group of the corpus is large enough for: their curves are NaN."""
    idle: dict[str, list[str]] = {}
    for label, probe in probes.items():
        if probe.scored and probe.over in ("word", "sense", "sentence"):
            counts = occurrences.groups(probe.over).counts
            if not len(counts) or (probe.over == "sentence" and counts[-1] < 2 <= probe.min_rows):
                idle.setdefault(probe.over, []).append(label)
    word, contexts = occurrences.commonest
    why = {
        "word": f"no word reaches min_contexts={occurrences.min_contexts} distinct sentences; the most frequent, "
        f"{word[:40]!r}, has {contexts:,}",
        "sense": "no measured unit has a sense label",
        "sentence": "no sentence has 2 measured words",
    }
    for over, labels in idle.items():
        log.warning(f"{', '.join(labels)}: undefined (NaN) in every layer, since {why[over]}")
