"""A study: sentences, a model, metrics and a chance level, measured layer by layer.

The command builds one from a config, a notebook by hand; neither knows more than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.baseline import Baseline
from ctxexp.baselines.drawn import OnePerSentence
from ctxexp.control import Control
from ctxexp.controls.none import Uncontrolled
from ctxexp.dataset import Corpus, overlap
from ctxexp.datasets.words import is_punctuation
from ctxexp.errors import ConfigError, DataError, MetricError, blamed
from ctxexp.measuring.measure import build, measure
from ctxexp.measuring.occurrences import Occurrences, Text
from ctxexp.measuring.one_pass.measurer import Told, Unstored
from ctxexp.measuring.pairs import PairRows, require_pairs
from ctxexp.measuring.rows import Rows
from ctxexp.measuring.tables import TableRows
from ctxexp.measuring.word_map import WordMap
from ctxexp.measuring.words import WordRows
from ctxexp.metric import Metric
from ctxexp.model import Encoder
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results
from ctxexp.results.run_info import CorpusInfo, FitInfo, ModelInfo, PoolingInfo, RunInfo, TransformInfo
from ctxexp.transform import Calibration, Measured, Transform, fit_table, transformed
from ctxexp.transforms.none import Nothing as Untransformed
from ctxexp.vectors.code_version import __version__
from ctxexp.vectors.layers import Layers
from ctxexp.vectors.pool import WORDS
from ctxexp.vectors.shards import Crew
from ctxexp.vectors.spaces import Spaces

# Machine epsilon of what the encoder computed in: differences at that level are noise, not spread.
PRECISION = {"float32": None, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True, kw_only=True)
class Words:
    """Which of a sentence's words are measured, and which are one word."""

    min_contexts: int = 5  # distinct sentences that a word needs
    punctuation: bool = False  # whether marks are measured (they are always encoded)
    fold_case: bool = False  # whether "The" and "the" are one word

    def form(self, unit: str) -> str | None:
        """The word that a unit counts for; None where it isn't measured."""
        if not self.punctuation and is_punctuation(unit):
            return None
        return unit.casefold() if self.fold_case else unit


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """How a sentence gets one vector, for metrics over sentence pairs."""

    name: str = WORDS  # of `ctxexp.vectors.pool.POOLINGS`, or of the encoder's own view of sentences
    mixes: tuple[object, ...] = ()  # of layers, as `ctxexp.vectors.mixes.layer_mixes` reads them


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """How vectors are computed and kept; nothing here moves a number but by rounding."""

    cache: Path  # the folder that holds them
    limit_bytes: int | None = None  # of the whole cache: the least recently used go first
    batch_tokens: int = 2048
    version: str = ""  # of the code that made the encoder, where its name doesn't tell
    crew: Crew | None = None  # who encodes; None: this process
    sweep: str = ""  # whose run this is: what its runs read stays in the cache, if anything can, while it lasts


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is measured, of which text, in which space, against which chance level.

    `metrics` and `transform` are factories: one instance serves one layer. `fit_on` is the text that the transform is
    fitted on (None: the measured one). `model` is what messages call the encoder, `title` what figures call the run.
    """

    corpus: Corpus
    encoder: Encoder
    metrics: Mapping[str, Callable[[], Metric]]
    baseline: Baseline = field(default_factory=partial(OnePerSentence, exact=True))
    transform: Callable[[], Transform] = Untransformed
    transform_name: str = "none"
    fit_on: Corpus | None = None
    control: Control = field(default_factory=Uncontrolled)
    words: Words = field(default_factory=Words)
    pooling: Pooling = field(default_factory=Pooling)
    seed: int = 0
    bootstrap: int = 1000
    explorer: int = 3072  # occurrences that are projected for the report's word explorer
    model: str = ""
    title: str = ""

    def run(self, vectors: Vectors, *, folder: Path, progress: Progress | None = None) -> Results:
        """Encode (or read the cache), index, calibrate and measure every layer.

        `folder` is where metrics may leave files of their own. Raises CtxexpError; its `of` names what is at fault, by
        kind and label, where that is known.
        """
        probes = {label: build(label, factory) for label, factory in self.metrics.items()}
        self._require_baseline()
        self.control.require(self.encoder)
        if isinstance(self.corpus, Unstored):
            results, told = self.corpus.measured(self, vectors, progress or Silent())
            return replace(results, info=results.info | self._info(told, fitted=False, pooled=False))
        self._require_gold(probes)
        pairs = any(probe.over == "pair" for probe in probes.values())
        spaces = Spaces(self, vectors, progress or Silent(), sentences=pairs)
        calibrations: dict[str, Calibration] = {}
        with blamed("transform"):
            sources: list[Rows] = []
            if any(probe.over != "pair" for probe in probes.values()):
                calibrations["words"] = Calibration(self.transform, self.transform_name)
                sources.append(self._words(spaces, calibrations["words"]))
            if pairs:
                calibrations["sentences"] = Calibration(self.transform, self.transform_name)
                sources.append(self._pairs(spaces, calibrations["sentences"]))
            if any(probe.tables for probe in probes.values()) and (tables := self._tables()):
                sources.append(tables)
            results = measure(
                sources,
                self.metrics,
                seed=self.seed,
                bootstrap=self.bootstrap,
                progress=spaces.progress,
                folder=folder,
                title=self.title or self.encoder.name,
            )
        fits = fit_table({over: made.records for over, made in calibrations.items()})
        return replace(
            results,
            tables=results.tables if fits is None else {**results.tables, "transform_fit": fits},
            info=results.info | self._info(spaces, fitted=any(c.fitted for c in calibrations.values()), pooled=pairs),
        )

    def _require_baseline(self) -> None:
        """Before anything is encoded: a stranger's factory may build anything."""
        made: object = self.baseline
        if not isinstance(made, Baseline):
            error = MetricError(f"expected a ctxexp.Baseline, got {type(made).__name__}: derive it from that")
            error.of = "baseline", ""
            raise error

    def _require_gold(self, probes: Mapping[str, Metric]) -> None:
        """Before anything is encoded: metrics over pairs need gold pairs, those over senses labels."""
        if pairs := [label for label, probe in probes.items() if probe.over == "pair"]:
            require_pairs(self.corpus.entire, pairs)
        for label, probe in probes.items():
            probe.require(self.corpus.entire if probe.over == "pair" else self.corpus)
            if not self.corpus.senses and probe.over == "sense":
                raise DataError(
                    f"metric {label!r} compares occurrences by their sense labels, but corpus {self.corpus.name!r} has "
                    "none; choose a data set that labels senses, such as dataset=polysemy"
                )

    def _words(self, spaces: Spaces, calibration: Calibration) -> Rows:
        """The measured words, in the space that the transform makes."""
        store, occurrences = spaces.words(self.corpus)
        space = self._calibrated(spaces, calibration)
        half = PRECISION[self.encoder.dtype] if store.dtype == np.float16 else None
        points = WordMap(store, occurrences, self.corpus, dim=space.dim, most=self.explorer) if self.explorer else None
        text = Text(self.corpus, store, occurrences, self.encoder)
        return WordRows(space, occurrences, self.baseline, seed=self.seed, eps=half, word_map=points, text=text)

    def _calibrated(self, spaces: Spaces, calibration: Calibration) -> Layers:
        """The word rows as they are measured."""
        text = Measured(*spaces.words(self.fit_on)) if self.fit_on else None
        return transformed(*spaces.words(self.corpus), calibration, text=text)

    def space(self, vectors: Vectors, progress: Progress | None = None) -> tuple[Layers, Occurrences, np.ndarray]:
        """What `run` measures of words: vectors by layer, which rows belong together, and each row's word in its
        sentence (n_rows,), -1 where units aren't words. Raises ConfigError for a text of which no row is stored."""
        if isinstance(self.corpus, Unstored):
            raise ConfigError("words.one_pass stores no rows, which are compared here; use words.max_contexts=256")
        spaces = Spaces(self, vectors, progress or Silent(), sentences=False)
        with blamed("transform"):
            layers = self._calibrated(spaces, Calibration(self.transform, self.transform_name))
        store, occurrences = spaces.words(self.corpus)
        return layers, occurrences, store.positions

    def _pairs(self, spaces: Spaces, calibration: Calibration) -> Rows:
        """The sentences of the gold pairs, each layer and mix in a space of its own."""
        text = spaces.sentences(self.fit_on.entire) if self.fit_on else None
        corpus = self.corpus.entire
        return PairRows(spaces.sentences(corpus), corpus, mixes=spaces.mixes, calibration=calibration, text=text)

    def _tables(self) -> Rows | None:
        """The model's embedding tables, as they are; None without any."""
        with blamed("model"):
            tables = list(self.encoder.tables(self.corpus.running))
            return TableRows(tables, encoder=self.encoder.name) if tables else None

    def _fit_info(self) -> FitInfo:
        """What the transform was fitted on."""
        text = self.fit_on
        share = 1.0 if text is None else overlap(text, self.corpus)
        return FitInfo(
            text="target" if text is None else text.name,
            transductive=share == 1,
            overlap=share,
            sentences=len(set(self.corpus.sentences) if text is None else text.sentences),
        )

    def _info(self, spaces: Told, *, fitted: bool, pooled: bool) -> RunInfo:
        """What names the run, as far as the study knows it."""
        corpus, encoder = self.corpus, self.encoder
        unknown, pieces = spaces.unknown(corpus)
        skipped, skipped_share = spaces.skipped(corpus)
        return RunInfo(
            title=self.title or self.model or encoder.name,
            model=ModelInfo(
                encoder=encoder.name,
                dtype=encoder.dtype,
                causal=encoder.causal,
                start=encoder.start,
                details={**encoder.details, **spaces.made(corpus)},
            ),
            corpus=CorpusInfo(
                name=corpus.name,
                fingerprint=corpus.fingerprint,
                choices=dict(corpus.choices),
                sentences=len(corpus.sentences),
                min_contexts=self.words.min_contexts,
                max_contexts=bound.max_contexts if (bound := corpus.bound) else None,
                text_sentences=bound.text_sentences if bound else 0,
                text_words=bound.text_words if bound else 0,
                left_out=spaces.left_out.get(corpus.fingerprint, 0),
                skipped=skipped,
                skipped_share=skipped_share,
                unknown=unknown,
                pieces=pieces,
            ),
            control=self.control.words or "none",
            control_note=self.control.note(encoder.start),
            transform=TransformInfo(name=self.transform_name, fit=self._fit_info() if fitted else None),
            pooling=spaces.pooling_info if pooled else PoolingInfo(),
            seed=self.seed,
            encoded=spaces.encoded,
            version=__version__,
        )
