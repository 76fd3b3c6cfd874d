"""The loop over layers: each metric gets its groups of the words' rows, then the baselines and the observers look."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ctxexp.errors import plugin_call
from ctxexp.groups import Block, Place, WordReader, call_metric
from ctxexp.measuring.baseline_levels import BaselineLevels
from ctxexp.measuring.record import Record
from ctxexp.measuring.word_measures import add_words
from ctxexp.measuring.word_record import INFLUENCED, ClusterInfluence, ClusterShares, WordRecord
from ctxexp.measuring.word_rows import WordRows
from ctxexp.metrics import GroupMean, Metric
from ctxexp.occurrences import Occurrences
from ctxexp.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")
KINDS = (("word",), ("sense",), ("sentence", "occurrence"), ("corpus",), ("text",), ("sample",))
"""The kinds of groups, in the order in which metrics get them; those of one tuple are fed from the same blocks: the
first kind gets the groups, the second each row of them as a group of its own."""


def measure_words(words: WordRows, record: Record, progress: Progress | None = None) -> None:
    """Measure the words of every layer by the metrics of a record that aren't for pairs."""
    work = _WordLoop(words, record)
    with threadpool_limits(1, "blas"):  # products here are small: a second thread costs more than it brings
        with Progress.of(progress).stage("measuring", len(words.places), "layers") as stage:
            for place in words.places:
                work.measure(place)
                stage.advance(1)
        measures = {label: one.measure(label, words, work.baselines) for label, one in work.collected.items()}
        add_words(record, measures, words.occurrences.clusters, words.store.layer_numbers)
        record.tables |= work.observer_tables(record.tables)
    sources = {label: work.baselines.baseline_source(label) for label in measures}
    record.set_info(words.describe(record.info, len(work.baselines.sample.samples[0])), sources)


class _WordLoop:
    """The layers of a text put through metrics, baselines and observers, one by one."""

    def __init__(self, words: WordRows, record: Record) -> None:
        self.words, self.record, self.occurrences = words, record, words.occurrences
        prototypes = {label: one for label, one in record.prototypes.items() if one.over != "pair"}
        if any(prototype.over == "word" for prototype in prototypes.values()):
            self.occurrences.require_contexts()  # before the baseline says that there is nothing to draw
        indices = {label: words.group_indices(prototype) for label, prototype in prototypes.items()}
        named = words.named_baseline
        self.baselines = BaselineLevels(self.occurrences, words.baseline, named, prototypes, indices, words.seed)
        if not words.is_half:
            warn_idle(self.occurrences, prototypes)
        self.shares = ClusterShares(self.occurrences.clusters) if record.bootstrap else None
        self.collected = {
            label: WordRecord(prototype, indices[label], self.occurrences.mixed(prototype.over, indices[label]))
            for label, prototype in prototypes.items()
        }

    def at(self, place: Place) -> WordReader:
        """The rows of a layer; one layer is in memory at a time."""
        assert place.layer is not None
        vectors, samples = np.asarray(self.words.store.layer(place.layer)), self.baselines.sample.samples
        return WordReader(place, vectors, self.occurrences, self.words.buffer, samples=samples, eps=self.words.eps)

    def measure(self, place: Place) -> None:
        """Feed a layer to a new instance of each metric, to the baselines and the observers."""
        reader, instances = self.at(place), self.record.instances(self.collected)
        for label, instance in instances.items():
            if self.words.text is not None:
                reader.call_metric(label, instance, "bind_text()", partial(instance.bind_text, self.words.text))
            if (mixed := self.collected[label].mixed) is not None and isinstance(instance, GroupMean):
                instance._set_weights(mixed.weights)
        influences = {label: ClusterInfluence(self.shares) for label in instances} if self.shares else {}
        self._feed(reader, instances, influences)
        self.baselines.observe_layer(reader, instances, influence=self.record.bootstrap > 0)
        for name, observer in self.words.observers.items():
            with plugin_call("observer", name):
                observer.take(reader)
        for label, instance in instances.items():
            statistics = self.record.compute(place, label, instance)
            self.collected[label].take(statistics, instance, influences.get(label))

    def _feed(
        self, reader: WordReader, instances: Mapping[str, Metric], influences: Mapping[str, ClusterInfluence]
    ) -> None:
        """Give every metric its groups; one gather serves all metrics of a kind."""
        for kinds in KINDS:
            users = {kind: [label for label, metric in instances.items() if metric.over == kind] for kind in kinds}
            at = dict.fromkeys(kinds, 0)
            for block in reader.blocks(kinds[0]) if any(users.values()) else ():
                for kind in filter(users.get, kinds):
                    groups = block if kind == kinds[0] else block.rows_as_groups()
                    for label in users[kind]:
                        if some := _subset(groups, self.collected[label].indices, at[kind]):
                            self._update(reader, label, instances[label], some, influences.get(label))
                    at[kind] += len(groups)

    def _update(
        self, reader: WordReader, label: str, metric: Metric, block: Block, influences: ClusterInfluence | None
    ) -> None:
        """Give a metric a block, and add each row's influence on it to `influences`, for bootstrap intervals."""
        where = self.record.update(reader.place, label, metric, metric.over, block)
        if influences is not None and metric.over in INFLUENCED and isinstance(metric, GroupMean):
            assert block.rows is not None
            call = partial(metric._row_influence, block)
            influences.add(block.rows, call_metric(label, metric, f"{where}, influence()", call))

    def observer_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """The observers' tables by name, beside the metrics' own (`tables`)."""
        import pandas as pd

        own: dict[str, pd.DataFrame] = {}
        for name, observer in self.words.observers.items():
            with plugin_call("observer", name):
                found, more = [observer.table()], observer.follow_up(tables)
                if more is not None:
                    for place in self.words.places:
                        more.take(self.at(place))
                    found.append(more.table())
                own[name] = pd.concat(found, ignore_index=True)
        return own


def _subset(block: Block, indices: np.ndarray | None, at: int) -> Block | None:
    """The groups among `indices` of a block that begins with group `at`; None if there are none."""
    if indices is None:
        return block
    first, last = np.searchsorted(indices, [at, at + len(block)])
    which = indices[first:last] - at
    if len(which) == len(block):
        return block
    return block.subset(which) if len(which) else None


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
