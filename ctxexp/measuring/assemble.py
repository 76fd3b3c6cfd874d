"""From scores per layer to curves with intervals, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.baselines.drawn import Baseline, Matched, SizeMatched
from ctxexp.errors import MetricError
from ctxexp.measuring.bootstrap import Curve, Resamples, interval, weighted
from ctxexp.measuring.levels import Level
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.strata import StrataLevel
from ctxexp.measuring.units import Units
from ctxexp.metric import GroupMean, Metric
from ctxexp.results import Results
from ctxexp.values import Key, Values

if TYPE_CHECKING:
    import pandas as pd

TOP = 10  # words in the lists of extremes
INFLUENCED = ("word", "sense", "corpus")  # groups with rows in many units; the others lie in one each


@dataclass
class Shares:
    """What each block of units contributes to a mean over groups, from the influences of the groups' rows."""

    units: Units
    known: int = 0  # groups whose rows' influence is known
    total: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n_blocks,)

    def add(self, rows: np.ndarray, influence: np.ndarray) -> None:
        """Take the influences (w, n) of the store rows (w, n) of some groups."""
        self.known += int(np.isfinite(influence).all(axis=1).sum())
        moved = self.units.summed(self.units.of_row[rows], influence)
        self.total = self.total + moved if self.total.size else moved


@dataclass
class Chance:
    """A measure's chance level in one layer."""

    drawn: Level | None  # of the baseline's group
    scores: list[np.ndarray]  # on random groups of matched sizes: a rung each, (draws,)
    moved: list[np.ndarray]  # a rung each (n_blocks,)


@dataclass
class Collected:
    """What one metric gave, layer by layer."""

    probe: Metric
    stats: list[dict[str, float]] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # per layer (groups,)
    shares: list[Shares | None] = field(default_factory=list)
    chance: list[Chance] = field(default_factory=list)
    exact: list[Level] = field(default_factory=list)  # where the level has a closed form
    twins: list[StrataLevel] = field(default_factory=list)  # per layer, if the baseline gives groups twins

    def take(self, stats: dict[str, float], instance: Metric, shares: Shares | None, level: Level | None) -> None:
        name = instance.cosine_level
        if level is not None and name:
            self.exact.append(level)
            stats = stats | ({name: level.value, "n": float(level.n)} if name in stats else {})
        self.stats.append(stats)
        self.shares.append(shares)
        if isinstance(instance, GroupMean):
            self.keys, scores = instance.collected()
            self.scores.append(scores)

    def curve(self, statistic: str) -> np.ndarray:
        return np.array([stats.get(statistic, np.nan) for stats in self.stats], np.float64)

    def level(self) -> Curve:
        """The chance level of the baseline's group, or its expectation."""
        levels = self.exact or [c.drawn or Level(np.nan, np.zeros(1), 0) for c in self.chance]
        return Curve(np.array([level.value for level in levels]), np.stack([level.moved for level in levels]))


def assemble(
    collected: Mapping[str, Collected],
    index: Mapping[str, np.ndarray | None],
    occurrences: Occurrences,
    matched: Mapping[str, Matched],
    baseline: Baseline,
    resamples: Resamples,
) -> Results:
    """Curves of every measure, their intervals and replicates, and the tables of those over words and sentences."""
    values = Values()
    tables: dict[str, pd.DataFrame] = {}
    for label, c in collected.items():
        values.add_all(label, {name: c.curve(name) for name in dict.fromkeys(n for stats in c.stats for n in stats)})
        if isinstance(c.probe, GroupMean) and c.scores and len(c.scores[0]):
            tables |= _groups(values, label, c, index[label], occurrences, matched.get(label), baseline, resamples)
            continue
        level = c.level()
        if statistic := c.probe.cosine_level if not isinstance(c.probe, GroupMean) else "":
            _keep(values, Key(label, statistic), level, resamples)
        elif "raw" in (c.stats[0] if c.stats else ()) and label not in matched and np.isfinite(level.value).any():
            values.add(Key(label, "baseline"), level.value)
            values.add(Key(label, "adjusted"), c.curve("raw") - level.value)
    return Results.of(values, tables=tables)


def _groups(
    values: Values,
    label: str,
    c: Collected,
    chosen: np.ndarray | None,
    occurrences: Occurrences,
    family: Matched | None,
    baseline: Baseline,
    resamples: Resamples,
) -> dict[str, pd.DataFrame]:
    """Take the curves of a mean over groups; its tables."""
    kind, units = c.probe.over, occurrences.units
    counts = occurrences.groups(kind).counts
    counts = counts if chosen is None else counts[chosen]
    scores = np.stack(c.scores, axis=1)  # (groups, layers)
    if len(scores) != len(counts):
        raise MetricError(
            f"metric {label!r} kept {len(scores)} scores of {len(counts)} groups; expected one score per group"
        )
    raw = Curve(c.curve("raw"), _moved(c, scores, units))
    _keep(values, Key(label, "raw"), raw, resamples)
    adjusted_groups = None
    main_is_matched = isinstance(baseline, SizeMatched)
    if family:
        each, chance = _ladder(c, scores, counts, family)
        adjusted = Curve(raw.value, _moved(c, scores - each, units)) - chance
        name = "" if main_is_matched else "size_matched_"
        values.add(Key(label, f"{name}baseline"), chance.value)
        _keep(values, Key(label, f"{name}adjusted"), adjusted, resamples)
        adjusted_groups = scores - each if main_is_matched else None
    if c.twins:  # each group has a level of its own
        own = np.stack([level.of_group for level in c.twins], axis=1)
        adjusted_groups = scores - own
        level = _mean(np.where(np.isfinite(scores), own, np.nan))
        values.add(Key(label, "baseline"), level)
        moved = _moved(c, adjusted_groups, units) - np.stack([level.moved for level in c.twins])
        _keep(values, Key(label, "adjusted"), Curve(raw.value - level, moved), resamples)
    elif not main_is_matched:
        base = c.level()
        if np.isfinite(base.value).any():
            values.add(Key(label, "baseline"), base.value)
            _keep(values, Key(label, "adjusted"), raw - base, resamples)
        adjusted_groups = scores - base.value
    if kind == "word":
        return _word_tables(label, c, occurrences, chosen, adjusted_groups)
    if kind == "sense":
        return {label: _sense_table(c, counts)}
    if kind == "sentence":
        return {label: _table({"sentence": c.keys, "length": counts.tolist()}, raw=scores)}
    return {}


def _keep(values: Values, key: Key, curve: Curve, resamples: Resamples) -> None:
    """The curve with its interval and replicates."""
    drawn = resamples.of(curve)
    low, high = interval(drawn)
    values.add(key, curve.value, low=low, high=high, replicates=drawn)


def _moved(c: Collected, scores: np.ndarray, units: Units) -> np.ndarray:
    """(n_layers, n_blocks): how much each block of units moves the mean over groups (groups, layers).

    Groups that lie in one unit each, such as sentences, are drawn as a whole; of the others, words, the rows are: which
    words there are is part of the question, which sentences they stand in is chance. NaN where a layer has nothing to
    tell it by: fewer than two blocks, or no word with enough rows.
    """
    if c.probe.over in INFLUENCED:
        known = np.isfinite(scores).sum(axis=0)
        nothing = np.full(units.n_blocks, np.nan)
        return np.stack([s.total / n if s and s.known and n else nothing for s, n in zip(c.shares, known, strict=True)])
    where = np.array(c.keys, np.int64)
    blocks = units.of_sentence[where] if c.probe.over == "sentence" else units.of_row[where]
    moved = []
    for column in scores.T:
        finite = np.isfinite(column)
        found = units.summed(blocks, (column - _mean(column)) / max(finite.sum(), 1))
        moved.append(found if len(np.unique(blocks[finite])) > 1 else np.full(units.n_blocks, np.nan))
    return np.stack(moved)


def _ladder(c: Collected, scores: np.ndarray, counts: np.ndarray, family: Matched) -> tuple[np.ndarray, Curve]:
    """Each group's level (groups, layers) from the rungs of its size, and their mean as a curve."""
    levels = np.array([[float(_mean(rung)) for rung in chance.scores] for chance in c.chance])  # (layers, rungs)
    weights = family.weights(counts)
    each = weights @ np.nan_to_num(levels.T)  # (groups, layers)
    each[(weights > 0) @ np.isnan(levels.T)] = np.nan  # a group has a level if its rungs have
    usual = np.isfinite(scores).T.astype(np.float64) @ weights  # (layers, rungs)
    known = usual * np.isfinite(levels)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = known / known.sum(axis=1, keepdims=True)
    moved = np.stack([w @ np.stack(chance.moved) for w, chance in zip(share, c.chance, strict=True)])
    return each, Curve(weighted(usual, levels), moved)


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over the first axis of what is defined; NaN where nothing is."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = np.where(known, values, 0).sum(0) / known.sum(0)
    return result


def _table(columns: dict[str, Sequence[Any]], **per_layer: np.ndarray) -> pd.DataFrame:
    """Columns, then for each array (rows, layers) its columns name_0, name_1, ..."""
    import pandas as pd

    for name, values in per_layer.items():
        columns |= {f"{name}_{i}": column.tolist() for i, column in enumerate(values.T)}
    return pd.DataFrame(columns)


def _first_share(occurrences: Occurrences) -> np.ndarray:
    """(n_words,): the share of a word's occurrences that begin a sentence, where a causal model sees nothing else."""
    words = occurrences.by_word
    if not len(words):
        return np.empty(0)
    first = np.add.reduceat(occurrences.places[words.rows] == 0, words.starts[:-1], dtype=np.float64)
    result: np.ndarray = first / words.counts
    return result


def _sense_table(c: Collected, counts: np.ndarray) -> pd.DataFrame:
    """A row a word: its labels with how often each, by the mean over layers as the word tables."""
    raw = np.stack(c.scores, axis=1)
    words, labels = zip(*c.keys, strict=True)  # keys of this kind are pairs
    told = [", ".join(f"{name} ({n})" for name, n in sorted(Counter(of).items())) for of in labels]
    columns = {"word": words, "count": counts.tolist(), "senses": told, "mean": _mean(raw.T).tolist()}
    return _table(columns, raw=raw)


def _word_tables(
    label: str,
    c: Collected,
    occurrences: Occurrences,
    chosen: np.ndarray | None,
    adjusted: np.ndarray | None,
) -> dict[str, pd.DataFrame]:
    """The measure's word table, and its lists of extremes if it has any: by the mean over layers, ties by word."""
    raw = np.stack(c.scores, axis=1)
    where = np.arange(len(occurrences.words)) if chosen is None else chosen
    overall = _mean(raw.T)
    columns: dict[str, Sequence[Any]] = {
        "word": c.keys,
        "count": occurrences.counts[where].tolist(),
        "contexts": occurrences.contexts[where].tolist(),
        "first_share": _first_share(occurrences)[where].tolist(),
        "mean": overall.tolist(),
    }
    per_layer = {"raw": raw} if adjusted is None else {"raw": raw, "adjusted": adjusted}
    table = _table(columns, **per_layer)
    tables = {label: table}
    extremes = c.probe.extremes if isinstance(c.probe, GroupMean) else None
    if extremes:
        order = np.lexsort([np.array([str(key) for key in c.keys]), overall])
        known = order[np.isfinite(overall[order])].tolist()
        for name, chosen_words in zip(extremes, (known[::-1][:TOP], known[:TOP]), strict=True):
            tables[name] = table.iloc[chosen_words].reset_index(drop=True)
    return tables
