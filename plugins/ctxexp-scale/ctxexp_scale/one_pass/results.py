"""From sums to results: the curves, intervals and tables that stored rows would give, without storing any."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import GroupMean, Metric, Results
from ctxexp.command import Progress
from ctxexp.maths import Curve, Resamples, Stream, finite_mean, interval
from ctxexp.maths.mix import CountInfluence, MixedWords
from ctxexp.maths.resampling import Units
from ctxexp.maths.statistics import aggregate
from ctxexp.measuring.curves import add_share, word_tables
from ctxexp.measuring.measure import build
from ctxexp.measuring.study import HALVES, LEAST_CLUSTERS, PARTS, part_table
from ctxexp.measuring.words import Intervals, mix_info
from ctxexp.results import Key, RunInfo
from ctxexp.results.run_info import BaselineInfo, CorpusInfo, ModelInfo, ResamplingInfo, describe
from ctxexp.results.values import Values
from ctxexp_scale.one_pass.forms import BaselineSums, check_parts, form_in_sums
from ctxexp_scale.one_pass.sums import LayerStatistics, SumForm
from ctxexp_scale.one_pass.totals import Totals, sum_up

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp.measuring.study import Study
    from ctxexp.vectors.stores import Vectors
    from ctxexp_scale.one_pass.sharded import ShardedText

log = logging.getLogger("ctxexp")

LEVEL = "level"


@dataclass
class _Layers:
    """The numbers of a measure, layer by layer."""

    statistics: list[dict[str, float]] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # (words,)
    errors: list[np.ndarray] = field(default_factory=list)  # (words,) of each score, over shards
    influence: list[np.ndarray] = field(default_factory=list)  # (shards,)

    def curve(self, statistic: str) -> Curve:
        return Curve(np.array([each.get(statistic, np.nan) for each in self.statistics]), np.stack(self.influence))


def measure_sums(study: Study, text: ShardedText, vectors: Vectors, progress: Progress) -> tuple[Results, Totals]:
    """The study's results, but for what names them, from sums that are added up now or were before."""
    import pandas as pd

    metrics = {label: build(label, factory) for label, factory in study.metrics.items()}
    check_parts(metrics, study.baseline, study.transform(), study.control)
    forms = {label: form_in_sums(metric) for label, metric in metrics.items()}
    if expectation := study.baseline.expectation:
        forms[LEVEL] = BaselineSums(expectation)
    if study.observers:
        log.info("one_pass.shards stores no rows, so that the page has no word explorer")
    totals = sum_up(study, text, forms, vectors, progress)
    results = _measure_totals(study, text, totals, metrics, forms, study.bootstrap, progress)
    parts = list(_parts(study, text, totals, metrics, forms)) if study.bootstrap else []
    tables = {PARTS: pd.concat(parts, ignore_index=True)} if parts else {}
    return replace(results, tables={**results.tables, **tables}), totals


def _parts(
    study: Study, text: ShardedText, totals: Totals, metrics: Mapping[str, Metric], forms: Mapping[str, SumForm]
) -> Iterator[pd.DataFrame]:
    """The curves of a quarter of the text, a half that holds it and the other half, by whole shards in random order."""
    n = len(totals.shards)
    if n < LEAST_CLUSTERS:
        return
    order = np.random.default_rng([study.seed, Stream.PARTS]).permutation(n).tolist()
    for name, which in (("quarter", order[: n // 4]), (HALVES[0], order[: n // 2]), (HALVES[1], order[n // 2 :])):
        part = replace(totals, shards=tuple(totals.shards[i] for i in sorted(which)))
        yield part_table(name, _measure_totals(study, text, part, metrics, forms, 0, Progress.of(None)))


def _measure_totals(
    study: Study,
    text: ShardedText,
    totals: Totals,
    metrics: Mapping[str, Metric],
    forms: Mapping[str, SumForm],
    bootstrap: int,
    progress: Progress,
) -> Results:
    """The results of the sums of some shards, with so many resamples of these behind each interval."""
    mixed = study.mix.of(totals.counts[0], totals.tallies["rows"])
    layers = {label: _Layers() for label in forms}
    with progress.stage("measuring", total=len(study.encoder.layer_numbers), unit="layers") as stage:
        for layer in range(len(study.encoder.layer_numbers)):
            _measure_layer(totals, layer, forms, layers, mixed, study.intervals if bootstrap else None)
            stage.advance(1)
    n = len(totals.shards)
    units = Units(f"shard of {'documents' if text.has_documents else 'sentences'}", n, *np.empty((2, 0), np.int64))
    resamples = Resamples(units, bootstrap, np.random.default_rng([study.seed, Stream.RESAMPLE]))
    values, tables = Values(), dict[str, "pd.DataFrame"]()
    for label, metric in metrics.items():
        writer = _Writer(values, resamples, label, metric, layers, is_causal=study.encoder.causal is True)
        tables |= writer.write(totals, study.encoder.layer_numbers)
    encoder, numbers = study.encoder, tuple(study.encoder.layer_numbers)
    info = RunInfo(
        mix=mix_info(mixed),
        model=ModelInfo(
            n_layers=encoder.n_layers, layers=numbers if len(numbers) < encoder.n_layers else (), dim=encoder.dim
        ),
        corpus=CorpusInfo(
            sentences=text.n_distinct,
            occurrences=totals.tallies["rows"],
            words=len(totals.words),
            text_sentences=text.text_sentences,
            text_words=text.text_words,
            one_pass=len(text.shards),
        ),
        baseline=BaselineInfo(name=study.baseline.name),
        measures={
            label: describe(label, one, "exact" if one.cosine_statistic else "") for label, one in metrics.items()
        },
        resampled=ResamplingInfo(unit=units.name, n=n, intervals=study.intervals),
        seed=study.seed,
        bootstrap=study.bootstrap,
    )
    if info.model.layers:
        values = values.expand_layers(numbers, encoder.n_layers)
    return Results.of(values, tables=tables, info=info)


def _measure_layer(
    totals: Totals,
    layer: int,
    forms: Mapping[str, SumForm],
    layers: Mapping[str, _Layers],
    mixed: MixedWords,
    intervals: Intervals | None,
) -> None:
    """Append a layer's numbers, and each shard's influence on them: one shard is in memory at a time."""
    sums, n = totals.layer(layer), len(totals.shards)
    results = {label: form.statistics(sums) for label, form in forms.items()}
    weights, by_count = dict[str, np.ndarray](), dict[str, CountInfluence]()
    for label, (statistics, scores) in results.items():
        if scores is not None:
            of_words = mixed.weights(np.isfinite(scores))
            results[label] = LayerStatistics({**statistics, **aggregate(scores, of_words)}, scores)
            equal = np.isfinite(scores) / max(np.isfinite(scores).sum(), 1)
            weights[label] = equal if of_words is None else of_words
            by_count[label] = mixed.count_influence(scores)
    influences = {label: np.full(n, np.nan) for label in forms}
    squares = {label: np.full(len(sums.n), 0.0 if intervals else np.nan) for label in forms}
    same_shard = np.zeros(len(sums.n))  # the chance that two of a word's rows, drawn with replacement, are of one shard
    for i, shard in enumerate(totals.shards if intervals else ()):
        part, words = totals.part(shard, layer)
        same_shard[words] += np.square(part.n / sums.n[words])
        for label, form in forms.items():
            influence = form.influence(part, sums.subset(words))
            scores = results[label].scores
            if scores is not None and influence is not None:
                squares[label][words] += np.square(influence)
                influence = float(np.nansum(weights[label][words] * influence))
                if intervals == "new_text":
                    influence += float(by_count[label].of_word[words] @ part.n)
                    influence += by_count[label].of_any * shard.tallies()["rows"]
            if influence is not None:
                influences[label][i] = influence
    for label, measure in layers.items():
        measure.statistics.append(results[label].statistics)
        has_interval = n > 1
        if (scores := results[label].scores) is not None:
            measure.scores.append(scores)
            measure.errors.append(_errors(squares[label], sums.n, same_shard))
            has_interval &= bool(np.isfinite(measure.errors[-1]).any())
        measure.influence.append(influences[label] if has_interval else np.full(n, np.nan))


def _errors(squares: np.ndarray, n: np.ndarray, same_shard: np.ndarray) -> np.ndarray:
    """Standard errors of scores over n rows, from the squared influences of shards.

    A shard's rows are part of the mean that they are compared with, which shrinks the squares by 1 - same_shard (by
    1 - 1/n for single rows); this is undone. NaN for a word of one shard.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.where(same_shard < 1 - 1e-12, 1 - same_shard, np.nan)
        result: np.ndarray = np.sqrt(squares * (1 - 1 / n) / rest)
    return result


class _Writer:
    """Writes a measure's curves, its baseline, and the difference of both."""

    def __init__(
        self,
        values: Values,
        resamples: Resamples,
        label: str,
        metric: Metric,
        layers: Mapping[str, _Layers],
        *,
        is_causal: bool,
    ) -> None:
        self.values, self.resamples, self.label, self.metric = values, resamples, label, metric
        self.is_causal = is_causal
        self.layers, self.level = layers[label], layers.get(LEVEL)

    def write(self, totals: Totals, numbers: tuple[int, ...]) -> dict[str, pd.DataFrame]:
        """Add the curves to the values; return the tables of a measure over words."""
        for statistic in dict.fromkeys(name for each in self.layers.statistics for name in each):
            if statistic == "raw":
                self._add_curve("raw", self.layers.curve("raw"))
            else:
                self.values.set(self._key(statistic), self.layers.curve(statistic).value)
        above = None
        if self.level is not None and self.metric.cosine_statistic:
            level, scores = self.level.curve("level"), self.layers.scores
            if not isinstance(self.metric, GroupMean):  # it is the level itself
                self._add_curve(self.metric.cosine_statistic, level)
                self.values.set(self._key("n"), self.level.curve("n").value)
            elif np.isfinite(level.value).any():
                self.values.set(self._key("baseline"), level.value)
                adjusted = self.layers.curve("raw") - level
                self._add_curve("adjusted", adjusted)
                add_share(self.values, self._key("share_of_room"), adjusted, level, self.resamples)
            above = np.stack(scores, axis=1) - level.value if scores else None
        return self._tables(totals, numbers, above) if self.layers.scores and totals.words else {}

    def _key(self, statistic: str) -> Key:
        return Key(self.label, statistic)

    def _add_curve(self, statistic: str, curve: Curve) -> None:
        replicates = self.resamples.of(curve)
        low, high = interval(replicates)
        self.values.set(self._key(statistic), curve.value, low=low, high=high, replicates=replicates)

    def _tables(self, totals: Totals, numbers: tuple[int, ...], above: np.ndarray | None) -> dict[str, pd.DataFrame]:
        scores, (rows, contexts, first) = np.stack(self.layers.scores, axis=1), totals.counts
        columns = {
            "word": totals.words,
            "count": rows,
            "contexts": contexts,
            "first_share": first / rows,
            **({"constant": first == rows} if self.is_causal else {}),
            "mean": finite_mean(scores.T),
        }
        errors = np.stack(self.layers.errors, axis=1)
        clusters = np.minimum(contexts, len(totals.shards))  # a word's sentences are dealt to shards by chance
        return word_tables(self.label, self.metric, numbers, columns, scores, above, errors, clusters)
