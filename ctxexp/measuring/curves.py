"""The records of metrics at each place, and what is made of them: curves with intervals, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.baselines import ScoredGroups
from ctxexp.errors import MetricError
from ctxexp.groups import Place
from ctxexp.maths.geometry import chance_corrected
from ctxexp.maths.resampling import Clusters, Curve, Resamples, Stream, interval
from ctxexp.maths.statistics import finite_mean
from ctxexp.maths.word_mix import MixedWords
from ctxexp.measuring.baseline_levels import FIRST
from ctxexp.measuring.rows import Rows, WordRows
from ctxexp.metrics import Estimate, GroupMean, Metric
from ctxexp.occurrences import Occurrences
from ctxexp.results.values import LAYER, Key, Values, metric_key

if TYPE_CHECKING:
    import pandas as pd

INFLUENCED = ("word", "sense", "corpus")  # groups with rows in many clusters; the others lie in one each
TOP = 10  # words in the lists of extremes


class PartIndex:
    """Divides the rows of some groups into parts: the rows that one group has in one block of clusters.

    Groups are the same at every place and for most measures, so the last answer is kept: it takes a sort of all rows.
    """

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self._last: tuple[np.ndarray, np.ndarray, Parts] | None = None

    def of(self, rows: np.ndarray, group: np.ndarray) -> Parts:
        """Of store rows (m,) in the groups `group` (m,)."""
        if self._last and np.array_equal(self._last[0], rows) and np.array_equal(self._last[1], group):
            return self._last[2]
        blocks, n = self.clusters.of_row[rows], self.clusters.n_blocks
        part, of_row = np.unique(blocks + n * group, return_inverse=True)
        parts = Parts(blocks, of_row.astype(np.int32), part // n)
        self._last = rows, group, parts
        return parts


class Parts(NamedTuple):
    """The places of m rows in some groups, whose parts in one block each are p in number."""

    blocks: np.ndarray  # (m,) each row's block of clusters
    of_row: np.ndarray  # (m,) its part
    group: np.ndarray  # (p,) each part's group


@dataclass
class ClusterInfluence:
    """The influence of each block of clusters on a mean over groups, summed from the influences of the groups' rows."""

    part_index: PartIndex
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
        parts = self.part_index.of(rows, np.repeat(np.arange(len(sizes)), sizes))
        weighted_influence = influence if weights is None else influence * np.repeat(weights, sizes)
        self.total = self.part_index.clusters.sum_by_block(parts.blocks, weighted_influence)
        squares = np.bincount(parts.of_row, influence) ** 2  # a group's rows in one unit move it together
        self.errors = np.sqrt(np.bincount(parts.group, squares, minlength=len(sizes)))
        self.n_clusters = np.bincount(parts.group, minlength=len(sizes))
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
    influences: list[ClusterInfluence | None] = field(default_factory=list)

    def take(
        self, place: Place, stats: Mapping[str, float | Estimate], instance: Metric, influences: ClusterInfluence | None
    ) -> None:
        """Add the statistics and scores of the instance that saw a place."""
        self.stats[place] = stats
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
    def groups(self) -> ScoredGroups | None:
        """The groups with their scores (groups, layers); None where they have none, or there is no group."""
        if not self.by_layer or not len(self.by_layer[0]):
            return None
        return ScoredGroups(np.stack(self.by_layer, axis=1), self.indices, self.weights)

    @property
    def errors(self) -> np.ndarray:
        """(groups, layers): the standard error of each score; NaN where rows' influence isn't known."""
        unknown = np.full(len(self.keys), np.nan)
        return np.stack([s.errors if s and s.errors is not None else unknown for s in self.influences], axis=1)

    @property
    def n_clusters(self) -> np.ndarray:
        """(groups,): in how many blocks of clusters each group has rows, 0 where that isn't known."""
        known = (s.n_clusters for s in self.influences if s and s.n_clusters is not None)
        return next(known, np.zeros(len(self.keys), np.int64))

    @property
    def statistics(self) -> list[str]:
        """Their names, in order of appearance."""
        return list(dict.fromkeys(name for stats in self.stats.values() for name in stats))

    def influence(self, scores: np.ndarray, clusters: Clusters) -> np.ndarray:
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


def write(
    values: Values, rows: Rows, collected: Mapping[str, MetricRecord], *, seed: int, bootstrap: int
) -> dict[str, pd.DataFrame]:
    """Add every measure's curves, intervals and replicates to the values; its tables."""
    for label, c in collected.items():
        for statistic in c.statistics:
            _statistic(values, label, statistic, {place: c.stats[place].get(statistic) for place in rows.places})
    tables = {label: _of_rows(c.rows) for label, c in collected.items() if c.rows}
    if isinstance(rows, WordRows):
        resamples = Resamples(rows.occurrences.clusters, bootstrap, np.random.default_rng([seed, Stream.RESAMPLE]))
        for label, c in collected.items():
            tables |= _Words(values, rows, label, c, resamples).write()
    return tables


def _statistic(values: Values, label: str, statistic: str, found: Mapping[Place, float | Estimate | None]) -> None:
    """A curve over the layers, and a value at each other place; what a place lacks is NaN."""
    of = {place: one if isinstance(one, Estimate) else _bare(one) for place, one in found.items()}
    all_replicates = [one.replicates for one in of.values() if one.replicates is not None]
    missing = np.full(max(map(len, all_replicates), default=0), np.nan, np.float32)
    for name in dict.fromkeys(LAYER if place.layer is not None else place.name for place in of):
        here = [one for place, one in of.items() if name == (LAYER if place.layer is not None else place.name)]
        draws = [missing if one.replicates is None else np.asarray(one.replicates, np.float32) for one in here]
        values.set(
            metric_key(label, statistic, name),
            np.array([one.value for one in here]),
            low=np.array([one.low for one in here]),
            high=np.array([one.high for one in here]),
            replicates=np.stack(draws) if name == LAYER else draws[0],
        )


def _bare(value: float | None) -> Estimate:
    nan = float("nan")
    return Estimate(nan if value is None else float(value), nan, nan)


class _Words:
    """A measure of words: its baselines, the remainder above them, and its tables."""

    def __init__(self, values: Values, rows: WordRows, label: str, c: MetricRecord, resamples: Resamples) -> None:
        self.values, self.label, self.c, self.resamples = values, label, c, resamples
        self.intervals = rows.intervals
        self.occurrences, self.baselines, self.layers = rows.occurrences, rows.baselines, rows.store.layer_numbers
        self.is_causal = rows.text is not None and rows.text.encoder.causal is True

    def write(self) -> dict[str, pd.DataFrame]:
        """Add its curves to the values; its tables."""
        groups, prototype, sample = self.c.groups, self.c.prototype, self.baselines.sample
        if groups is not None:
            return self._groups(groups)
        if prototype._cosine_statistic and not isinstance(prototype, GroupMean):  # the statistic is itself a baseline
            key = Key(self.label, prototype._cosine_statistic)
            add_curve(self.values, key, sample.curve(self.label), self.resamples)
            if self.baselines.baseline_source(self.label) == "exact":
                self.values.set(Key(self.label, "n"), sample.sizes(self.label))
        elif "raw" in self.c.statistics and FIRST not in self.baselines.of_groups[self.label]:
            baseline = sample.curve(self.label).value
            if np.isfinite(baseline).any():
                raw = self.values.by_key[Key(self.label, "raw")].value
                self.values.set(Key(self.label, "baseline"), baseline)
                self.values.set(Key(self.label, "adjusted"), raw - baseline)
        return {}

    def _groups(self, groups: ScoredGroups) -> dict[str, pd.DataFrame]:
        """Write a mean over groups; the tables of the groups."""
        label, c, kind, scores = self.label, self.c, self.c.prototype.over, groups.scores
        counts = self.occurrences.groups(kind).counts if kind != "sample" else np.full(len(scores), 0)
        counts = counts if groups.indices is None else counts[groups.indices]
        if len(scores) != len(counts):
            raise MetricError(
                f"metric {label!r} kept {len(scores)} scores of {len(counts)} groups; expected one score per group"
            )
        raw = Curve(self.values.by_key[Key(label, "raw")].value, self._influence(scores))
        add_curve(self.values, Key(label, "raw"), raw, self.resamples)
        baselines = self.baselines.values(label, groups)
        above = scores - baselines[FIRST].by_group  # each group's score less its baseline
        for name, baseline in baselines.items():
            if np.isfinite(baseline.curve.value).any():
                influence = raw.influence
                if baseline.by_group.ndim == 2:
                    influence = self._influence(scores - baseline.by_group)
                self.values.set(Key(label, "baseline", baseline=name), baseline.curve.value)
                adjusted = Curve(raw.value, influence) - baseline.curve
                add_curve(self.values, Key(label, "adjusted", baseline=name), adjusted, self.resamples)
                if c.prototype.reading.maximum == 1:
                    key = Key(label, "share_of_room", baseline=name)
                    add_share(self.values, key, adjusted, baseline.curve, self.resamples)
        if kind == "word":
            return self._word_tables(scores, above)
        if kind == "sense":
            return {label: self._sense_table(scores, counts)}
        columns = {"sentence": c.keys, "length": counts}
        return {label: _by_layer(self.layers, columns, raw=scores)} if kind == "sentence" else {}

    def _influence(self, scores: np.ndarray) -> np.ndarray:
        """(n_layers, n_blocks): the influence of each block of clusters on the mean of scores (groups, layers): that of
        its rows on the scores and, for intervals of new text, that of its words on the weights."""
        c, clusters = self.c, self.occurrences.clusters
        influence = c.influence(scores, clusters)
        if c.mixed is None or self.intervals == "these_words" or c.mixed.mix.weights == "equal":
            return influence
        groups = self.occurrences.groups(c.prototype.over)
        groups = groups if c.indices is None else groups.subset(c.indices)
        every = np.bincount(clusters.of_row[self.occurrences.rows], minlength=clusters.n_blocks)
        stands_for = np.sqrt(c.mixed.counts / groups.counts)  # of a bounded text a word has some rows
        for layer, column in enumerate(scores.T):
            by_count = c.mixed.count_influence(column)
            of_rows = np.repeat(by_count.of_word * stands_for, groups.counts)
            influence[layer] += clusters.sum_by_block(clusters.of_row[groups.rows], of_rows)
            influence[layer] += by_count.of_total * every * (c.mixed.total / every.sum())
        return influence

    def _sense_table(self, scores: np.ndarray, counts: np.ndarray) -> pd.DataFrame:
        """A row a word: its labels with how often each, by the mean over layers as the word tables."""
        labels = self.occurrences.by_sense.labels
        if self.c.indices is not None:
            labels = [labels[i] for i in self.c.indices.tolist()]
        senses = [", ".join(f"{name} ({n})" for name, n in sorted(Counter(of).items())) for of in labels]
        columns: dict[str, Sequence[object] | np.ndarray] = {
            "word": self.c.keys,
            "count": counts,
            "senses": senses,
            "mean": finite_mean(scores.T),
        }
        return _by_layer(self.layers, columns, raw=scores)

    def _word_tables(self, scores: np.ndarray, above: np.ndarray) -> dict[str, pd.DataFrame]:
        """The measure's word table, and its lists of extremes if it has any: by the mean over layers, ties by word."""
        occurrences, c = self.occurrences, self.c
        where = np.arange(len(occurrences.words)) if c.indices is None else c.indices
        columns: dict[str, Sequence[object] | np.ndarray] = {
            "word": c.keys,
            "count": occurrences.counts[where],
            "contexts": occurrences.contexts[where],
            "first_share": _first_share(occurrences)[where],
            **({"constant": _first_share(occurrences)[where] == 1} if self.is_causal else {}),
            "mean": finite_mean(scores.T),
        }
        return word_tables(self.label, c.prototype, self.layers, columns, scores, above, c.errors, c.n_clusters)


def add_curve(values: Values, key: Key, curve: Curve, resamples: Resamples) -> None:
    """Add the curve with its interval and replicates."""
    replicates = resamples.of(curve)
    low, high = interval(replicates)
    values.set(key, curve.value, low=low, high=high, replicates=replicates)


def add_share(values: Values, key: Key, adjusted: Curve, level: Curve, resamples: Resamples) -> None:
    """Add the chance-corrected cosine, the ratio of both curves, with its interval over the same resamples.

    It is undefined in a layer without room above chance; `<statistic>_undefined` then counts the groups that it leaves
    out there. A layer has an interval only where every resample leaves room.
    """
    value = chance_corrected(adjusted.value, level.value)
    replicates = chance_corrected(resamples.of(adjusted), resamples.of(level)).astype(np.float32)
    replicates = np.minimum(replicates, 1.0)  # they are linear, where a share ends at 1
    replicates[~np.isfinite(replicates).all(axis=1)] = np.nan
    low, high = interval(replicates)
    values.set(key, value, low=low, high=high, replicates=replicates)
    closed = np.isfinite(adjusted.value) & ~np.isfinite(value)
    if closed.any():
        groups = values.by_key[key._replace(statistic="n", baseline="")].value
        values.set(key._replace(statistic=f"{key.statistic}_undefined"), np.where(closed, groups, 0.0))


def word_tables(
    label: str,
    metric: Metric,
    numbers: Sequence[int],
    columns: Mapping[str, Sequence[object] | np.ndarray],
    scores: np.ndarray,
    above: np.ndarray | None,
    errors: np.ndarray,
    n_clusters: np.ndarray,
) -> dict[str, pd.DataFrame]:
    """A measure's table of words from the columns `word`, `count` ... `mean` and (words, layers) arrays, and its lists
    of extremes with their intervals by layer.

    `n_clusters` (words,): how many documents or sentences each word's standard errors (`errors`) are over. Words that
    the column `constant` marks, which a causal model only ever sees with nothing to their left, are in no list.
    """
    table = _by_layer(numbers, columns, raw=scores, **({} if above is None else {"adjusted": above}))
    tables = {label: table}
    if metric.reading.extremes:
        words, overall = [str(word) for word in columns["word"]], np.asarray(columns["mean"])
        varies = np.isfinite(overall) & ~np.asarray(columns.get("constant", np.zeros(len(words))), bool)
        factor = listed_factor(n_clusters, int(varies.sum()))
        factors = {"word": columns["word"], "listed_factor": factor}
        tables[f"{label}_errors"] = _by_layer(numbers, factors, error=errors)
        half = factor[:, None] * errors
        listed = _by_layer(numbers, dict(table.items()), low=scores - half, high=scores + half)
        order = np.lexsort([np.array(words), overall])
        known = order[varies[order]]
        for name, chosen in zip(metric.reading.extremes, (known[::-1][:TOP], known[:TOP]), strict=True):
            tables[name] = listed.iloc[chosen].reset_index(drop=True)
    return tables


def listed_factor(n_clusters: np.ndarray, n_words: int) -> np.ndarray:
    """(words,): how many standard errors the ends of a listed word's 95% interval are from its score.

    A list holds the 2 x `TOP` highest and lowest of `n_words` scores, those that chance has moved furthest: of equal
    words, intervals of 1.96 standard errors hold half to four fifths of them. Intervals of the level
    1 - .05 x listed / n_words hold 95% of what was selected, on average (Benjamini & Yekutieli 2005, "False Discovery
    Rate-Adjusted Multiple Confidence Intervals for Selected Parameters"). Quantiles are Student's, with a degree of
    freedom less than the word has clusters; NaN for a word of one cluster.
    """
    from scipy.special import stdtrit

    share = min(1.0, 2 * TOP / max(n_words, 1))
    df = np.where(n_clusters > 1, n_clusters - 1.0, np.nan)
    return stdtrit(df, 1 - 0.025 * share)


def _of_rows(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Rows as a table, columns in order of first appearance; what a row lacks is empty."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: [row.get(name, "") for row in rows] for name in names})


def _by_layer(
    numbers: Sequence[int], columns: Mapping[str, Sequence[object] | np.ndarray], **per_layer: np.ndarray
) -> pd.DataFrame:
    """Columns, then for each array (rows, layers) its columns name_0, name_1, ... by the layers' numbers."""
    import pandas as pd

    layers = {
        f"{name}_{i}": column for name, values in per_layer.items() for i, column in zip(numbers, values.T, strict=True)
    }
    return pd.DataFrame({**columns, **layers})


def _first_share(occurrences: Occurrences) -> np.ndarray:
    """(n_words,): the share of a word's occurrences that begin a sentence, where a causal model sees nothing else."""
    words = occurrences.by_word
    if not len(words):
        return np.empty(0)
    first = np.add.reduceat(occurrences.places[words.rows] == 0, words.starts[:-1], dtype=np.float64)
    return first / words.counts
