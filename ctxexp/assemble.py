"""From scores per layer to curves and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ctxexp.baselines import Baseline, Matched, SizeMatched
from ctxexp.bootstrap import Resampled, interval, unbiased, weighted
from ctxexp.errors import MetricError
from ctxexp.metric import GroupMean, Metric
from ctxexp.occurrences import Occurrences
from ctxexp.results import Results, Table
from ctxexp.streams import Stream

TOP = 10  # words in the lists of extremes


@dataclass
class Collected:
    """What one metric gave, layer by layer."""

    probe: Metric
    stats: list[dict[str, float]] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # per layer (groups,)
    nulls: list[np.ndarray] = field(default_factory=list)  # per layer (draws,)
    twins: list[np.ndarray] = field(default_factory=list)  # per layer (groups,), if the baseline gives groups twins
    levels: list[list[np.ndarray]] = field(default_factory=list)  # per layer and rung (draws,)

    def take(self, stats: dict[str, float], instance: Metric) -> None:
        self.stats.append(stats)
        if isinstance(instance, GroupMean):
            self.keys, scores = instance.collected()
            self.scores.append(scores)

    def curve(self, statistic: str) -> np.ndarray:
        return np.array([stats.get(statistic, np.nan) for stats in self.stats], np.float64)


def assemble(
    collected: Mapping[str, Collected],
    index: Mapping[str, np.ndarray | None],
    occurrences: Occurrences,
    matched: Mapping[str, Matched],
    baseline: Baseline,
    *,
    seed: int,
    replicates: int,
) -> Results:
    """Curves of every measure and the tables of those over words and sentences."""
    results = Results()
    main_is_matched = isinstance(baseline, SizeMatched)
    for label, c in collected.items():
        for statistic in dict.fromkeys(name for stats in c.stats for name in stats):
            results.curves[f"{label}/{statistic}"] = c.curve(statistic)
        base = np.array([n[0] for n in c.nulls])
        if "raw" in (c.stats[0] if c.stats else ()) and label not in matched and np.isfinite(base).any():
            results.curves[f"{label}/baseline"] = base
            results.curves[f"{label}/adjusted"] = c.curve("raw") - base
    # Metrics over the same groups are resampled together: the same draws for every layer and measure.
    families: dict[tuple[Any, ...], list[str]] = {}
    for label, c in collected.items():
        if isinstance(c.probe, GroupMean) and c.scores and len(c.scores[0]):
            chosen = index[label]
            key = (c.probe.over, None if chosen is None else len(chosen), label in matched)
            families.setdefault(key, []).append(label)
    for (kind, *_), labels in families.items():
        chosen = index[labels[0]]
        counts = occurrences.groups(kind).counts
        counts = counts if chosen is None else counts[chosen]
        scores = np.concatenate([np.stack(collected[label].scores, axis=1) for label in labels], axis=1)
        if len(scores) != len(counts):
            raise MetricError(
                f"metric {labels[0]!r} kept {len(scores)} scores of {len(counts)} groups; expected one score per group"
            )
        family = matched.get(labels[0])
        rungs = _rungs([collected[label] for label in labels]) if family else None
        rng = np.random.default_rng([seed, Stream.RESAMPLE])
        drawn = Resampled(scores, counts, replicates, rng, (family, rungs) if family and rungs else None)
        redraw = rng.random(replicates)
        for i, label in enumerate(labels):
            c = collected[label]
            columns = slice(i * len(c.scores), (i + 1) * len(c.scores))
            raw, means = c.curve("raw"), drawn.means[:, columns]
            curves: dict[str, np.ndarray] = {}
            curves["raw_ci_low"], curves["raw_ci_high"] = interval(means)
            adjusted_groups = None
            if family and rungs:
                levels = np.stack([_mean(r[:, columns]) for r in rungs], axis=1)  # (layers, rungs)
                weights = family.weights(counts)
                each = weights @ np.nan_to_num(levels.T)  # (groups, layers)
                each[(weights > 0) @ np.isnan(levels.T)] = np.nan  # a group has a level if its rungs have
                defined = np.isfinite(scores[:, columns])
                chance = weighted(defined.T.astype(np.float64) @ weights, levels)
                name = "" if main_is_matched else "size_matched_"
                curves[f"{name}baseline"], curves[f"{name}adjusted"] = chance, raw - chance
                low, high = interval(means - drawn.chance[:, columns])
                curves[f"{name}adjusted_ci_low"], curves[f"{name}adjusted_ci_high"] = low, high
                if main_is_matched:
                    adjusted_groups = scores[:, columns] - each
            if c.twins:  # each group has a level of its own: their differences are resampled
                own = np.stack(c.twins, axis=1)
                adjusted_groups = scores[:, columns] - own
                curves["baseline"] = _mean(np.where(np.isfinite(scores[:, columns]), own, np.nan))
                curves["adjusted"] = raw - curves["baseline"]
                paired = Resampled(adjusted_groups, counts, replicates, np.random.default_rng([seed, Stream.RESAMPLE]))
                curves["adjusted_ci_low"], curves["adjusted_ci_high"] = interval(paired.means)
            elif not main_is_matched:
                base = np.array([n[0] for n in c.nulls])
                if np.isfinite(base).any():
                    curves["baseline"], curves["adjusted"] = base, raw - base
                    low, high = interval(means - _redrawn(np.stack(c.nulls, axis=1), redraw))
                    curves["adjusted_ci_low"], curves["adjusted_ci_high"] = low, high
                adjusted_groups = scores[:, columns] - base
            results.curves |= {f"{label}/{name}": curve for name, curve in curves.items()}
            if kind == "word":
                _word_tables(results, label, c, occurrences, chosen, adjusted_groups)
            elif kind == "sense":
                results.tables[label] = _sense_table(c, counts)
            elif kind == "sentence":
                columns_of = {"sentence": c.keys, "length": counts.tolist()}
                results.tables[label] = _table(columns_of, raw=np.stack(c.scores, axis=1))
    return results


def _redrawn(nulls: np.ndarray, redraw: np.ndarray) -> np.ndarray:
    """(replicates, layers): the baseline (draws, layers), moved by how a redraw differs from the redraws' mean.

    Deviations from the mean of k redraws are scaled by sqrt(k / (k - 1)), so that their variance is unbiased. They are
    drawn as they are, without Student's factor: with fewer than about ten redraws the interval is still too narrow.
    Fewer than two redraws say nothing about the baseline's error: NaN.
    """
    others = nulls[1:]
    k = np.isfinite(others).sum(axis=0)
    if (k < 2).all():
        return np.full((len(redraw), nulls.shape[1]), np.nan)
    moves = np.where(k > 1, (others - _mean(others)) * unbiased(k), np.nan)
    result: np.ndarray = nulls[0] + moves[(redraw * len(others)).astype(int)]
    return result


def _rungs(family: list[Collected]) -> list[np.ndarray]:
    """Scores on the random groups, per rung (draws, columns), columns as in the scores: measure, then layer."""
    n_rungs = len(family[0].levels[0])
    return [np.stack([layer[k] for c in family for layer in c.levels], axis=1) for k in range(n_rungs)]


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over the first axis of what is defined; NaN where nothing is."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = np.where(known, values, 0).sum(0) / known.sum(0)
    return result


def _table(columns: dict[str, Sequence[Any]], **per_layer: np.ndarray) -> Table:
    """Columns, then for each array (rows, layers) its columns name_0, name_1, ..."""
    for name, values in per_layer.items():
        columns |= {f"{name}_{i}": column.tolist() for i, column in enumerate(values.T)}
    return Table(columns)


def _first_share(occurrences: Occurrences) -> np.ndarray:
    """(n_words,): the share of a word's occurrences that begin a sentence, where a causal model sees nothing else."""
    words = occurrences.by_word
    if not len(words):
        return np.empty(0)
    first = np.add.reduceat(occurrences.places[words.rows] == 0, words.starts[:-1], dtype=np.float64)
    result: np.ndarray = first / words.counts
    return result


def _sense_table(c: Collected, counts: np.ndarray) -> Table:
    """A row a word: its labels with how often each, by the mean over layers as the word tables."""
    raw = np.stack(c.scores, axis=1)
    words, labels = zip(*c.keys, strict=True)  # keys of this kind are pairs
    told = [", ".join(f"{name} ({n})" for name, n in sorted(Counter(of).items())) for of in labels]
    columns = {"word": words, "count": counts.tolist(), "senses": told, "mean": _mean(raw.T).tolist()}
    return _table(columns, raw=raw)


def _word_tables(
    results: Results,
    label: str,
    c: Collected,
    occurrences: Occurrences,
    chosen: np.ndarray | None,
    adjusted: np.ndarray | None,
) -> None:
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
    results.tables[label] = table = _table(columns, **per_layer)
    extremes = c.probe.extremes if isinstance(c.probe, GroupMean) else None
    if extremes:
        order = np.lexsort([np.array([str(key) for key in c.keys]), overall])
        known = order[np.isfinite(overall[order])].tolist()
        for name, chosen_words in zip(extremes, (known[::-1][:TOP], known[:TOP]), strict=True):
            results.tables[name] = Table({k: [v[i] for i in chosen_words] for k, v in table.columns.items()})
