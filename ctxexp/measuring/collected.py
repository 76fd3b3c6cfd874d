"""What the metrics gave at each place, before curves are made of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ctxexp.measuring.bootstrap import mean
from ctxexp.measuring.rows import Place
from ctxexp.measuring.units import Units
from ctxexp.metric import Estimate, Metric

INFLUENCED = ("word", "sense", "corpus")  # groups with rows in many units; the others lie in one each


@dataclass
class Shares:
    """What each block of units contributes to a mean over groups, from the influences of the groups' rows."""

    units: Units
    known: int = 0  # groups whose rows' influence is known
    total: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n_blocks,)
    errors: list[np.ndarray] = field(default_factory=list)  # (w,) each group's standard error

    def add(self, rows: np.ndarray, influence: np.ndarray) -> None:
        """Take the influences (w, n) of the store rows (w, n) of some groups."""
        self.known += int(np.isfinite(influence).all(axis=1).sum())
        blocks = self.units.of_row[rows]
        moved = self.units.summed(blocks, influence)
        self.total = self.total + moved if self.total.size else moved
        of_unit, at = np.unique(blocks + self.units.n_blocks * np.arange(len(rows))[:, None], return_inverse=True)
        squares = np.bincount(at.ravel(), influence.ravel()) ** 2  # a group's rows in one unit move it together
        self.errors.append(np.sqrt(np.bincount(of_unit // self.units.n_blocks, squares, minlength=len(rows))))


@dataclass
class Collected:
    """What one metric gave, place by place. `chosen` are the groups that it got (None: all)."""

    probe: Metric
    chosen: np.ndarray | None
    stats: dict[Place, Mapping[str, float | Estimate]] = field(default_factory=dict)
    rows: list[dict[str, object]] = field(default_factory=list)  # of its own table
    keys: list[Hashable] = field(default_factory=list)  # of its groups, where these have scores
    by_layer: list[np.ndarray] = field(default_factory=list)  # (groups,) scores each
    shares: list[Shares | None] = field(default_factory=list)

    def take(
        self, place: Place, stats: Mapping[str, float | Estimate], instance: Metric, shares: Shares | None
    ) -> None:
        """What the instance that saw a place says of it."""
        self.stats[place] = stats
        self.shares.append(shares)
        if (found := instance.collected()) is not None:
            self.keys, scores = found
            self.by_layer.append(scores)

    @property
    def scores(self) -> np.ndarray | None:
        """(groups, layers); None where groups have no scores, or there is no group."""
        return np.stack(self.by_layer, axis=1) if self.by_layer and len(self.by_layer[0]) else None

    @property
    def errors(self) -> np.ndarray:
        """(groups, layers): the standard error of each score; NaN where rows' influence isn't known."""
        unknown = [np.full(len(self.keys), np.nan)]
        return np.stack([np.concatenate(s.errors if s and s.errors else unknown) for s in self.shares], axis=1)

    @property
    def statistics(self) -> list[str]:
        """Their names, in order of appearance."""
        return list(dict.fromkeys(name for stats in self.stats.values() for name in stats))

    def moved(self, scores: np.ndarray, units: Units) -> np.ndarray:
        """(n_layers, n_blocks): how much each block of units moves the mean over groups (groups, layers).

        Groups that lie in one unit each, such as sentences, are drawn as a whole; of the others, words, the rows are:
        which words there are is part of the question, which sentences they stand in is chance. NaN where a layer has
        nothing to tell it by: fewer than two blocks, no word with enough rows, or random groups across units.
        """
        nothing = np.full(units.n_blocks, np.nan)
        if self.probe.over in INFLUENCED:
            known = np.isfinite(scores).sum(axis=0)
            pairs = zip(self.shares, known, strict=True)
            return np.stack([s.total / n if s and s.known and n else nothing for s, n in pairs])
        if self.probe.over == "sample":
            return np.stack([nothing] * scores.shape[1])
        where = np.array(self.keys, np.int64)
        blocks = units.of_sentence[where] if self.probe.over == "sentence" else units.of_row[where]
        moved = []
        for column in scores.T:
            finite = np.isfinite(column)
            found = units.summed(blocks, (column - mean(column)) / max(finite.sum(), 1))
            moved.append(found if len(np.unique(blocks[finite])) > 1 else nothing)
        return np.stack(moved)
