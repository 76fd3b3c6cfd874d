"""A study of a text in shards, in one pass: the curves, intervals and tables that stored rows would give, from sums."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.baselines import Baseline
from ctxexp.controls import Control
from ctxexp.datasets.shards import ShardedText
from ctxexp.errors import ConfigError
from ctxexp.groups import Place
from ctxexp.maths.resampling import Clusters, Curve, Stream
from ctxexp.maths.statistics import aggregate
from ctxexp.maths.sums import SumForm
from ctxexp.maths.word_mix import CountInfluence, MixedWords
from ctxexp.measuring.baseline_levels import BaselineSums
from ctxexp.measuring.record import Record
from ctxexp.measuring.study import HALVES, HALVES_TABLE, LEAST_CLUSTERS, Study, half_table
from ctxexp.measuring.words import Intervals, mix_info
from ctxexp.measuring.writing import WordMeasure, word_columns, write_words
from ctxexp.metrics import RUN, GroupMean, Metric
from ctxexp.occurrences import Layers, Occurrences
from ctxexp.plugins.registry import build_registry
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.results.results import AVERAGED
from ctxexp.results.run_info import BaselineInfo, ResamplingInfo
from ctxexp.transforms import Transform
from ctxexp.vectors.stores import Vectors
from ctxexp.vectors.summing import Totals, sum_up

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")

BASELINE = "/baseline"
"""Where the baseline's sums stand among those of metrics, whose labels have no slash."""


def check_parts(metrics: Mapping[str, Metric], baseline: Baseline, transform: Transform, control: Control) -> None:
    """Raise ConfigError, before any text or model is loaded, for parts that need stored rows."""
    why = [f"metric {label} ({reason})" for label, metric in metrics.items() if (reason := why_not(metric))]
    if not baseline.expectation and any(metric._cosine_statistic for metric in metrics.values()):
        why.append(f"baseline {baseline.name} (random groups; baseline=exact needs none)")
    if not transform.identity:
        why.append(f"transform {type(transform).__name__} (transform=none needs none)")
    if control.needs_rows:
        why.append(f"control {control.name} (it judges rows)")
    if why:
        own = build_registry(installed=False)
        names = [name for name in own.names("metric") if own.find("metric", name).factory().sum_form()]
        raise ConfigError(
            f"one_pass.shards stores no rows, which are needed by {', '.join(why)}: store them, or bounded ones with "
            "words.max_contexts=256 in its place; of ctxexp's own metrics one pass does for " + ", ".join(names)
        )


def why_not(metric: Metric) -> str:
    """The reason why a metric can't be measured in one pass; empty if it can."""
    if metric.sum_form() is None:
        return "no form in sums"
    if metric._sample is not None:
        return f"sample={metric._sample} draws groups"
    if metric.baselines != (RUN,) and metric._cosine_statistic:
        return f"baselines=[{','.join(metric.baselines)}] measures random groups"
    has_drawn = type(metric).baseline_value is not Metric.baseline_value and not metric._cosine_statistic
    return "its chance level is drawn" if has_drawn else ""


@dataclass
class _LayerValues:
    """The numbers of a measure, layer by layer."""

    statistics: list[dict[str, float]] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # (words,)
    errors: list[np.ndarray] = field(default_factory=list)  # (words,) of each score, over shards
    influence: list[np.ndarray] = field(default_factory=list)  # (shards,)

    def curve(self, statistic: str) -> Curve:
        return Curve(np.array([each.get(statistic, np.nan) for each in self.statistics]), np.stack(self.influence))


@dataclass(frozen=True, kw_only=True)
class OnePass(Study):
    """A study of a text in shards, of which no row is stored."""

    corpus: ShardedText

    def run(self, vectors: Vectors, *, folder: Path, progress: Progress | None = None) -> Results:
        """Add up the sums of every shard (or read the cache), and measure every layer by these."""
        import pandas as pd

        progress, metrics = progress or Progress.of(None), self.record().prototypes
        check_parts(metrics, self.baseline, self.transform(), self.control)
        forms = {label: form for label, metric in metrics.items() if (form := metric.sum_form())}
        if expectation := self.baseline.expectation:
            forms[BASELINE] = BaselineSums(expectation)
        if self.observers:
            log.info("one_pass.shards stores no rows, so that the page has no word explorer")
        totals = sum_up(self.encoder, self.corpus, forms, vectors, progress, words=self.words, control=self.control)
        results = self._measure(totals, metrics, forms, self.bootstrap, progress)
        parts = list(self._parts(totals, metrics, forms)) if self.bootstrap else []
        tables = {HALVES_TABLE: pd.concat(parts, ignore_index=True)} if parts else {}
        return replace(results, tables={**results.tables, **tables})

    def space(self, vectors: Vectors, progress: Progress | None = None) -> tuple[Layers, Occurrences, np.ndarray]:
        raise ConfigError("one pass stores no rows, which are compared here; use words.max_contexts=256")

    def _parts(
        self, totals: Totals, metrics: Mapping[str, Metric], forms: Mapping[str, SumForm]
    ) -> Iterator[pd.DataFrame]:
        """The means over words of both halves of the text, by whole shards in random order and by the bands that both
        fill."""
        n = len(totals.shards)
        if n < LEAST_CLUSTERS:
            return
        order = np.random.default_rng([self.seed, Stream.PARTS]).permutation(n)
        parts = [
            replace(totals, shards=tuple(totals.shards[i] for i in sorted(which)))
            for which in (order[: n // 2].tolist(), order[n // 2 :].tolist())
        ]
        filled = (self.mix.of(part.counts[0], part.tallies["rows"]).filled for part in parts)
        study = replace(self, mix=replace(self.mix, among=np.logical_and(*filled)))
        means = {label: metric for label, metric in metrics.items() if metric.over in AVERAGED}
        for name, part in zip(HALVES, parts, strict=True):
            yield half_table(name, study._measure(part, means, forms, 0, Progress.of(None)))

    def _measure(
        self,
        totals: Totals,
        metrics: Mapping[str, Metric],
        forms: Mapping[str, SumForm],
        bootstrap: int,
        progress: Progress,
    ) -> Results:
        """The results of the sums of some shards, with so many resamples of these behind each interval."""
        text, encoder = self.corpus, self.encoder
        mixed = self.mix.of(totals.counts[0], totals.tallies["rows"])
        by_label = {label: _LayerValues() for label in forms}
        with progress.stage("measuring", total=len(encoder.layer_numbers), unit="layers") as stage:
            for layer in range(len(encoder.layer_numbers)):
                _measure_layer(totals, layer, forms, by_label, mixed, self.intervals if bootstrap else None)
                stage.advance(1)
        for label, metric in metrics.items():
            if BASELINE in by_label and metric._cosine_statistic and not isinstance(metric, GroupMean):
                by_label[label].statistics = [
                    {metric._cosine_statistic: found["level"], "n": found["n"]}
                    for found in by_label[BASELINE].statistics
                ]
        n = len(totals.shards)
        clusters = Clusters(
            f"shard of {'documents' if text.has_documents else 'sentences'}", n, *np.empty((2, 0), np.int64)
        )
        some = {label: self.metrics[label] for label in metrics}
        record = Record(some, seed=self.seed, bootstrap=bootstrap, info=self.info)
        places = [Place.of(i) for i in encoder.layer_numbers]
        record.write_statistics(
            {label: dict(zip(places, by_label[label].statistics, strict=True)) for label in metrics}
        )
        measures = {label: self._word_measure(label, metric, by_label, totals) for label, metric in metrics.items()}
        write_words(record, measures, clusters, encoder.layer_numbers)
        numbers = tuple(encoder.layer_numbers)
        info = self._info(totals, record.info, fitted=False, pooled=False)
        info = replace(
            info,
            mix=mix_info(mixed),
            model=replace(
                info.model,
                n_layers=encoder.n_layers,
                layers=numbers if len(numbers) < encoder.n_layers else (),
                dim=encoder.dim,
            ),
            corpus=replace(
                info.corpus,
                sentences=text.n_distinct,
                occurrences=totals.tallies["rows"],
                words=len(totals.words),
                text_sentences=text.text_sentences,
                text_words=text.text_words,
                one_pass=len(text.shards),
            ),
            baseline=BaselineInfo(name=self.baseline.name),
            resampled=ResamplingInfo(unit=clusters.name, n=n, intervals=self.intervals),
        )
        record.state(info, {label: "exact" if one._cosine_statistic else "" for label, one in metrics.items()})
        return record.results()

    def _word_measure(
        self, label: str, metric: Metric, by_label: Mapping[str, _LayerValues], totals: Totals
    ) -> WordMeasure:
        found, levels = by_label[label], dict[str, tuple[Curve, Curve | None]]()
        raw = found.curve("raw") if isinstance(metric, GroupMean) else None
        if BASELINE in by_label and metric._cosine_statistic:
            level = by_label[BASELINE].curve("level")
            levels[""] = level, None if raw is None else raw - level
        if not found.scores or not totals.words:
            return WordMeasure(metric, raw, levels)
        scores, (rows, contexts, first) = np.stack(found.scores, axis=1), totals.counts
        causal = self.encoder.causal is True
        return WordMeasure(
            metric,
            raw,
            levels,
            word_columns(totals.words, rows, contexts, first / rows, scores, is_causal=causal),
            scores,
            scores - levels[""][0].value if levels else None,
            np.stack(found.errors, axis=1),
            np.minimum(contexts, len(totals.shards)),  # a word's sentences are dealt to shards by chance
        )


def _measure_layer(
    totals: Totals,
    layer: int,
    forms: Mapping[str, SumForm],
    by_label: Mapping[str, _LayerValues],
    mixed: MixedWords,
    intervals: Intervals | None,
) -> None:
    """Append a layer's numbers, and each shard's influence on them: one shard is in memory at a time."""
    sums, n = totals.layer(layer), len(totals.shards)
    statistics = {label: form.statistics(sums) for label, form in forms.items()}
    scores = {label: form.scores(sums) for label, form in forms.items()}
    weights, by_count = dict[str, np.ndarray](), dict[str, CountInfluence]()
    for label, of_form in scores.items():
        if of_form is not None:
            of_words = mixed.weights(np.isfinite(of_form))
            statistics[label] |= aggregate(of_form, of_words)
            equal = np.isfinite(of_form) / max(np.isfinite(of_form).sum(), 1)
            weights[label] = equal if of_words is None else of_words
            by_count[label] = mixed.count_influence(of_form)
    influences = {label: np.full(n, np.nan) for label in forms}
    squares = {label: np.full(len(sums.n), 0.0 if intervals else np.nan) for label in forms}
    same_shard = np.zeros(len(sums.n))  # the chance that two of a word's rows, drawn with replacement, are of one shard
    for i, shard in enumerate(totals.shards if intervals else ()):
        part, words = totals.part(shard, layer)
        same_shard[words] += np.square(part.n / sums.n[words])
        for label, form in forms.items():
            influence = form.influence(part, sums.subset(words))
            if label in weights and influence is not None:
                squares[label][words] += np.square(influence)
                influence = float(np.nansum(weights[label][words] * influence))
                if intervals == "new_text":
                    influence += float(by_count[label].of_word[words] @ part.n)
                    influence += by_count[label].of_total * shard.tallies()["rows"]
            if influence is not None:
                influences[label][i] = influence
    for label, measure in by_label.items():
        measure.statistics.append(statistics[label])
        has_interval = n > 1
        if (of_form := scores[label]) is not None:
            measure.scores.append(of_form)
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
        return np.sqrt(squares * (1 - 1 / n) / rest)
