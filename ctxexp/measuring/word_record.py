"""What is kept of one metric over words, layer by layer: its statistics, its groups' scores, and the influence of each
block of clusters on their mean; and, once all layers were taken, the measure against its baselines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ctxexp.baselines import ScoredGroups
from ctxexp.errors import MetricError
from ctxexp.maths.resampling import Clusters, Curve
from ctxexp.maths.statistics import finite_mean
from ctxexp.maths.word_mix import MixedWords
from ctxexp.measuring.baseline_levels import FIRST, BaselineLevels
from ctxexp.measuring.record import Statistics, number
from ctxexp.measuring.word_measures import WordMeasure, word_columns
from ctxexp.measuring.word_rows import WordRows
from ctxexp.metrics import GroupMean, Metric
from ctxexp.occurrences import Occurrences

INFLUENCED = ("word", "sense", "corpus")  # groups with rows in many clusters; the others lie in one each


class ClusterShares:
    """Divides the rows of some groups into shares: the rows that one group has in one block of clusters.

    Groups are the same at every place and for most measures, so the last answer is kept: it takes a sort of all rows.
    """

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self._last: tuple[np.ndarray, np.ndarray, Shares] | None = None

    def of(self, rows: np.ndarray, group: np.ndarray) -> Shares:
        """Of store rows (m,) in the groups `group` (m,)."""
        if self._last and np.array_equal(self._last[0], rows) and np.array_equal(self._last[1], group):
            return self._last[2]
        blocks, n = self.clusters.of_row[rows], self.clusters.n_blocks
        share, of_row = np.unique(blocks + n * group, return_inverse=True)
        shares = Shares(blocks, of_row.astype(np.int32), share // n)
        self._last = rows, group, shares
        return shares


class Shares(NamedTuple):
    """The places of m rows in some groups, whose shares in one block each are p in number."""

    blocks: np.ndarray  # (m,) each row's block of clusters
    of_row: np.ndarray  # (m,) its share
    group: np.ndarray  # (p,) each share's group


@dataclass
class ClusterInfluence:
    """The influence of each block of clusters on a mean over groups, summed from the influences of the groups' rows."""

    shares: ClusterShares
    known: int = 0  # groups whose rows' influence is known
    total: np.ndarray | None = None  # (n_blocks,)
    errors: np.ndarray | None = None  # (groups,) each group's standard error
    n_clusters: np.ndarray | None = None  # (groups,) in how many blocks of clusters each has rows
    _taken: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, rows: np.ndarray, influence: np.ndarray) -> None:
        """Take the influences (w, n) of the store rows (w, n) of some groups."""
        self._taken.append((rows, influence))

    def close(self, weights: np.ndarray | None) -> None:
        """Add up what was taken, in one go, the groups with these weights (groups,): a place's groups come in thousands
        of small blocks."""
        if not self._taken:
            return
        sizes = np.concatenate([np.full(len(rows), rows.shape[1]) for rows, _ in self._taken])
        rows = np.concatenate([rows.ravel() for rows, _ in self._taken])
        influence = np.concatenate([of_block.ravel() for _, of_block in self._taken])
        self._taken.clear()
        shares = self.shares.of(rows, np.repeat(np.arange(len(sizes)), sizes))
        weighted_influence = influence if weights is None else influence * np.repeat(weights, sizes)
        self.total = self.shares.clusters.sum_by_block(shares.blocks, weighted_influence)
        squares = np.bincount(shares.of_row, influence) ** 2  # a group's rows in one unit move it together
        self.errors = np.sqrt(np.bincount(shares.group, squares, minlength=len(sizes)))
        self.n_clusters = np.bincount(shares.group, minlength=len(sizes))
        self.known = int(np.isfinite(self.errors).sum())


@dataclass
class WordRecord:
    """The record of one metric over words, layer by layer. `indices` are the groups of its kind that it got (None:
    all)."""

    prototype: Metric
    indices: np.ndarray | None
    mixed: MixedWords | None = None  # of words and senses
    statistics: list[Statistics] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)  # of its groups, where these have scores
    by_layer: list[np.ndarray] = field(default_factory=list)  # (groups,) scores each
    by_layer_weights: list[np.ndarray | None] = field(default_factory=list)  # (groups,) each; None: equal
    influences: list[ClusterInfluence | None] = field(default_factory=list)

    def take(self, statistics: Statistics, instance: Metric, influences: ClusterInfluence | None) -> None:
        """Add the statistics and scores of the instance that saw a layer."""
        self.statistics.append(statistics)
        if isinstance(instance, GroupMean):
            self.keys, scores, weights = instance._group_scores()
            self.by_layer.append(scores)
            self.by_layer_weights.append(weights)
        if influences is not None:
            influences.close(self.by_layer_weights[-1] if self.by_layer_weights else None)
        self.influences.append(influences)

    @property
    def weights(self) -> np.ndarray | None:
        """(groups, layers): the weights in the mean over groups; None: equal."""
        weights = [w for w in self.by_layer_weights if w is not None]
        return np.stack(weights, axis=1) if weights else None

    @property
    def _errors(self) -> np.ndarray:
        """(groups, layers): the standard error of each score; NaN where rows' influence isn't known."""
        unknown = np.full(len(self.keys), np.nan)
        return np.stack([s.errors if s and s.errors is not None else unknown for s in self.influences], axis=1)

    @property
    def _n_clusters(self) -> np.ndarray:
        """(groups,): in how many blocks of clusters each group has rows, 0 where that isn't known."""
        known = (s.n_clusters for s in self.influences if s and s.n_clusters is not None)
        return next(known, np.zeros(len(self.keys), np.int64))

    def _influence_of_rows(self, scores: np.ndarray, clusters: Clusters) -> np.ndarray:
        """(n_layers, n_blocks): the influence of each block of clusters on the mean over groups (groups, layers).

        Groups that lie in one unit each, such as sentences, are drawn as a whole; of the others, words, the rows are:
        which words there are is part of the question, which sentences they stand in is chance. NaN where a layer has
        nothing to tell it by: fewer than two blocks, no word with enough rows, or random groups across clusters.
        """
        unknown = np.full(clusters.n_blocks, np.nan)
        weights = np.ones(scores.shape) if self.weights is None else self.weights
        totals = (weights * np.isfinite(scores)).sum(axis=0)  # (layers,)
        if self.prototype.over in INFLUENCED:
            pairs = zip(self.influences, totals, strict=True)
            return np.stack([s.total / n if s and s.total is not None and s.known and n else unknown for s, n in pairs])
        if self.prototype.over == "sample":
            return np.stack([unknown] * scores.shape[1])
        where = np.array(self.keys, np.int64)
        blocks = clusters.of_sentence[where] if self.prototype.over == "sentence" else clusters.of_row[where]
        by_layer = []
        for column, weight, total in zip(scores.T, weights.T, totals, strict=True):
            deviations = weight * (column - finite_mean(column, weight))
            of_blocks = clusters.sum_by_block(blocks, deviations / (total or 1))
            by_layer.append(of_blocks if len(np.unique(blocks[np.isfinite(column)])) > 1 else unknown)
        return np.stack(by_layer)

    def measure(self, label: str, words: WordRows, baselines: BaselineLevels) -> WordMeasure:
        """The measure against its baselines, with the table of its groups, once all layers were taken."""
        metric, statistics = self.prototype, self.statistics
        if self.by_layer and len(self.by_layer[0]):
            return self._mean(label, words, baselines)
        levels: dict[str, tuple[Curve, Curve | None]] = {FIRST: (baselines.sample.curve(label), None)}
        if metric.cosine_statistic and not isinstance(metric, GroupMean):  # the chance level is its value
            if baselines.baseline_source(label) == "exact":
                sizes = baselines.sample.sizes(label).tolist()
                statistics = [{**found, "n": n} for found, n in zip(statistics, sizes, strict=True)]
            return WordMeasure(metric, statistics, levels=levels)
        if any("raw" in found for found in statistics) and FIRST not in baselines.of_groups[label]:
            return WordMeasure(metric, statistics, levels=levels)
        return WordMeasure(metric, statistics)  # without a level of chance, or with none in this text

    def _mean(self, label: str, words: WordRows, baselines: BaselineLevels) -> WordMeasure:
        """The same of a mean over groups."""
        groups = ScoredGroups(np.stack(self.by_layer, axis=1), self.indices, self.weights)
        kind, scores, occurrences = self.prototype.over, groups.scores, words.occurrences
        counts = occurrences.groups(kind).counts if kind != "sample" else np.full(len(scores), 0)
        counts = counts if groups.indices is None else counts[groups.indices]
        if len(scores) != len(counts):
            raise MetricError(
                f"metric {label!r} kept {len(scores)} scores of {len(counts)} groups; expected one score per group"
            )
        value = np.array([number(found["raw"]) for found in self.statistics])
        raw = Curve(value, self._influence(scores, words))
        levels: dict[str, tuple[Curve, Curve | None]] = {}
        every = baselines.values(label, groups)
        for name, baseline in every.items():
            against = raw
            if baseline.by_group.ndim == 2 and np.isfinite(baseline.curve.value).any():
                against = Curve(value, self._influence(scores - baseline.by_group, words))
            levels[name] = baseline.curve, against - baseline.curve
        above = scores - every[FIRST].by_group  # each group's score less its baseline
        return WordMeasure(
            self.prototype,
            self.statistics,
            raw=raw,
            levels=levels,
            columns=self._columns(words, scores, counts),
            scores=scores,
            above=above if kind == "word" else None,
            errors=self._errors if kind == "word" else None,
            n_clusters=self._n_clusters,
        )

    def _columns(
        self, words: WordRows, scores: np.ndarray, counts: np.ndarray
    ) -> dict[str, Sequence[object] | np.ndarray]:
        """The columns of the table of the groups, but for those of layers; none of groups that have no table."""
        kind, occurrences = self.prototype.over, words.occurrences
        if kind == "word":
            where = np.arange(len(occurrences.words)) if self.indices is None else self.indices
            is_causal = words.text is not None and words.text.encoder.causal is True
            numbers = occurrences.counts[where], occurrences.contexts[where], _first_share(occurrences)[where]
            return word_columns(self.keys, *numbers, scores, is_causal=is_causal)
        if kind == "sense":  # a row a word: its labels with how often each
            labels = occurrences.by_sense.labels
            labels = labels if self.indices is None else [labels[i] for i in self.indices.tolist()]
            senses = [", ".join(f"{name} ({n})" for name, n in sorted(Counter(of).items())) for of in labels]
            return {"word": self.keys, "count": counts, "senses": senses, "mean": finite_mean(scores.T)}
        return {"sentence": self.keys, "length": counts} if kind == "sentence" else {}

    def _influence(self, scores: np.ndarray, words: WordRows) -> np.ndarray:
        """(n_layers, n_blocks): the influence of each block of clusters on the mean of scores (groups, layers): that of
        its rows on the scores and, for intervals of new text, that of its words on the weights."""
        occurrences, mixed = words.occurrences, self.mixed
        clusters = occurrences.clusters
        influence = self._influence_of_rows(scores, clusters)
        if mixed is None or words.intervals == "these_words" or mixed.mix.weights == "equal":
            return influence
        groups = occurrences.groups(self.prototype.over)
        groups = groups if self.indices is None else groups.subset(self.indices)
        every = np.bincount(clusters.of_row[occurrences.rows], minlength=clusters.n_blocks)
        stands_for = np.sqrt(mixed.counts / groups.counts)  # of a bounded text a word has some rows
        for layer, column in enumerate(scores.T):
            by_count = mixed.count_influence(column)
            of_rows = np.repeat(by_count.of_word * stands_for, groups.counts)
            influence[layer] += clusters.sum_by_block(clusters.of_row[groups.rows], of_rows)
            influence[layer] += by_count.of_total * every * (mixed.total / every.sum())
        return influence


def _first_share(occurrences: Occurrences) -> np.ndarray:
    """(n_words,): the share of a word's occurrences that begin a sentence, where a causal model sees nothing else."""
    words = occurrences.by_word
    if not len(words):
        return np.empty(0)
    first = np.add.reduceat(occurrences.places[words.rows] == 0, words.starts[:-1], dtype=np.float64)
    return first / words.counts
