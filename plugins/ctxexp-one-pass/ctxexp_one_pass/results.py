"""From sums to results: the curves, intervals and tables of a run that stored every row."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.measuring.bootstrap import Curve, Resamples, Units, interval, mean
from ctxexp.measuring.curves import add_corrected, word_tables
from ctxexp.measuring.described import describe
from ctxexp.measuring.levels import LevelSums
from ctxexp.measuring.measure import build
from ctxexp.measuring.one_pass.additive import Additive, OnePass
from ctxexp.measuring.streams import Stream
from ctxexp.metric import Metric
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.results.run_info import BaselineInfo, CorpusInfo, ModelInfo, Resampled, RunInfo
from ctxexp.results.values import Key, Values
from ctxexp_one_pass.require import require
from ctxexp_one_pass.totals import Totals, sum_up

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp.study import Study, Vectors
    from ctxexp_one_pass.dealt import Dealt

log = logging.getLogger("ctxexp")

LEVEL = "level"


@dataclass
class _Layers:
    """What a measure gave, layer by layer."""

    statistics: list[dict[str, float]] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # (words,)
    errors: list[np.ndarray] = field(default_factory=list)  # (words,) of each score, over shards
    moved: list[np.ndarray] = field(default_factory=list)  # (shards,)

    def curve(self, statistic: str) -> Curve:
        return Curve(np.array([each.get(statistic, np.nan) for each in self.statistics]), np.stack(self.moved))


def measured(study: Study, text: Dealt, vectors: Vectors, progress: Progress) -> tuple[Results, Totals]:
    """The study's results but for what names it, from sums that are made now or were kept."""
    metrics = {label: build(label, factory) for label, factory in study.metrics.items()}
    require(metrics, study.baseline, study.transform(), study.control)
    additives: dict[str, Additive] = {
        label: metric.additive() for label, metric in metrics.items() if isinstance(metric, OnePass)
    }
    if closed := study.baseline.closed:
        additives[LEVEL] = LevelSums(closed)
    if study.explorer:
        log.info("words.one_pass stores no rows, so that the page has no word explorer")
    totals = sum_up(study, text, additives, vectors, progress)
    found = {label: _Layers() for label in additives}
    with progress.stage("measuring", total=len(study.encoder.given), unit="layers") as stage:
        for layer in range(len(study.encoder.given)):
            _measure(totals, layer, additives, found, intervals=study.bootstrap > 0)
            stage.advance(1)
    n = len(totals.shards)
    units = Units(f"shard of {'documents' if text.documented else 'sentences'}", n, *np.empty((2, 0), np.int64))
    resamples = Resamples(units, study.bootstrap, np.random.default_rng([study.seed, Stream.RESAMPLE]))
    values, tables = Values(), dict[str, "pd.DataFrame"]()
    for label, metric in metrics.items():
        writer = _Writer(values, resamples, label, metric, found, is_causal=study.encoder.causal is True)
        tables |= writer.write(totals, study.encoder.given)
    encoder, given = study.encoder, tuple(study.encoder.given)
    info = RunInfo(
        model=ModelInfo(
            n_layers=encoder.n_layers, layers=given if len(given) < encoder.n_layers else (), dim=encoder.dim
        ),
        corpus=CorpusInfo(
            sentences=text.n_distinct,
            occurrences=totals.told["rows"],
            words=len(totals.words),
            text_sentences=text.text_sentences,
            text_words=text.text_words,
            one_pass=len(text.shards),
        ),
        baseline=BaselineInfo(name=study.baseline.name),
        measures={label: describe(label, one, "exact" if one.cosine_level else "") for label, one in metrics.items()},
        resampled=Resampled(unit=units.name, n=n),
        seed=study.seed,
        bootstrap=study.bootstrap,
    )
    if info.model.layers:
        values = values.at(given, encoder.n_layers)
    return Results.of(values, tables=tables, info=info), totals


def _measure(
    totals: Totals, layer: int, additives: Mapping[str, Additive], found: Mapping[str, _Layers], *, intervals: bool
) -> None:
    """Take a layer's numbers, and how much each shard moves them: one shard is in memory at a time."""
    whole, n = totals.layer(layer), len(totals.shards)
    said = {label: additive.found(whole) for label, additive in additives.items()}
    moved = {label: np.full(n, np.nan) for label in additives}
    squares = {label: np.full(len(whole.n), 0.0 if intervals else np.nan) for label in additives}
    together = np.zeros(len(whole.n))  # how likely two of a word's rows, drawn with replacement, are of one shard
    for i, shard in enumerate(totals.shards if intervals else ()):
        part, words = totals.part(shard, layer)
        together[words] += np.square(part.n / whole.n[words])
        for label, additive in additives.items():
            by = additive.moved(part, whole.taken(words))
            scores = said[label].scores
            if scores is not None and by is not None:
                squares[label][words] += np.square(by)
                by = float(np.nansum(by)) / max(np.isfinite(scores).sum(), 1)
            if by is not None:
                moved[label][i] = by
    for label, mine in found.items():
        mine.statistics.append(said[label].statistics)
        known = n > 1
        if (scores := said[label].scores) is not None:
            mine.scores.append(scores)
            mine.errors.append(_errors(squares[label], whole.n, together))
            known &= bool(np.isfinite(mine.errors[-1]).any())
        mine.moved.append(moved[label] if known else np.full(n, np.nan))


def _errors(squares: np.ndarray, n: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Standard errors of scores over n rows, from the squared shares of shards: rows of one shard cancel out by what
    they have in common with the mean, 1 - together against 1 - 1/n of single rows. NaN for a word of one shard."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.where(together < 1 - 1e-12, 1 - together, np.nan)
        result: np.ndarray = np.sqrt(squares * (1 - 1 / n) / rest)
    return result


class _Writer:
    """A measure's curves, its chance level, and what is left of it above that."""

    def __init__(
        self,
        values: Values,
        resamples: Resamples,
        label: str,
        metric: Metric,
        found: Mapping[str, _Layers],
        *,
        is_causal: bool,
    ) -> None:
        self.values, self.resamples, self.label, self.metric = values, resamples, label, metric
        self.is_causal = is_causal
        self.mine, self.level = found[label], found.get(LEVEL)

    def write(self, totals: Totals, numbers: tuple[int, ...]) -> dict[str, pd.DataFrame]:
        """Add them to the values; the tables of a measure over words."""
        for statistic in dict.fromkeys(name for each in self.mine.statistics for name in each):
            if statistic == "raw":
                self._keep("raw", self.mine.curve("raw"))
            else:
                self.values.add(self._key(statistic), self.mine.curve(statistic).value)
        above = None
        if self.level is not None and self.metric.cosine_level:
            level, scores = self.level.curve("level"), self.mine.scores
            if not self.metric.scored:  # it is the level itself
                self._keep(self.metric.cosine_level, level)
                self.values.add(self._key("n"), self.level.curve("n").value)
            elif np.isfinite(level.value).any():
                self.values.add(self._key("baseline"), level.value)
                adjusted = self.mine.curve("raw") - level
                self._keep("adjusted", adjusted)
                add_corrected(self.values, self._key("corrected"), adjusted, level, self.resamples)
            above = np.stack(scores, axis=1) - level.value if scores else None
        return self._tables(totals, numbers, above) if self.mine.scores and totals.words else {}

    def _key(self, statistic: str) -> Key:
        return Key(self.label, statistic)

    def _keep(self, statistic: str, curve: Curve) -> None:
        drawn = self.resamples.of(curve)
        low, high = interval(drawn)
        self.values.add(self._key(statistic), curve.value, low=low, high=high, replicates=drawn)

    def _tables(self, totals: Totals, numbers: tuple[int, ...], above: np.ndarray | None) -> dict[str, pd.DataFrame]:
        scores, (rows, contexts, first) = np.stack(self.mine.scores, axis=1), totals.counts
        columns = {
            "word": totals.words,
            "count": rows,
            "contexts": contexts,
            "first_share": first / rows,
            **({"constant": first == rows} if self.is_causal else {}),
            "mean": mean(scores.T),
        }
        errors = np.stack(self.mine.errors, axis=1)
        clusters = np.minimum(contexts, len(totals.shards))  # a word's sentences are dealt to shards by chance
        return word_tables(self.label, self.metric, numbers, columns, scores, above, errors, clusters)
