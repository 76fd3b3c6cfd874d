"""What is no word: gold pairs of sentences, at each layer and mix of layers; and embedding tables, as they are, without
transform and baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import DataError, EncodingError
from ctxexp.groups import Block, Pairs, Place
from ctxexp.maths.resampling import resampled_cluster
from ctxexp.measuring.record import Record, Statistics, number, with_sizes
from ctxexp.model import EmbeddingTable
from ctxexp.occurrences import Layers, read_only
from ctxexp.progress import Progress
from ctxexp.results.run_info import RunInfo, TableInfo
from ctxexp.transforms import Calibration
from ctxexp.vectors.stores import Mix, finite_rows, mix_layers


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


class PairVectors:
    """The sentence vectors of a corpus's gold pairs, at each layer and mix of layers.

    The calibration (None: none) is fitted anew at each place, on the sentence vectors of `text` (None: of the corpus's
    own distinct sentences). A sentence without a vector is NaN, and so is every one where all are equal and there is a
    calibration: no space to calibrate, such as a first special token's input layer.
    """

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

    def at(self, place: Place) -> tuple[Iterator[Block], int]:
        """The sub-sets at a place, one by one, and how many pairs lack a vector there."""
        x = self._read(self.vectors, place)
        if self.calibration is not None and not self.calibration.identity:
            self._calibrate(self.calibration, x, place)
        is_defined = finite_rows(x)
        pairs = [np.flatnonzero(is_defined[subset.ends].all(axis=1)) for subset in self.subsets]  # both have a vector
        blocks = (subset.block(x, which) for subset, which in zip(self.subsets, pairs, strict=True) if len(which))
        return blocks, len(self.corpus.pairs) - sum(map(len, pairs))

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

    def describe(self, info: RunInfo) -> RunInfo:
        """A run's metadata with what it records of them."""
        clusters = resampled_cluster([subset.ends for subset in self.subsets])
        return replace(
            info,
            model=info.model if info.model.n_layers else with_sizes(info.model, self.vectors),
            corpus=replace(info.corpus, pairs=len(self.corpus.pairs)),
            resampled=replace(info.resampled, pairs=clusters),
        )


def measure_pairs(pairs: PairVectors, record: Record, progress: Progress | None = None) -> None:
    """Measure the pairs at each of their places by the metrics of a record that are for pairs."""
    labels = [label for label, metric in record.prototypes.items() if metric.over == "pair"]
    found: dict[str, dict[Place, Statistics]] = {label: {} for label in labels}
    with Progress.of(progress).stage("measuring pairs", len(pairs.places), "layers") as stage:
        for place in pairs.places:
            blocks, left_out = pairs.at(place)
            for label, statistics in record.measure(place, labels, "pair", blocks).items():
                undefined = number(statistics.get("undefined", 0.0)) + left_out
                found[label][place] = {**statistics, "undefined": undefined}
            stage.advance(1)
    record.add_statistics(found)
    record.set_info(pairs.describe(record.info), dict.fromkeys(labels, ""))


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


def measure_tables(tables: Sequence[EmbeddingTable], record: Record, progress: Progress | None = None) -> None:
    """Measure the tables by the metrics of a record that measure such."""
    labels = [label for label, metric in record.prototypes.items() if metric.measures_embedding_tables]
    places = {Place("table", table.name): table for table in tables}
    found = {}
    with Progress.of(progress).stage("measuring embedding tables", len(places), "tables") as stage:
        for place, table in places.items():
            block = Block([table.name], read_only(table.vectors)[None], table=table)
            found[place] = record.measure(place, labels, "table", [block])
            stage.advance(1)
    record.add_statistics({label: {place: found[place][label] for place in places} for label in labels})
    info = {t.name: TableInfo(rows=len(t.tokens), dim=t.vectors.shape[1], note=t.note, tied=t.tied) for t in tables}
    record.set_info(replace(record.info, tables=info), dict.fromkeys(labels, ""))


def check_table(table: EmbeddingTable, *, encoder: str) -> None:
    """Raise EncodingError, naming the encoder, unless each token has a finite row of floats, and a count where the
    table has counts."""
    who, n, x = f"encoder {encoder!r}, table {table.name!r}", len(table.tokens), table.vectors
    if x.ndim != 2 or len(x) != n or not np.issubdtype(x.dtype, np.floating):
        raise EncodingError(f"{who}: {x.dtype} vectors of shape {x.shape} for {n} tokens; expected floats, a row each")
    if table.counts is not None and table.counts.shape != (n,):
        raise EncodingError(f"{who}: counts of shape {table.counts.shape} for {n} tokens; expected one each, or None")
    if not np.isfinite(x.sum(axis=1, dtype=np.float64)).all():
        raise EncodingError(f"{who} holds NaN or infinite values")
