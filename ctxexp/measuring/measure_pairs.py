"""Layers and layer mixes x sub-sets x pair metrics -> curves, scalars and a table a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import DataError
from ctxexp.measuring.described import describe
from ctxexp.measuring.pair_resamples import resampled_unit
from ctxexp.measuring.pairs import PairMetric, Pairs
from ctxexp.measuring.streams import Stream
from ctxexp.metric import guard
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results
from ctxexp.run_info import CorpusInfo, ModelInfo, Resampled, RunInfo
from ctxexp.transform import Calibration
from ctxexp.values import Values, named
from ctxexp.vectors.layers import lent
from ctxexp.vectors.mixes import Mix
from ctxexp.vectors.pool import SentenceVectors, finite_rows, mixed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Subset:
    """The pairs of one sub-set, by sentence number."""

    name: str
    first: np.ndarray  # (n,) int64
    second: np.ndarray  # (n,) int64
    gold: np.ndarray  # (n,) float64
    texts: Sequence[tuple[str, str]]

    def pairs(self, vectors: np.ndarray, defined: np.ndarray) -> Pairs:
        """The pairs whose sentences both have a vector."""
        kept = np.flatnonzero(defined[self.first] & defined[self.second])
        texts = self.texts if len(kept) == len(self.gold) else [self.texts[i] for i in kept.tolist()]
        ends = self.ends()[kept]
        x, y = vectors[ends[:, 0]], vectors[ends[:, 1]]
        return Pairs(lent(x), lent(y), lent(self.gold[kept]), texts, lent(ends))

    def ends(self) -> np.ndarray:
        """(n, 2) the two sentences of each pair."""
        return np.stack([self.first, self.second], axis=1)


def measure_pairs(
    vectors: SentenceVectors,
    corpus: Corpus,
    metrics: Mapping[str, Callable[[], PairMetric]],
    *,
    calibration: Calibration | None = None,
    text: SentenceVectors | None = None,
    mixes: Sequence[Mix] = (),
    seed: int,
    bootstrap: int = 1000,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Results:
    """Every pair metric (label -> factory, one instance a layer or mix) over the corpus's gold pairs.

    Curves over layers, scalars whose place is the mix, and the metric's rows as a table named by the label, its first
    column the layer or mix. The calibration is fitted anew for each layer and mix, on
    the sentence vectors of `text` (None: of the corpus's own distinct sentences). A pair one of whose sentences has no
    vector is left out and counted in `undefined`; a layer without any vector is NaN, and so is one whose
    vectors are all equal where there is a calibration. Bootstrap resamples are the same pairs in each layer. One layer
    is in memory at a time. Raises MetricError naming the metric, the layer and the sub-set.
    """
    subsets = grouped(corpus)
    once = distinct(corpus)
    collected: dict[str, dict[str, dict[int | str, float]]] = {label: {} for label in metrics}
    rows: dict[str, list[dict[str, Any]]] = {label: [] for label in metrics}
    drawn: dict[tuple[str, str], dict[int | str, np.ndarray]] = {}
    probes = {label: factory() for label, factory in metrics.items()}
    places: list[tuple[int | str, Mix | None]] = [(i, None) for i in range(vectors.n_layers)]
    places += [(mix.name, mix) for mix in mixes]
    with (progress or Silent()).stage("measuring pairs", len(places), "layers") as stage:
        for place, mix in places:
            where = f"layer {place}" if mix is None else f"mix {place!r}"
            x = _vectors(vectors, place, mix)
            defined = finite_rows(x)
            if calibration is not None and not calibration.identity and _all_equal(x, defined):
                defined[:] = False  # such as a first special token's input layer: no space to calibrate
            undefined = sum(int((~(defined[s.first] & defined[s.second])).sum()) for s in subsets)
            if defined.any():
                if calibration is not None:
                    if text is None:
                        fitted_on = x[once & defined]
                    else:
                        fitted_on = _vectors(text, place, mix)
                        if not (known := finite_rows(fitted_on)).all():
                            fitted_on = fitted_on[known]
                    fitted = calibration.fit(fitted_on, where)
                    del fitted_on
                    y = x if defined.all() else x[defined]
                    calibration.apply(fitted, y, where)  # in place; columns that it drops are zeros
                    if y is not x:
                        x[defined] = y
                instances = {label: factory() for label, factory in metrics.items()}
                for subset in subsets:
                    pairs = subset.pairs(x, defined)
                    if not len(pairs):
                        continue
                    for label, metric in instances.items():
                        at = f"{where}, sub-set {subset.name!r}" if subset.name else where
                        guard(label, metric, at, partial(metric.update, subset.name, pairs))
                for label, metric in instances.items():
                    rng = np.random.default_rng([seed, Stream.PAIRS])
                    found = guard(label, metric, f"{where}, compute()", partial(metric.compute, rng, bootstrap))
                    for statistic, value in found.items():
                        collected[label].setdefault(statistic, {})[place] = float(value)
                    for statistic, sample in guard(label, metric, f"{where}, replicates()", metric.replicates).items():
                        drawn.setdefault((label, statistic), {})[place] = np.asarray(sample, np.float32)
                    for row in guard(label, metric, f"{where}, rows()", metric.rows):
                        rows[label].append({"layer": place, **row})
                    if folder is not None and type(metric).save is not PairMetric.save:
                        target = folder / label / (str(place) if mix else f"layer_{place:02d}")
                        target.mkdir(parents=True, exist_ok=True)
                        guard(label, metric, f"{where}, save()", partial(metric.save, target))
            for label in metrics:
                left_out = collected[label].setdefault("undefined", {})  # the metric's own, such as zero vectors
                left_out[place] = left_out.get(place, 0.0) + undefined
            del x
            stage.advance(1)
    values = Values()
    layers = range(vectors.n_layers)
    for label, statistics in collected.items():
        values.add_all(label, {name: np.array([at.get(i, np.nan) for i in layers]) for name, at in statistics.items()})
        for mix in mixes:
            values.add_all(label, {name: at.get(mix.name, np.nan) for name, at in statistics.items()}, mix.name)
    for (label, statistic), samples in drawn.items():
        missing = np.full(max(map(len, samples.values())), np.nan, np.float32)
        if missing.size:
            curve = np.stack([samples.get(i, missing) for i in range(vectors.n_layers)])
            values.replicates[named(label, statistic)] = curve
            for mix in mixes:
                values.replicates[named(label, statistic, mix.name)] = samples.get(mix.name, missing)
    info = RunInfo(
        model=ModelInfo(n_layers=vectors.n_layers, dim=vectors.dim),
        corpus=CorpusInfo(pairs=len(corpus.pairs)),
        seed=seed,
        bootstrap=bootstrap,
        resampled=Resampled(pairs=resampled_unit([subset.ends() for subset in subsets])),
        measures={label: describe(label, probe) for label, probe in probes.items()},
    )
    return Results.of(values, tables={label: table(of) for label, of in rows.items() if of}, info=info)


def require_pairs(corpus: Corpus, labels: Sequence[str]) -> None:
    """Raise DataError if the corpus has no gold pairs to measure."""
    if not corpus.pairs:
        raise DataError(
            f"{', '.join(labels)}: compares gold sentence pairs, but data set {corpus.name!r} has none; choose one "
            "that does, such as dataset=sts_b, sick_r or sts_2012_2016"
        )


def grouped(corpus: Corpus) -> list[Subset]:
    """The corpus's pairs by sub-set, sub-sets in order of their first pair, pairs in order."""
    members: dict[str, list[int]] = {}
    for i, pair in enumerate(corpus.pairs):
        members.setdefault(pair.subset, []).append(i)
    subsets = []
    for name, which in members.items():
        chosen = [corpus.pairs[i] for i in which]
        first, second = (np.array([getattr(p, end) for p in chosen], np.int64) for end in ("first", "second"))
        gold = np.array([p.gold for p in chosen], np.float64)
        texts = [(corpus.sentences[p.first].text, corpus.sentences[p.second].text) for p in chosen]
        subsets.append(Subset(name, first, second, gold, texts))
    return subsets


def distinct(corpus: Corpus) -> np.ndarray:
    """Whether each sentence is the first of its kind (n_sentences,): repeated ones count once in a fit."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(s, i) == i for i, s in enumerate(corpus.sentences)], bool)


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows under their names, in order of first appearance; what a row lacks is empty."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: [row.get(name, "") for row in rows] for name in names})


def _all_equal(x: np.ndarray, defined: np.ndarray) -> bool:
    """Whether the several defined rows of x (n, d) are one and the same."""
    which = np.flatnonzero(defined)
    return len(which) > 1 and all(np.array_equal(x[i], x[which[0]]) for i in which[1:])


def _vectors(source: SentenceVectors, place: int | str, mix: Mix | None) -> np.ndarray:
    return source.layer(int(place)) if mix is None else mixed(source, mix)
