"""A text in shards, in one pass: the numbers that stored rows would give, from sums; no row is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ctxexp import Baseline, Control, Corpus, Encoder, Engine, GroupMean, Metric, TextReader, Transform, WordMeasure
from ctxexp.command import Progress
from ctxexp.datasets import TextStream
from ctxexp.errors import ConfigError
from ctxexp.maths import Curve
from ctxexp_scale.forms import FORMS, BaselineSums, sum_form
from ctxexp_scale.sharded import ShardedText, ShardOptions, shard_text
from ctxexp_scale.summing import Summing, Totals, sum_up
from ctxexp_scale.sums import SumForm

BASELINE = "/baseline"
"""Where the baseline's sums stand among those of metrics, whose labels have no slash."""


class OnePass(TextReader):
    """Every context of every word, summed in so many `shards` of the text; `sample`: of so many words (None: all)."""

    stores_rows = False

    def __init__(self, *, shards: int, sample: int | None = None) -> None:
        self.shards, self.sample = shards, sample

    def corpus(
        self,
        text: Corpus | TextStream,
        *,
        form: Callable[[str], str | None],
        min_contexts: int,
        seed: int,
        engine: Engine,
        progress: Progress,
    ) -> Corpus:
        options = ShardOptions(shards=self.shards, form=form, min_contexts=min_contexts, sample=self.sample, seed=seed)
        return shard_text(text, options, engine, progress)

    def check(self, metrics: Mapping[str, Metric], baseline: Baseline, transform: Transform, control: Control) -> None:
        why = [f"metric {label} ({reason})" for label, metric in metrics.items() if (reason := why_not(metric))]
        if not baseline.expectation and any(metric.cosine_statistic for metric in metrics.values()):
            why.append(f"baseline {baseline.name} (random groups; baseline=exact needs none)")
        if not transform.identity:
            why.append(f"transform {type(transform).__name__} (transform=none needs none)")
        if control.needs_rows:
            why.append(f"control {control.name} (it judges rows)")
        if why:
            raise ConfigError(
                f"one_pass.shards stores no rows, which are needed by {', '.join(why)}: store them, or bounded ones "
                "with words.max_contexts=256 in its place; of ctxexp's own metrics one pass does for "
                + ", ".join(sorted(FORMS))
            )

    @contextmanager
    def sum_up(
        self, study: Any, metrics: Mapping[str, Metric], vectors: Any, progress: Progress
    ) -> Iterator[SummedText]:
        encoder: Encoder = study.encoder
        text, control = study.corpus, study.control
        assert isinstance(text, ShardedText)
        if encoder.sequential:
            raise ConfigError(
                "one_pass.shards reads single sentences, but this model carries its state on: leave one out"
            )
        forms = {label: form for label, metric in metrics.items() if (form := sum_form(metric))}
        if expectation := study.baseline.expectation:
            forms[BASELINE] = BaselineSums(expectation)
        choices = [encoder.name, encoder.class_code, text.content, study.words, control.name, vars(control)]
        choices += [vectors.batch_tokens, {label: (type(form).__qualname__, form.key) for label, form in forms.items()}]
        with vectors.kept("sums", choices, [type(form) for form in forms.values()]) as folder:
            work = Summing(
                folder=folder,
                make=vectors.make or partial(_same, encoder),
                name=encoder.name,
                text=text,
                forms=forms,
                form=study.words.form,
                control=control,
                read=vectors.read,
            )
            title = f"encode {encoder.details.get('architecture', encoder.name)}"
            totals = sum_up(work, vectors.engine, progress, title, min_contexts=study.words.min_contexts)
            yield SummedText(totals, forms, len(encoder.layer_numbers))


def _same(encoder: Encoder) -> Encoder:
    return encoder


def why_not(metric: Metric) -> str:
    """The reason why a metric can't be measured in one pass; empty if it can."""
    if sum_form(metric) is None:
        return "no form in sums"
    if metric._sample is not None:
        return f"sample={metric._sample} draws groups"
    if metric.baselines != ("run",) and metric.cosine_statistic:
        return f"baselines=[{','.join(metric.baselines)}] measures random groups"
    has_drawn = type(metric).baseline_value is not Metric.baseline_value and not metric.cosine_statistic
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


@dataclass(frozen=True)
class SummedText:
    """The sums of a text, or of some of its shards, as measures."""

    totals: Totals
    forms: Mapping[str, SumForm]  # by the metric's label
    n_layers: int

    @property
    def words(self) -> list[str]:
        return self.totals.words

    @property
    def counts(self) -> np.ndarray:
        """(3, words): rows, sentences, rows at the first place of a sentence."""
        return self.totals.counts

    @property
    def tallies(self) -> Mapping[str, int]:
        """Counts over all shards: sentences, rows, skipped, left_out, unknown, pieces."""
        return self.totals.tallies

    @property
    def n_encoded(self) -> int:
        """Sentences that no earlier run had."""
        return self.totals.n_encoded

    @property
    def n_shards(self) -> int:
        """The number of shards that hold a row."""
        return len(self.totals.shards)

    @property
    def unit(self) -> str:
        """What its shards are of, in words."""
        return f"shard of {'documents' if self.totals.text.has_documents else 'sentences'}"

    @property
    def facts(self) -> dict[str, int]:
        """What a run records of the text."""
        text = self.totals.text
        return {
            "sentences": text.n_distinct,
            "text_sentences": text.text_sentences,
            "text_words": text.text_words,
            "one_pass": len(text.shards),
        }

    def half(self, shards: Sequence[int]) -> SummedText:
        """Of these shards alone."""
        return replace(self, totals=replace(self.totals, shards=tuple(self.totals.shards[i] for i in shards)))

    def measures(
        self, metrics: Mapping[str, Metric], mixed: Any, *, intervals: str | None, advance: Callable[[int], object]
    ) -> dict[str, WordMeasure]:
        """Each metric's measure, with words weighed by the mix; `intervals` are for new text, for these words, or not
        asked for (None). `advance` is told of each layer."""
        by_label = {label: _LayerValues() for label in self.forms}
        for layer in range(self.n_layers):
            _measure_layer(self.totals, layer, self.forms, by_label, mixed, intervals)
            advance(1)
        return {label: _measure(metric, by_label[label], by_label.get(BASELINE)) for label, metric in metrics.items()}


def _measure(metric: Metric, found: _LayerValues, baseline: _LayerValues | None) -> WordMeasure:
    raw = found.curve("raw") if isinstance(metric, GroupMean) else None
    statistics, levels = found.statistics, dict[str, tuple[Curve, Curve | None]]()
    if baseline is not None and metric.cosine_statistic:
        level = baseline.curve("level")
        levels[""] = level, None if raw is None else raw - level
        if raw is None:  # it is the level itself
            statistics = [{metric.cosine_statistic: one["level"], "n": one["n"]} for one in baseline.statistics]
    scores, errors = (np.stack(each, axis=1) if each else None for each in (found.scores, found.errors))
    return WordMeasure(metric, statistics, raw=raw, levels=levels, scores=scores, errors=errors)


def _measure_layer(
    totals: Totals,
    layer: int,
    forms: Mapping[str, SumForm],
    by_label: Mapping[str, _LayerValues],
    mixed: Any,
    intervals: str | None,
) -> None:
    """Append a layer's numbers, and each shard's influence on them: one shard is in memory at a time."""
    sums, n = totals.layer(layer), len(totals.shards)
    statistics = {label: form.statistics(sums) for label, form in forms.items()}
    scores = {label: form.scores(sums) for label, form in forms.items()}
    weights, by_count = dict[str, np.ndarray](), dict[str, Any]()
    for label, of_form in scores.items():
        if of_form is not None:
            statistics[label] |= mixed.aggregate(of_form)
            of_words = mixed.weights(np.isfinite(of_form))
            equal = np.isfinite(of_form) / max(np.isfinite(of_form).sum(), 1)
            weights[label] = equal if of_words is None else of_words
            by_count[label] = mixed.count_influence(of_form)
    influences = {label: np.full(n, np.nan) for label in forms}
    squares = {label: np.full(len(sums.n), 0.0 if intervals else np.nan) for label in forms}
    same_shard = np.zeros(len(sums.n))  # the chance that two of a word's rows, drawn with replacement, are of one shard
    for i, shard in enumerate(totals.shards if intervals else ()):
        own, words = totals.share(shard, layer)
        same_shard[words] += np.square(own.n / sums.n[words])
        for label, form in forms.items():
            influence = form.influence(own, sums.subset(words))
            if label in weights and influence is not None:
                squares[label][words] += np.square(influence)
                influence = float(np.nansum(weights[label][words] * influence))
                if intervals == "new_text":
                    influence += float(by_count[label].of_word[words] @ own.n)
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
