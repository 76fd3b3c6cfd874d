"""The baselines that each measure is held against: its groups' own where there are such, else the sample's;
drawn, or in closed form over all occurrences where a measure is a mean cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from ctxexp.baselines import Among, Baseline, BaselineValues, GroupBaseline, MeasuredGroups, ScoredGroups
from ctxexp.errors import MetricError, plugin_call, short
from ctxexp.groups import Block, WordReader
from ctxexp.maths.geometry import PreparedRows
from ctxexp.maths.resampling import Curve, Stream
from ctxexp.metrics import OF_RUN, GroupMean, Metric, Over, baseline_is_score, has_baseline
from ctxexp.occurrences import Groups, Occurrences

FIRST = ""  # the baseline of a measure's `baseline` and `adjusted`
Blocks = Callable[[Groups], Iterator[Block]]
"""Groups to blocks of equal-sized ones."""


class SampleBaseline:
    """The values of measures on the first of the run's random groups, or their expectation over all of them."""

    def __init__(self, baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> None:
        self.expectation, self.occurrences = baseline.expectation, occurrences
        self.samples = random_groups(baseline, occurrences, rng)
        self._levels: dict[str, list[LayerBaseline]] = {}

    def baseline_source(self, metric: Metric) -> str:
        """The source of the measure's baseline: `exact`, `drawn`, or nothing where it has none to speak of."""
        if self.expectation and metric.cosine_statistic:
            return "exact"
        return "drawn" if has_baseline(metric) else ""

    def observe_layer(self, reader: WordReader, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        """Take one layer's value of each measure; with `influence`, that of clusters on it too."""
        cosine = None
        if self.expectation and any(metric.cosine_statistic for metric in metrics.values()):
            cosine = expected_mean_cosine(reader.blocks_of, self.occurrences, self.expectation)
        group = PreparedRows(reader.gather(self.samples[0][None]), reader.eps)  # (1, n, d)
        for label, metric in metrics.items():
            exact = cosine if metric.cosine_statistic else None
            level = exact or self._on_sample(reader, label, metric, group, influence=influence)
            self._levels.setdefault(label, []).append(level)

    def _on_sample(
        self, reader: WordReader, label: str, metric: Metric, group: PreparedRows, *, influence: bool
    ) -> LayerBaseline:
        rows, clusters = self.samples[0], self.occurrences.clusters
        value = float(reader.call_metric(label, metric, "baseline group 0", partial(_value, metric, group)))
        by_cluster = np.full(clusters.n_blocks, np.nan)
        if influence and np.isfinite(value):
            of_row = reader.call_metric(label, metric, "baseline group 0", partial(_influence, metric, group))
            if of_row is not None:
                by_cluster = clusters.sum_by_block(clusters.of_row[rows], of_row)
        return LayerBaseline(value, by_cluster, len(rows))

    def curve(self, label: str) -> Curve:
        """The measure's baseline by layer."""
        levels = self._levels[label]
        return Curve(np.array([level.value for level in levels]), np.stack([level.influence for level in levels]))

    def values(self, label: str, groups: ScoredGroups) -> BaselineValues:
        """The same for every group."""
        curve = self.curve(label)
        return BaselineValues(curve.value, curve)

    def sizes(self, label: str) -> np.ndarray:
        """(n_layers,) how many sentences or occurrences the value is over."""
        return np.array([float(level.n) for level in self._levels[label]])


def _value(metric: Metric, group: PreparedRows) -> float:
    """The metric's `baseline_value` of a group (1, n, d), by work that others share where that is its score."""
    if isinstance(metric, GroupMean) and baseline_is_score(metric) and group.x.shape[1] >= metric.min_rows:
        return float(group.apply(metric.score)[0])
    return metric.baseline_value(group.x[0])


def _influence(metric: Metric, group: PreparedRows) -> np.ndarray | None:
    """The same of `_baseline_influence`."""
    if isinstance(metric, GroupMean) and baseline_is_score(metric):
        return group.apply(metric.influence)
    return metric._baseline_influence(group.x[0])


MAX_GROUPS = 20_000  # of a baseline: 160 MB of them, of 1,000 rows each


def random_groups(baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> list[np.ndarray]:
    """The baseline's random groups, checked; MetricError names the baseline."""
    part = f"baseline {baseline.name!r}"
    with plugin_call("baseline", baseline.name):
        groups = islice(baseline.groups(occurrences, rng), MAX_GROUPS + 1)  # it may never end
        samples = [np.asarray(rows) for rows in groups]
        if len(samples) > MAX_GROUPS:
            most = f"{MAX_GROUPS:,} groups: a first one and redraws of it are expected"
            raise MetricError(f"{part} gave more than {most}")
        if not samples or min(rows.size for rows in samples) < 1:
            raise MetricError(f"{part} gave no group, or an empty one")
        last = len(occurrences.places) - 1
        for rows in samples:  # what is gathered isn't checked again
            if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() > last:
                raise MetricError(f"{part} gave {short(rows)}; expected numbers of rows, from 0 to {last:,}")
    return samples


class BaselineLevels:
    """The baselines of all measures of words, in all layers: by name, `FIRST` that of `adjusted`.

    Draws the random groups once, at construction, so that every layer uses the same rows.
    """

    def __init__(
        self,
        occurrences: Occurrences,
        baseline: Baseline,
        named: Callable[[str], Baseline],
        prototypes: Mapping[str, Metric],
        indices: Mapping[str, np.ndarray | None],
        seed: int,
    ) -> None:
        self.occurrences, self.seed, self.prototypes, self.indices = occurrences, seed, prototypes, indices
        self.sample = SampleBaseline(baseline, occurrences, np.random.default_rng([seed, Stream.BASELINE]))
        self._schemes = {OF_RUN: baseline, baseline.name: baseline}
        self._named, self._drawn = named, dict[tuple[str, Over], GroupBaseline | None]()
        self.of_groups = {
            label: self._resolve(prototype) if isinstance(prototype, GroupMean) else {}
            for label, prototype in prototypes.items()
        }

    def _resolve(self, prototype: Metric) -> dict[str, GroupBaseline]:
        """A measure's baselines of single groups, by name."""
        first = OF_RUN if self._of_groups(OF_RUN, prototype.over) else prototype.baselines[0]
        main = self._of_groups(first, prototype.over)
        others = {
            name: self._of_groups(name, prototype.over) for name in prototype.baselines if name not in (OF_RUN, first)
        }
        further_levels = {name: each for name, each in others.items() if each and each is not main}
        return {FIRST: main, **further_levels} if main else further_levels

    def _of_groups(self, name: str, over: Over) -> GroupBaseline | None:
        """The named baseline of groups of a kind, drawn once; None where it gives groups none of their own."""
        scheme = self._schemes.get(name) or self._schemes.setdefault(name, self._named(name))
        if (scheme.name, over) not in self._drawn:
            self._drawn[scheme.name, over] = scheme.group_baseline(self.occurrences, over, self.seed)
        return self._drawn[scheme.name, over]

    def observe_layer(self, reader: WordReader, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        """Take one layer's baselines; each random group is gathered once for all measures."""
        of_sample = {label: metric for label, metric in metrics.items() if FIRST not in self.of_groups[label]}
        self.sample.observe_layer(reader, of_sample, influence=influence)
        for baseline in dict.fromkeys(each for by_name in self.of_groups.values() for each in by_name.values()):
            measures = {
                label: MeasuredGroups(metric, self.indices[label])
                for label, metric in metrics.items()
                if baseline in self.of_groups[label].values() and isinstance(metric, GroupMean)
            }
            baseline.observe_layer(reader, measures, influence=influence)

    def values(self, label: str, groups: ScoredGroups) -> dict[str, BaselineValues]:
        """The baselines of a measure's groups, by name, the first first."""
        of_groups = self.of_groups[label]
        sources: dict[str, SampleBaseline | GroupBaseline] = {FIRST: self.sample, **of_groups}
        return {name: source.values(label, groups) for name, source in sources.items()}

    def baseline_source(self, label: str) -> str:
        """The source of the measure's first baseline: `exact`, `drawn`, `size-matched`, or nothing where it has none to
        speak of."""
        first = self.of_groups[label].get(FIRST)
        return (first or self.sample).baseline_source(self.prototypes[label])


class LayerBaseline(NamedTuple):
    """A measure's baseline in one layer: its value on random groups, or its expectation over all of them."""

    value: float  # in [-1, 1]; NaN without a pair
    influence: np.ndarray  # (n_blocks,) the influence of each block of clusters on it
    n: int  # sentences (or rows) behind the value


def expected_mean_cosine(blocks: Blocks, occurrences: Occurrences, over: Among) -> LayerBaseline:
    """The expected cosine of random occurrences of a layer, in [-1, 1].

    Over sentences: one word from each, with m_s the mean unit vector of distinct sentence s of S,
    A = (|sum m_s|^2 - sum |m_s|^2) / (S (S - 1)). Pairs of sentences that gold pairs link, directly or through others,
    are left out of it likewise. Over rows: of two distinct occurrences of distinct sentences, uniform over all of them.
    Rows without a direction (zero, or not finite) have no share in it.
    """
    parts: list[np.ndarray] = []
    sizes: list[np.ndarray] = []  # rows with a direction
    own: list[np.ndarray] = []  # what is no pair: of a sentence (or a row) with itself
    names: list[np.ndarray] = []
    for block in blocks(occurrences.distinct):
        x = block.x
        rows = PreparedRows(x)  # of its own, since the sums are changed
        with np.errstate(invalid="ignore", over="ignore"):
            total, length = rows.sums.normalized, rows.norms
            has = np.isfinite(length) & (length > 0)
            for i in np.flatnonzero(~has.all(axis=1)).tolist():
                u = x[i][has[i]].astype(np.float64)
                total[i] = (u / np.linalg.norm(u, axis=1, keepdims=True)).sum(axis=0)
        n = has.sum(axis=1).astype(np.float64)
        if over == "sentence":
            total /= np.maximum(n, 1)[:, None]
            n = np.minimum(n, 1)
        own.append(np.vecdot(total, total) if over == "sentence" else n)
        sizes.append(n)
        parts.append(total.astype(np.float32))  # of each sentence: a fraction of the layer that is in memory
        names.append(np.asarray(block.keys, np.int64))
    m, size, q = np.concatenate(parts), np.concatenate(sizes), np.concatenate(own)
    clusters, sentence = occurrences.clusters, np.concatenate(names)
    partners = size * (size.sum() - 1)
    if over == "sentence" and clusters.pair_group is not None:
        group = np.unique(clusters.pair_group[sentence], return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        first = np.searchsorted(group[order], np.arange(group.max() + 1))
        of_group = np.add.reduceat(m[order], first, axis=0, dtype=np.float64)
        q = np.vecdot(m, of_group[group])
        partners = size * (size.sum() - np.bincount(group, size)[group])
    where, s, n_pairs = clusters.of_sentence[sentence], m.sum(axis=0, dtype=np.float64), float(partners.sum())
    if n_pairs <= 0:
        return LayerBaseline(float("nan"), np.full(clusters.n_blocks, np.nan), int(size.sum()))
    value = float((s @ s - q.sum()) / n_pairs)
    pairs = m @ s.astype(np.float32) - q - partners * value
    return LayerBaseline(value, clusters.sum_by_block(where, 2 * pairs / n_pairs), int(size.sum()))
