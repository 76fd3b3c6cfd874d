"""A study: sentences, a model, metrics and a chance level, measured layer by layer, and then on the text's halves.

The command builds one from a config, a notebook by hand; neither knows more than the other. What a finding says of a
mean over words must be true of both halves; of contextuality, of all its variants.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.baselines import Baseline, OnePerSentence, builtin_baseline
from ctxexp.controls import Control, Uncontrolled
from ctxexp.dataset import Corpus, overlap
from ctxexp.errors import ConfigError, DataError, MetricError, plugin_call
from ctxexp.files.code_version import __version__
from ctxexp.maths.resampling import Clusters, Stream
from ctxexp.maths.word_mix import WordMix
from ctxexp.measuring.pairs import PairVectors, check_table, measure_pairs, measure_tables, require_pairs
from ctxexp.measuring.record import Record
from ctxexp.measuring.text_reader import TextReader, measure_summed, summed_halves
from ctxexp.measuring.word_rows import Intervals, Observer, WordRows
from ctxexp.measuring.words import measure_words
from ctxexp.metrics import OF_RUN, Metric
from ctxexp.model import EmbeddingTable, Encoder
from ctxexp.occurrences import Layers, Occurrences, Text
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.results.results import AVERAGED
from ctxexp.results.run_info import FitInfo, PoolingInfo, RunInfo
from ctxexp.results.values import LAYER
from ctxexp.transforms import Calibration, MeasuredRows, Transform, fit_table, transform_layers
from ctxexp.transforms import Nothing as Untransformed
from ctxexp.vectors import Store
from ctxexp.vectors.encoding import warn_unknown
from ctxexp.vectors.stores import SentencePooling, Stores, Vectors, WordFilter

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("ctxexp")
# Machine epsilon of what the encoder computed in: differences at that level are noise, not spread.
PRECISION = {"float32": None, "float16": 2.0**-10, "bfloat16": 2.0**-7}
HALVES_TABLE = "parts_of_the_text"
LEAST_CLUSTERS = 8  # that a text needs to be halved
HALVES = ("half", "other half")
STATISTICS = ("raw", "baseline", "adjusted", "share_of_room")


@dataclass(frozen=True, kw_only=True)
class Study:
    """A text, an encoder, metrics, a transform and a baseline: everything that decides the numbers of a run.

    `metrics` and `transform` are factories: one instance serves one layer; `prototypes` may give an instance of each
    metric, of which only the attributes are read. `fit_on` is the text that the transform is
    fitted on (None: the measured one). `named_baseline` gives the baselines that metrics name beside the run's
    (`Metric.baselines`), by name. `info` holds the metadata that the caller alone knows: the run's title, the names of
    its model, transform and texts, its plugins.
    """

    corpus: Corpus
    encoder: Encoder
    metrics: Mapping[str, Callable[[], Metric]]
    prototypes: Mapping[str, Metric] | None = None
    baseline: Baseline = field(default_factory=partial(OnePerSentence, exact=True))
    named_baseline: Callable[[str], Baseline] = builtin_baseline
    transform: Callable[[], Transform] = Untransformed
    transform_name: str = "none"
    fit_on: Corpus | None = None
    control: Control = field(default_factory=Uncontrolled)
    words: WordFilter = field(default_factory=WordFilter)
    mix: WordMix = field(default_factory=WordMix)  # of words, in means over them
    intervals: Intervals = "new_text"
    pooling: SentencePooling = field(default_factory=SentencePooling)
    seed: int = 0
    bootstrap: int = 1000
    observers: Mapping[str, Callable[..., Observer]] = field(default_factory=dict)  # of the words' layers, by table
    reader: TextReader | None = None  # of a text beyond memory: it made the corpus
    info: RunInfo = field(default_factory=RunInfo)

    def run(self, vectors: Vectors, *, folder: Path, progress: Progress | None = None) -> Results:
        """Encode (or read the cache), index, calibrate and measure every layer.

        `folder` is where metrics may leave files of their own. Raises CtxexpError; its `part` names the cause, by
        kind and label, where that is known.
        """
        record = self.record(folder)
        if self.reader is not None and not self.reader.stores_rows:
            return self._run_summed(self.reader, record, vectors, Progress.of(progress))
        overs = {prototype.over for prototype in record.prototypes.values()}
        self._require_gold(record.prototypes)
        stores = self._stores(vectors, progress, sentences="pair" in overs)
        calibrations: dict[str, Calibration] = {}
        words: WordRows | None = None
        if overs - {"pair"}:
            calibrations["words"] = Calibration(self.transform, self.transform_name)
            words = self._word_rows(*stores.words(self.corpus), self._calibrate(stores, calibrations["words"]))
        if "pair" in overs:
            calibrations["sentences"] = Calibration(self.transform, self.transform_name)
            pairs = self._pairs(stores, calibrations["sentences"])
        tables = self._tables() if any(p.measures_embedding_tables for p in record.prototypes.values()) else []
        fitted = any(calibration.needs_fit for calibration in calibrations.values())
        record.info = self._info(
            record.info,
            stores.n_encoded,
            stores.counts(self.corpus),
            fit=self._fit_info() if fitted else None,
            pooling=stores.pooling_info if "pair" in overs else None,
        )
        if words is not None:
            measure_words(words, record, stores.progress)
        if "pair" in overs:
            measure_pairs(pairs, record, stores.progress)
        if tables:
            measure_tables(tables, record, stores.progress)
        results = record.results()
        every_table = {
            **results.tables,
            "transform_fit": fit_table({over: calibration.records for over, calibration in calibrations.items()}),
            HALVES_TABLE: measure_halves(words, stores, self, record) if words is not None and self.bootstrap else None,
        }
        return replace(results, tables={name: table for name, table in every_table.items() if table is not None})

    def _run_summed(self, reader: TextReader, record: Record, vectors: Vectors, progress: Progress) -> Results:
        """The results of a text of which no row is stored."""
        reader.check(record.prototypes, self.baseline, self.transform(), self.control)
        if self.observers:
            log.info("no row is stored, so that the page has no word explorer")
        with reader.sum_up(self, record.prototypes, vectors, progress) as text:
            tallies = text.tallies
            warn_unknown(tallies["unknown"], tallies["pieces"], self.corpus.name)
            counts = {name: tallies[name] for name in ("left_out", "skipped", "unknown", "pieces")}
            share = counts["skipped"] / max(text.facts["text_words"], 1)
            record.info = self._info(record.info, text.n_encoded, {**counts, "skipped_share": share})
            measure_summed(text, record, self, self.mix, progress)
            if self.bootstrap and text.n_shards >= LEAST_CLUSTERS:
                halves = [half.results() for half in summed_halves(text, self, record.prototypes)]
                record.tables[HALVES_TABLE] = halves_table(halves)
        return record.results()

    def _stores(self, vectors: Vectors, progress: Progress | None, *, sentences: bool) -> Stores:
        return Stores(
            self.encoder,
            vectors,
            Progress.of(progress),
            control=self.control,
            words=self.words,
            mix=self.mix,
            pooling=self.pooling,
            model=self.info.model.name,
            sentences=sentences,
        )

    def record(self, folder: Path | None = None) -> Record:
        """The record to measure into, once metrics, baselines and control are checked: before anything is encoded,
        since a plugin's factory may build anything."""
        record = Record(
            self.metrics, self.prototypes, seed=self.seed, bootstrap=self.bootstrap, folder=folder, info=self.info
        )
        names = {name for prototype in record.prototypes.values() for name in prototype.baselines if name != OF_RUN}
        baselines: list[object] = [self.baseline, *map(self.named_baseline, sorted(names))]
        for baseline in baselines:
            if not isinstance(baseline, Baseline):
                with plugin_call("baseline"):
                    raise MetricError(f"expected a ctxexp.Baseline, got {type(baseline).__name__}: derive it from that")
        self.control.require(self.encoder)
        return record

    def _require_gold(self, prototypes: Mapping[str, Metric]) -> None:
        """Before anything is encoded: metrics over pairs need gold pairs, those over senses labels."""
        if pairs := [label for label, prototype in prototypes.items() if prototype.over == "pair"]:
            require_pairs(self.corpus.unbounded, pairs)
        for label, prototype in prototypes.items():
            prototype.require(self.corpus.unbounded if prototype.over == "pair" else self.corpus)
            if not self.corpus.senses and prototype.over == "sense":
                raise DataError(
                    f"metric {label!r} compares occurrences by their sense labels, but corpus {self.corpus.name!r} has "
                    "none; choose a data set that labels senses, such as dataset=polysemy"
                )

    def _word_rows(self, store: Store, occurrences: Occurrences, space: Layers) -> WordRows:
        """The measured words of a store, in the space that the transform makes."""
        eps = PRECISION[self.encoder.dtype] if store.dtype == np.float16 else None
        observers = {n: make(store, occurrences, self.corpus, dim=space.dim) for n, make in self.observers.items()}
        text = Text(self.corpus, store, occurrences, self.encoder)
        return WordRows(
            space,
            occurrences,
            self.baseline,
            named_baseline=self.named_baseline,
            seed=self.seed,
            eps=eps,
            observers=observers,
            text=text,
            intervals=self.intervals,
        )

    def _calibrate(self, stores: Stores, calibration: Calibration) -> Layers:
        """The word rows as they are measured."""
        text = MeasuredRows(*stores.words(self.fit_on)) if self.fit_on else None
        return transform_layers(*stores.words(self.corpus), calibration, text=text)

    def space(self, vectors: Vectors, progress: Progress | None = None) -> tuple[Layers, Occurrences, np.ndarray]:
        """The word vectors that `run` measures: layers, occurrences (which rows belong together), each row's word in
        its sentence (n_rows,), -1 where units aren't words. Raises ConfigError for a text of which no row is stored."""
        if self.reader is not None and not self.reader.stores_rows:
            raise ConfigError("this text's reader stores no rows, which are compared here; use words.max_contexts=256")
        stores = self._stores(vectors, progress, sentences=False)
        layers = self._calibrate(stores, Calibration(self.transform, self.transform_name))
        store, occurrences = stores.words(self.corpus)
        return layers, occurrences, store.positions

    def _pairs(self, stores: Stores, calibration: Calibration) -> PairVectors:
        """The sentences of the gold pairs, each layer and mix in a space of its own."""
        text = stores.sentences(self.fit_on.unbounded) if self.fit_on else None
        corpus = self.corpus.unbounded
        return PairVectors(stores.sentences(corpus), corpus, mixes=stores.mixes, calibration=calibration, text=text)

    def _tables(self) -> list[EmbeddingTable]:
        """The model's embedding tables, checked."""
        with plugin_call("model"):
            tables = list(self.encoder.tables(self.corpus.running))
            for table in tables:
                check_table(table, encoder=self.encoder.name)
            return tables

    def _fit_info(self) -> FitInfo:
        """The text on which the transform was fitted."""
        text, given = self.fit_on, self.info.transform.fit
        share = 1.0 if text is None else overlap(text, self.corpus)
        return FitInfo(
            text=given.text if given else "target" if text is None else text.name,
            transductive=share == 1,
            overlap=share,
            sentences=len(set(self.corpus.sentences) if text is None else text.sentences),
        )

    def _info(
        self,
        given: RunInfo,
        encoded: int,
        counts: Mapping[str, float],
        *,
        fit: FitInfo | None = None,
        pooling: PoolingInfo | None = None,
    ) -> RunInfo:
        """The metadata given, with what the study knows before it measures; `counts` are those of `CorpusInfo` about
        encoding."""
        corpus, encoder = self.corpus, self.encoder
        return replace(
            given,
            title=given.title or given.model.name or encoder.name,
            model=replace(
                given.model,
                encoder=encoder.name,
                dtype=encoder.dtype,
                causal=encoder.causal,
                start=encoder.start,
                details=dict(encoder.details),
            ),
            corpus=replace(
                given.corpus,
                name=corpus.name,
                fingerprint=corpus.fingerprint,
                choices={**corpus.choices, **given.corpus.choices},
                sentences=len(corpus.sentences),
                min_contexts=self.words.min_contexts,
                max_contexts=bound.max_contexts if (bound := corpus.bound) else None,
                text_sentences=bound.text_sentences if bound else 0,
                text_words=bound.text_words if bound else 0,
                **counts,  # type: ignore[arg-type]
            ),
            control=self.control.label or "none",
            control_note=self.control.note(encoder.start),
            transform=replace(given.transform, fit=fit),
            pooling=pooling or PoolingInfo(),
            encoded=encoded,
            version=__version__,
        )


def measure_halves(words: WordRows, stores: Stores, study: Study, record: Record) -> pd.DataFrame | None:
    """A row a half, measure, statistic and layer, of the means over words whose cost is small, mean cosines, by the
    bands that both halves fill. None without such a measure, or for a text that has no halves."""
    metrics = {
        label: study.metrics[label]
        for label, prototype in record.prototypes.items()
        if prototype.cosine_statistic and prototype.over in AVERAGED
    }
    clusters = words.occurrences.clusters
    if not metrics or clusters.n < LEAST_CLUSTERS:
        return None
    halves = draw_halves(clusters, np.random.default_rng([study.seed, Stream.PARTS]))
    occurrences = [stores.half(study.corpus, rows) for rows in halves]
    both = np.logical_and(*(half.mixed_words.filled for half in occurrences))
    results = []
    for half in occurrences:
        rows = WordRows(
            words.store,
            replace(half, mix=replace(half.mix, among=both)),
            OnePerSentence(size=2, redraws=0, exact=True),  # in closed form: halves have few sentences to draw from
            named_baseline=study.named_baseline,
            seed=study.seed,
            eps=words.eps,
            is_half=True,
        )
        measure_words(rows, of_half := Record(metrics, record.prototypes, seed=study.seed, bootstrap=0))
        results.append(of_half.results())
    return halves_table(results)


def draw_halves(clusters: Clusters, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The halves of a text: each one's rows (n_rows,) bool, by whole clusters in random order."""
    sizes = np.bincount(clusters.of_row[clusters.of_row >= 0], minlength=clusters.n_blocks)
    order = rng.permutation(clusters.n_blocks)
    before = np.empty(clusters.n_blocks)
    before[order] = (np.cumsum(sizes[order]) - sizes[order] / 2) / max(sizes.sum(), 1)
    place = np.where(clusters.of_row >= 0, before[clusters.of_row], np.nan)
    return place < 0.5, place >= 0.5


def halves_table(halves: Sequence[Results]) -> pd.DataFrame:
    """The curves of each half's results, with its words and the bands that they fill."""
    import pandas as pd

    tables = []
    for name, results in zip(HALVES, halves, strict=True):
        frame = results.frame
        chosen = frame[frame.statistic.isin(STATISTICS) & (frame.place == LAYER)]
        filled = " ".join(str(int(each)) for each in results.info.mix.filled)
        words, columns = results.info.corpus.occurrences, ["measure", "task", "statistic", "layer", "value"]
        of_half = chosen[columns].assign(part=name, words=words, filled=filled)
        tables.append(of_half[["part", "words", "filled", *columns]])
    return pd.concat(tables, ignore_index=True)
