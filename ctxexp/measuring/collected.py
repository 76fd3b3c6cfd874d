"""The records of metrics at each place, from which curves are made."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ctxexp.baseline import ScoredGroups
from ctxexp.maths.summary import finite_mean
from ctxexp.measuring.bootstrap import Units
from ctxexp.measuring.mix import MixedWords
from ctxexp.measuring.rows import Place
from ctxexp.metric import Estimate, Metric, has_scores

INFLUENCED = ("word", "sense", "corpus")  # groups with rows in many units; the others lie in one each


class Split:
    """Where the rows of some groups fall: which of them one group has in one block of units.

    Groups are the same at every place and for most measures, so the last answer is kept: it takes a sort of all rows.
    """

    def __init__(self, units: Units) -> None:
        self.units = units
        self._last: tuple[np.ndarray, np.ndarray, Parts] | None = None

    def of(self, rows: np.ndarray, group: np.ndarray) -> Parts:
        """Of store rows (m,) in the groups `group` (m,)."""
        if self._last and np.array_equal(self._last[0], rows) and np.array_equal(self._last[1], group):
            return self._last[2]
        blocks, n = self.units.of_row[rows], self.units.n_blocks
        part, of_row = np.unique(blocks + n * group, return_inverse=True)
        parts = Parts(blocks, of_row.astype(np.int32), part // n)
        self._last = rows, group, parts
        return parts


class Parts(NamedTuple):
    """The places of m rows in some groups, whose parts in one block each are p in number."""

    blocks: np.ndarray  # (m,) each row's block of units
    of_row: np.ndarray  # (m,) its part
    group: np.ndarray  # (p,) each part's group


@dataclass
class ClusterInfluence:
    """The influence of each block of clusters on a mean over groups, summed from the influences of the groups' rows."""

    split: Split
    known: int = 0  # groups whose rows' influence is known
    total: np.ndarray | None = None  # (n_blocks,)
    errors: np.ndarray | None = None  # (groups,) each group's standard error
    clusters: np.ndarray | None = None  # (groups,) in how many blocks of units each has rows
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
        parts = self.split.of(rows, np.repeat(np.arange(len(sizes)), sizes))
        weighted_influence = influence if weights is None else influence * np.repeat(weights, sizes)
        self.total = self.split.units.summed(parts.blocks, weighted_influence)
        squares = np.bincount(parts.of_row, influence) ** 2  # a group's rows in one unit move it together
        self.errors = np.sqrt(np.bincount(parts.group, squares, minlength=len(sizes)))
        self.clusters = np.bincount(parts.group, minlength=len(sizes))
        self.known = int(np.isfinite(self.errors).sum())


@dataclass
class MetricRecord:
    """The record of one metric, place by place. `indices` are the groups of its kind that it got (None: all)."""

    prototype: Metric
    indices: np.ndarray | None
    mixed: MixedWords | None = None  # of words and senses
    stats: dict[Place, Mapping[str, float | Estimate]] = field(default_factory=dict)
    rows: list[dict[str, object]] = field(default_factory=list)  # of its own table
    keys: list[Hashable] = field(default_factory=list)  # of its groups, where these have scores
    by_layer: list[np.ndarray] = field(default_factory=list)  # (groups,) scores each
    by_layer_weights: list[np.ndarray | None] = field(default_factory=list)  # (groups,) each; None: equal
    shares: list[ClusterInfluence | None] = field(default_factory=list)

    def take(
        self, place: Place, stats: Mapping[str, float | Estimate], instance: Metric, shares: ClusterInfluence | None
    ) -> None:
        """Add the statistics and scores of the instance that saw a place."""
        self.stats[place] = stats
        if has_scores(instance):
            self.keys, scores, weights = instance.group_scores()
            self.by_layer.append(scores)
            self.by_layer_weights.append(weights)
        if shares is not None:
            shares.close(self.by_layer_weights[-1] if self.by_layer_weights else None)
        self.shares.append(shares)

    @property
    def weights(self) -> np.ndarray | None:
        """(groups, layers): the weights in the mean over groups; None: equal."""
        weights = [w for w in self.by_layer_weights if w is not None]
        return np.stack(weights, axis=1) if weights else None

    @property
    def groups(self) -> ScoredGroups | None:
        """The groups with their scores (groups, layers); None where they have none, or there is no group."""
        if not self.by_layer or not len(self.by_layer[0]):
            return None
        return ScoredGroups(np.stack(self.by_layer, axis=1), self.indices, self.weights)

    @property
    def errors(self) -> np.ndarray:
        """(groups, layers): the standard error of each score; NaN where rows' influence isn't known."""
        unknown = np.full(len(self.keys), np.nan)
        return np.stack([s.errors if s and s.errors is not None else unknown for s in self.shares], axis=1)

    @property
    def clusters(self) -> np.ndarray:
        """(groups,): in how many blocks of units each group has rows, 0 where that isn't known."""
        known = (s.clusters for s in self.shares if s and s.clusters is not None)
        return next(known, np.zeros(len(self.keys), np.int64))

    @property
    def statistics(self) -> list[str]:
        """Their names, in order of appearance."""
        return list(dict.fromkeys(name for stats in self.stats.values() for name in stats))

    def influence(self, scores: np.ndarray, units: Units) -> np.ndarray:
        """(n_layers, n_blocks): the influence of each block of units on the mean over groups (groups, layers).

        Groups that lie in one unit each, such as sentences, are drawn as a whole; of the others, words, the rows are:
        which words there are is part of the question, which sentences they stand in is chance. NaN where a layer has
        nothing to tell it by: fewer than two blocks, no word with enough rows, or random groups across units.
        """
        unknown = np.full(units.n_blocks, np.nan)
        weights = np.ones(scores.shape) if self.weights is None else self.weights
        totals = (weights * np.isfinite(scores)).sum(axis=0)  # (layers,)
        if self.prototype.over in INFLUENCED:
            pairs = zip(self.shares, totals, strict=True)
            return np.stack([s.total / n if s and s.total is not None and s.known and n else unknown for s, n in pairs])
        if self.prototype.over == "sample":
            return np.stack([unknown] * scores.shape[1])
        where = np.array(self.keys, np.int64)
        blocks = units.of_sentence[where] if self.prototype.over == "sentence" else units.of_row[where]
        by_layer = []
        for column, weight, total in zip(scores.T, weights.T, totals, strict=True):
            deviations = weight * (column - finite_mean(column, weight))
            of_blocks = units.summed(blocks, deviations / (total or 1))
            by_layer.append(of_blocks if len(np.unique(blocks[np.isfinite(column)])) > 1 else unknown)
        return np.stack(by_layer)
