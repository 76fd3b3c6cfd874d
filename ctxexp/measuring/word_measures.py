"""What is written of measures over words, whether rows were stored or summed: curves with intervals, what is left above
each baseline, and tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.groups import Place
from ctxexp.maths.geometry import chance_corrected
from ctxexp.maths.resampling import Clusters, Curve, Resamples, Stream, interval
from ctxexp.maths.statistics import finite_mean
from ctxexp.measuring.record import Record, Statistics
from ctxexp.metrics import GroupMean, Metric
from ctxexp.results.values import Key, Values

if TYPE_CHECKING:
    import pandas as pd

TOP = 10  # words in the lists of extremes


@dataclass(frozen=True)
class WordMeasure:
    """A measure of a text's words in all layers: the metric's `statistics` by layer, and what is made of them.

    `raw` is a mean over groups, with what moves it. `levels` are baselines by name, the empty one first: each with what
    `raw` is above it, with what moves that; None without intervals. Where the metric's own statistic is such a level,
    it is that. `scores` (groups, layers) are in the measure's table, beside its `columns`; of words also what they are
    `above` the first level, the standard `errors` of scores, and over how many clusters these are (groups,).

    Example:
        >>> from ctxexp.command import registry
        >>> measure = WordMeasure(registry().find("metric", "word_norm").factory(), [{"raw": 2.0}, {"raw": 3.0}])
        >>> measure.raw is None, measure.levels
        (True, {})
    """

    metric: Metric
    statistics: Sequence[Statistics]
    raw: Curve | None = None
    levels: Mapping[str, tuple[Curve, Curve | None]] = field(default_factory=dict)
    columns: Mapping[str, Sequence[object] | np.ndarray] = field(default_factory=dict)
    scores: np.ndarray | None = None
    above: np.ndarray | None = None
    errors: np.ndarray | None = None
    n_clusters: np.ndarray | None = None


def add_words(record: Record, measures: Mapping[str, WordMeasure], clusters: Clusters, layers: Sequence[int]) -> None:
    """Add measures, by label, to a record; intervals draw the clusters anew."""
    places = [Place.of(layer) for layer in layers]
    record.add_statistics({label: dict(zip(places, one.statistics, strict=True)) for label, one in measures.items()})
    resamples = Resamples(clusters, record.bootstrap, np.random.default_rng([record.seed, Stream.RESAMPLE]))
    for label, measure in measures.items():
        add_measure(record.values, label, measure, resamples)
        record.tables |= _tables(label, measure, layers)


def add_measure(values: Values, label: str, measure: WordMeasure, resamples: Resamples) -> None:
    """Add `raw` with its interval, and by each baseline `baseline`, `adjusted` and the share of the room above."""
    metric = measure.metric
    if measure.raw is not None:
        _add_curve(values, Key(label, "raw"), measure.raw, resamples)
    for name, (level, adjusted) in measure.levels.items():
        key = Key(label, "adjusted", baseline=name)
        if metric.cosine_statistic and not isinstance(metric, GroupMean):
            _add_curve(values, Key(label, metric.cosine_statistic), level, resamples)
        elif np.isfinite(level.value).any():
            values.set(key._replace(statistic="baseline"), level.value)
            if adjusted is None:
                values.set(key, values.by_key[Key(label, "raw")].value - level.value)
                continue
            _add_curve(values, key, adjusted, resamples)
            if metric.reading.maximum == 1:
                _add_share(values, key._replace(statistic="share_of_room"), adjusted, level, resamples)


def word_columns(
    words: Sequence[object],
    counts: np.ndarray,
    contexts: np.ndarray,
    first_share: np.ndarray,
    scores: np.ndarray,
    *,
    is_causal: bool,
) -> dict[str, Sequence[object] | np.ndarray]:
    """The columns of a table of words, but for those of layers; `first_share` (words,) is the share of a word's
    occurrences that begin a sentence."""
    return {
        "word": words,
        "count": counts,
        "contexts": contexts,
        "first_share": first_share,
        **({"constant": first_share == 1} if is_causal else {}),
        "mean": finite_mean(scores.T),
    }


def _add_curve(values: Values, key: Key, curve: Curve, resamples: Resamples) -> None:
    """Add the curve with its interval and replicates."""
    replicates = resamples.of(curve)
    low, high = interval(replicates)
    values.set(key, curve.value, low=low, high=high, replicates=replicates)


def _add_share(values: Values, key: Key, adjusted: Curve, level: Curve, resamples: Resamples) -> None:
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


def _tables(label: str, measure: WordMeasure, layers: Sequence[int]) -> dict[str, pd.DataFrame]:
    """A measure's table of groups and, of words, its lists of extremes with their intervals by layer.

    Words that the column `constant` marks, which a causal model only ever sees with nothing to their left, are in no
    list.
    """
    columns, scores, errors, extremes = measure.columns, measure.scores, measure.errors, measure.metric.reading.extremes
    if scores is None or not columns:
        return {}
    table = _by_layer(layers, columns, raw=scores, **({} if measure.above is None else {"adjusted": measure.above}))
    tables = {label: table}
    if errors is not None and measure.n_clusters is not None and extremes:
        words, overall = [str(word) for word in columns["word"]], np.asarray(columns["mean"])
        varies = np.isfinite(overall) & ~np.asarray(columns.get("constant", np.zeros(len(words))), bool)
        factor = listed_factor(measure.n_clusters, int(varies.sum()))
        factors = {"word": columns["word"], "listed_factor": factor}
        tables[f"{label}_errors"] = _by_layer(layers, factors, error=errors)
        half = factor[:, None] * errors
        listed = _by_layer(layers, dict(table.items()), low=scores - half, high=scores + half)
        order = np.lexsort([np.array(words), overall])
        known = order[varies[order]]
        for name, chosen in zip(extremes, (known[::-1][:TOP], known[:TOP]), strict=True):
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


def _by_layer(
    numbers: Sequence[int], columns: Mapping[str, Sequence[object] | np.ndarray], **per_layer: np.ndarray
) -> pd.DataFrame:
    """Columns, then for each array (rows, layers) its columns name_0, name_1, ... by the layers' numbers."""
    import pandas as pd

    layers = {
        f"{name}_{i}": column for name, values in per_layer.items() for i, column in zip(numbers, values.T, strict=True)
    }
    return pd.DataFrame({**columns, **layers})
