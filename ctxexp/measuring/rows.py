"""Rows to be measured, place by place, in one shape for one path: the words of a layer, gathered into one buffer block
by block; pairs of sentences; embedding tables, as they are, without transforms and baselines.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from ctxexp.baselines import Baseline, builtin_baseline
from ctxexp.dataset import Corpus
from ctxexp.errors import DataError, EncodingError, plugin_call
from ctxexp.groups import BLOCK_BYTES, Block, Gather, Pairs, Place, Reader, WordReader
from ctxexp.maths.resampling import Clusters, Stream, resampled_cluster
from ctxexp.maths.word_mix import MixedWords
from ctxexp.measuring.baseline_levels import BaselineLevels
from ctxexp.metrics import GroupMean, Metric
from ctxexp.model import EmbeddingTable
from ctxexp.occurrences import Layers, Occurrences, Text, layer_subset, read_only
from ctxexp.results.run_info import BaselineInfo, CorpusInfo, MixInfo, ModelInfo, ResamplingInfo, RunInfo, TableInfo
from ctxexp.transforms import Calibration
from ctxexp.vectors.stores import Mix, finite_rows, mix_layers

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")


class Rows(ABC):
    """A source of vectors of one kind of thing at each place, and the groups that they form.

    `stage` is the title of the work in progress bars, and the name of its steps. `kinds` are the kinds of groups, in
    the order in which metrics get them; those in one inner tuple are fed from the same blocks: the first kind gets the
    groups, the second each row of them as a group of its own. `clusters` are the clusters that the bootstrap resamples
    (None: metrics have intervals of their own).
    """

    stage: ClassVar[tuple[str, str]]
    kinds: ClassVar[tuple[tuple[str, ...], ...]]
    places: Sequence[Place]
    clusters: Clusters | None = None
    threads: ClassVar[int | None] = None  # of BLAS, at most

    @abstractmethod
    def kind_of(self, metric: Metric) -> str | None:
        """The kind of groups of these rows that the metric gets; None: it gets none."""

    @abstractmethod
    def at(self, place: Place) -> Reader:
        """The rows at a place; valid until the next place is read."""

    def prepare(self, prototypes: Mapping[str, Metric]) -> None:  # noqa: B027  # optional
        """Draw random groups and samples before any place is read; `prototypes` are the metrics by label (optional)."""

    def bind_text(self, metric: Metric) -> None:  # noqa: B027  # optional
        """Give an instance of a metric the text whose vectors it measures (optional)."""

    def observe_layer(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:  # noqa: B027  # optional
        """Compute the metrics' baselines at the place that was read last (with `influence`, that of each cluster on
        them too), and show it to the observers (optional)."""

    def group_indices(self, metric: Metric) -> np.ndarray | None:
        """The indices of the groups of its kind that the metric gets, ascending; None: all."""
        return None

    def mixed_words(self, metric: Metric, indices: np.ndarray | None) -> MixedWords | None:
        """The weights of a metric's groups, those with these indices (None: all); None: they aren't words."""
        return None

    def own_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Further result tables by name, beside the metrics' own (`tables`), once every place was read."""
        return {}

    def info(self) -> RunInfo:
        """The metadata that a run records of them."""
        return RunInfo()

    def baseline_source(self, label: str) -> str:
        """The source of a measure's baseline: `exact`, `drawn`, or nothing where it has none to speak of."""
        return ""


class TableRows(Rows):
    """The embedding tables of a model, for metrics that measure embedding tables."""

    stage: ClassVar[tuple[str, str]] = ("measuring embedding tables", "tables")
    kinds = (("table",),)

    def __init__(self, tables: Sequence[EmbeddingTable], *, encoder: str) -> None:
        """Raises EncodingError for a malformed table, naming the `encoder`."""
        for table in tables:
            _check(f"encoder {encoder!r}, table {table.name!r}", table)
        self.tables = {table.name: table for table in tables}
        self.places = [Place("table", name) for name in self.tables]

    def kind_of(self, metric: Metric) -> str | None:
        return "table" if metric.measures_embedding_tables else None

    def at(self, place: Place) -> Reader:
        table = self.tables[place.name]
        return Reader(place, lambda kind: iter([Block([table.name], read_only(table.vectors)[None], table=table)]))

    def info(self) -> RunInfo:
        tables = self.tables.values()
        info = {t.name: TableInfo(rows=len(t.tokens), dim=t.vectors.shape[1], note=t.note, tied=t.tied) for t in tables}
        return RunInfo(tables=info)


def _check(who: str, table: EmbeddingTable) -> None:
    """Raise EncodingError unless each token has a finite row of floats, and a count where the table has counts."""
    n, x = len(table.tokens), table.vectors
    if x.ndim != 2 or len(x) != n or not np.issubdtype(x.dtype, np.floating):
        raise EncodingError(f"{who}: {x.dtype} vectors of shape {x.shape} for {n} tokens; expected floats, a row each")
    if table.counts is not None and table.counts.shape != (n,):
        raise EncodingError(f"{who}: counts of shape {table.counts.shape} for {n} tokens; expected one each, or None")
    if not np.isfinite(x.sum(axis=1, dtype=np.float64)).all():
        raise EncodingError(f"{who} holds NaN or infinite values")


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


class WordRows(Rows):
    """The measured occurrences of a store, layer by layer.

    Measures are held against the `baseline`, and those that `named_baseline` gives by name. One layer and one block (or
    the largest single group) are in memory at a time; results don't depend on `block_bytes` (up to the last bits of
    float32 sums). `eps` is the machine epsilon of the type that the vectors were computed in, where that is coarser
    than the type they come in (`ctxexp.maths.geometry.PreparedRows`). The `observers`, by their tables' names, take
    each layer; every metric meets the `text`. `intervals` says what intervals are for.
    """

    stage: ClassVar[tuple[str, str]] = ("measuring", "layers")
    kinds = (("word",), ("sense",), ("sentence", "occurrence"), ("corpus",), ("text",), ("sample",))
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
        self.clusters, self.observers, self.text = occurrences.clusters, observers or {}, text
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

    def observe_layer(self, metrics: Mapping[str, Metric], *, influence: bool) -> None:
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
        if metric._sample is None or metric.over == "sample":
            return None
        n = len(self.occurrences.groups(metric.over))
        if metric._sample >= n:
            return None
        rng = np.random.default_rng([self.seed, Stream.SAMPLE])
        return np.sort(rng.choice(n, metric._sample, replace=False))

    def mixed_words(self, metric: Metric, indices: np.ndarray | None) -> MixedWords | None:
        return self.occurrences.mixed(metric.over, indices)

    def info(self) -> RunInfo:
        size, clusters = len(self.baselines.sample.samples[0]), self.occurrences.clusters
        return RunInfo(
            model=ModelInfo(n_layers=self.store.n_layers, layers=layer_subset(self.store), dim=self.store.dim),
            corpus=CorpusInfo(occurrences=self.occurrences.n_occurrences, words=len(self.occurrences.words)),
            baseline=BaselineInfo(name=self.baseline.name, size=size, matched=self.baseline.has_group_baselines),
            resampled=ResamplingInfo(unit=clusters.name, n=clusters.n, intervals=self.intervals),
            mix=replace(mix_info(self.occurrences.mixed_words), wanted=self.occurrences.missing_words),
        )

    def baseline_source(self, label: str) -> str:
        return self.baselines.baseline_source(label)


def mix_info(mixed: MixedWords) -> MixInfo:
    """The record of how a run's words were weighed."""
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
        if isinstance(prototype, GroupMean) and prototype.over in ("word", "sense", "sentence"):
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


@dataclass(frozen=True)
class Subset:
    """The pairs of one sub-set, by sentence number."""

    name: str
    ends: np.ndarray  # (n, 2) int64
    gold: np.ndarray  # (n,) float64
    texts: Sequence[tuple[str, str]]

    def block(self, vectors: np.ndarray, pairs: np.ndarray) -> Block:
        """The pairs of these numbers."""
        ends, texts = self.ends[pairs], [self.texts[i] for i in pairs.tolist()]
        x = read_only(vectors[ends.T].transpose(1, 0, 2))  # (n, 2, d), either side contiguous
        return Block([self.name], x[None], pairs=Pairs(read_only(self.gold[pairs]), texts, read_only(ends)))


class PairRows(Rows):
    """The sentence vectors of a corpus's gold pairs, at each layer and mix of layers.

    The calibration (None: none) is fitted anew at each place, on the sentence vectors of `text` (None: of the corpus's
    own distinct sentences). A sentence without a vector is NaN, and so is every one where all are equal and there is a
    calibration: no space to calibrate, such as a first special token's input layer.
    """

    stage: ClassVar[tuple[str, str]] = ("measuring pairs", "layers")
    kinds = (("pair",),)

    def __init__(
        self,
        vectors: Layers,
        corpus: Corpus,
        *,
        mixes: Sequence[Mix] = (),
        calibration: Calibration | None = None,
        text: Layers | None = None,
    ) -> None:
        self.vectors, self.corpus, self.calibration, self.text = vectors, corpus, calibration, text
        self.mixes = {mix.name: mix for mix in mixes}
        self.places = [Place.of(i) for i in vectors.layer_numbers] + [Place("mix", name) for name in self.mixes]
        self.subsets = gold_subsets(corpus)
        self.once = distinct(corpus)

    def kind_of(self, metric: Metric) -> str | None:
        return "pair" if metric.over == "pair" else None

    def at(self, place: Place) -> Reader:
        x = self._read(self.vectors, place)
        if self.calibration is not None and not self.calibration.identity:
            self._calibrate(self.calibration, x, place)
        is_defined = finite_rows(x)
        pairs = [np.flatnonzero(is_defined[subset.ends].all(axis=1)) for subset in self.subsets]  # both have a vector
        parts = [(subset, which) for subset, which in zip(self.subsets, pairs, strict=True) if len(which)]
        left_out = len(self.corpus.pairs) - sum(map(len, pairs))
        return Reader(place, lambda kind: (subset.block(x, which) for subset, which in parts), left_out)

    def _calibrate(self, calibration: Calibration, x: np.ndarray, place: Place) -> None:
        """Put x through the calibration, in place; columns that it drops are zeros."""
        defined = finite_rows(x)
        if _all_equal(x, defined):
            x[:] = np.nan
            return
        if not defined.any():
            return
        if self.text is None:
            fitted_on = x[self.once & defined]
        else:
            fitted_on = self._read(self.text, place)
            if not (is_finite := finite_rows(fitted_on)).all():
                fitted_on = fitted_on[is_finite]
        fitted = calibration.fit(fitted_on, str(place))
        del fitted_on
        y = x if defined.all() else x[defined]
        calibration.apply(fitted, y, str(place))
        if y is not x:
            x[defined] = y

    def _read(self, vectors: Layers, place: Place) -> np.ndarray:
        return mix_layers(vectors, self.mixes[place.name]) if place.layer is None else vectors.layer(place.layer)

    def info(self) -> RunInfo:
        return RunInfo(
            model=ModelInfo(n_layers=self.vectors.n_layers, layers=layer_subset(self.vectors), dim=self.vectors.dim),
            corpus=CorpusInfo(pairs=len(self.corpus.pairs)),
            resampled=ResamplingInfo(pairs=resampled_cluster([subset.ends for subset in self.subsets])),
        )


def require_pairs(corpus: Corpus, labels: Sequence[str]) -> None:
    """Raise DataError if the corpus has no gold pairs to measure."""
    if not corpus.pairs:
        raise DataError(
            f"{', '.join(labels)}: compares gold sentence pairs, but data set {corpus.name!r} has none; choose one "
            "that does, such as dataset=sts_b, sick_r or sts_2012_2016"
        )


def gold_subsets(corpus: Corpus) -> list[Subset]:
    """The corpus's pairs by sub-set, sub-sets in order of their first pair, pairs in order."""
    members: dict[str, list[int]] = {}
    for i, pair in enumerate(corpus.pairs):
        members.setdefault(pair.subset, []).append(i)
    subsets = []
    for name, which in members.items():
        own_pairs = [corpus.pairs[i] for i in which]
        ends = np.array([(p.first, p.second) for p in own_pairs], np.int64)
        gold = np.array([p.gold for p in own_pairs], np.float64)
        texts = [(corpus.sentences[p.first].text, corpus.sentences[p.second].text) for p in own_pairs]
        subsets.append(Subset(name, ends, gold, texts))
    return subsets


def distinct(corpus: Corpus) -> np.ndarray:
    """Whether each sentence is the first of its kind (n_sentences,): repeated ones count once in a fit."""
    first_places: dict[object, int] = {}
    return np.array([first_places.setdefault(s, i) == i for i, s in enumerate(corpus.sentences)], bool)


def _all_equal(x: np.ndarray, defined: np.ndarray) -> bool:
    """Whether the several defined rows of x (n, d) are one and the same."""
    which = np.flatnonzero(defined)
    return len(which) > 1 and all(np.array_equal(x[i], x[which[0]]) for i in which[1:])
