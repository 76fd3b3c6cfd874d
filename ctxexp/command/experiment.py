"""A config's experiment: its parts, each built once; the text that it measures (a data set, deduplicated, changed by
the control, bounded or cut into shards); the study that they make, and its results under the config's names.
"""

from __future__ import annotations

import json
import logging
import shutil
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from tempfile import mkdtemp

from ctxexp.baselines import Baseline
from ctxexp.command.config import (
    MAX_CONTEXTS,
    SHARDS,
    Component,
    Config,
    component_of,
    parse_config,
    values_of_run,
)
from ctxexp.command.identity import key_of, run_info, run_title
from ctxexp.controls import Control
from ctxexp.dataset import Corpus, TextStream, check_corpus, check_sentences, deduplicate
from ctxexp.datasets.downloads import vector_folder
from ctxexp.datasets.text import fit_files, sentences_of
from ctxexp.engines import Engine
from ctxexp.errors import ConfigError, CtxexpError, DataError, ModelError, line, near, short
from ctxexp.files import user_path
from ctxexp.measuring.record import checked_metrics
from ctxexp.measuring.study import Study
from ctxexp.measuring.text_reader import TextReader
from ctxexp.metrics import OF_RUN, Metric
from ctxexp.model import Encoder, contract_violation
from ctxexp.models.options import check_arguments, check_device
from ctxexp.occurrences import check_contexts
from ctxexp.plugins import READER
from ctxexp.plugins.registry import install_hint, load_plugin_files, plugin_files, registry
from ctxexp.progress import Progress
from ctxexp.report.page.word_map import TABLE, WordMap
from ctxexp.results import Results
from ctxexp.sinks import Sink
from ctxexp.transforms import Calibration
from ctxexp.vectors.stores import POOLINGS, SentencePooling, Vectors, WordFilter

log = logging.getLogger("ctxexp")


class Experiment:
    """The parts of a config, each built once, and the study of them.

    `corpus` is its text, `encoder` its model, `title` what figures call the run.

    Control, engine and sinks are built at once, since they judge their own values; the others when they are first
    needed. A study builds metrics and transforms anew for each layer; `prototypes` has an instance of each
    metric, of which only the attributes are read.

    Example:
        >>> from ctxexp.command import configured
        >>> experiment = Experiment(configured("gpt2", ["The bank was wet.", "The bank lent us money."]))
        >>> experiment.title, len(experiment.corpus.sentences)
        ('gpt2', 2)
    """

    def __init__(self, config: Config, progress: Progress | None = None) -> None:
        self.config, self.progress = config, Progress.of(progress)
        self.control: Control = config.control.make()
        self.engine: Engine = config.engine.make()
        self.sinks: dict[str, Sink] = {label: part.make() for label, part in config.sink.items()}
        self._named_baselines: dict[str, Baseline] = {}
        self.title = run_title(config, self.control)
        self.words = WordFilter(
            min_contexts=config.min_contexts,
            punctuation=config.words.punctuation == "keep",
            fold_case=config.words.fold_case,
        )

    @classmethod
    def of_run(cls, folder: Path) -> Experiment:
        """The parts of the run whose results are in the folder, without its sinks. Raises ConfigError."""
        return cls(parse_config({**values_of_run(folder), "sink": {}}, registry()))

    @cached_property
    def baseline(self) -> Baseline:
        """The configured baseline."""
        return self.config.baseline.make()

    def named_baseline(self, name: str) -> Baseline:
        """The baseline that metrics name besides the run's. Raises UnknownName."""
        if name not in self._named_baselines:
            self._named_baselines[name] = self.config.named_baseline(name).make()
        return self._named_baselines[name]

    @cached_property
    def calibration(self) -> Calibration:
        """The configured transform, before it is fitted."""
        part = self.config.transform
        with part.offer.plugin_call():
            return Calibration(part.make, part.name)

    @cached_property
    def prototypes(self) -> dict[str, Metric]:
        """One of each metric, by label. Raises MetricError for what is none."""
        return checked_metrics({label: part.make() for label, part in self.config.metric.items()})

    @cached_property
    def encoder(self) -> Encoder:
        """The configured model, loaded, as the control has it read."""
        part = self.config.model
        encoder: Encoder = part.make()
        with part.offer.plugin_call():
            if wrong := contract_violation(encoder):
                raise ModelError(f"model {part.name!r} {wrong}")
        with self.config.control.offer.plugin_call():
            return self.control.encoder(encoder)

    @cached_property
    def reader(self) -> TextReader | None:
        """The reader of a text beyond memory, if the config asks for one. Raises ConfigError without the plugin."""
        words, shards = self.config.words, self.config.one_pass.shards
        if words.max_contexts:
            key, options = MAX_CONTEXTS, {"max_contexts": words.max_contexts, "max_sentences": words.max_sentences}
        elif shards:
            key, options = SHARDS, {"shards": shards}
        else:
            return None
        offer = self.config.registry.offers.get((READER, key))
        if offer is None:
            raise ConfigError(f"{key} is for a text beyond memory{install_hint(READER, key)}")
        with offer.plugin_call():
            reader: TextReader = offer.factory(**options, sample=words.sample)
        return reader

    @cached_property
    def corpus(self) -> Corpus:
        """The configured data set, deduplicated if the config says so, changed by the control, and with
        `words.max_contexts` only what that leaves of it."""
        return self._load_corpus()

    def _load_corpus(self, **others: object) -> Corpus:
        """The same, with `others` in place of arguments of the data set; with `one_pass.shards` a text in shards.
        Raises DataError for what is no text, ConfigError for a stream that can't be read in parts."""
        config, part, words = self.config, self.config.dataset, self.config.words
        in_parts = self.reader is not None
        if in_parts and "stream" in (part.signature() or {}) and not self.control.changes_text:
            others = {"stream": True, **others}
        text: Corpus | TextStream = part.make(**others)
        with part.offer.plugin_call():
            if isinstance(text, Corpus):
                check_corpus(text)
            elif not isinstance(text, TextStream):
                raise DataError(f"dataset {part.name!r}: expected a Corpus or TextStream, got {type(text).__name__}")
            elif not in_parts or self.control.changes_text:
                why = (
                    f"control={self.control.name} changes" if in_parts else "needs words.max_contexts, such as 256, or"
                )
                message = f"streams a text: {why} all of it in memory, dataset.stream=false"
                raise ConfigError(f"dataset {part.name!r} {message}")
        if text.origin or not isinstance(text, Corpus):  # read from what a user gave: an embedded text is known
            first = next(iter(text.sentences if isinstance(text, Corpus) else text.corpus(1).sentences), None)
            said = f"{text.name}: {text.origin or 'streamed'}; the first: {line(first.text, 60) if first else 'none'}"
            self.progress.note(said, is_warning=isinstance(text, Corpus) and text.left_out > 0)
        if isinstance(text, Corpus):
            text = self._change(deduplicate(text) if words.deduplicate else text)
            if self.reader is None:
                return text
        assert self.reader is not None
        with part.offer.plugin_call():
            corpus = self.reader.corpus(
                text,
                form=self.words.form,
                min_contexts=config.min_contexts,
                seed=config.seed,
                engine=self.engine,
                progress=self.progress,
            )
            if self.reader.stores_rows:
                check_sentences(corpus)
            return corpus

    def _change(self, corpus: Corpus) -> Corpus:
        """The corpus as the control changes it."""
        with self.config.control.offer.plugin_call():
            changed: object = self.control.corpus(corpus, self.config.seed)
            if not isinstance(changed, Corpus):
                got = type(changed).__name__
                raise DataError(f"control {self.control.label!r}: corpus() gave {got}; expected a Corpus")
            if changed is not corpus:
                check_corpus(changed)
        return changed

    @cached_property
    def load_fit_text(self) -> Callable[[], Corpus] | None:
        """The function that loads the text which the transform is fitted on; None where that is the measured text
        itself, or nothing is fitted (`none`, `rank`).

        Raises ConfigError for a data set without splits, DataError where no file is.
        """
        config, dataset = self.config, self.config.dataset
        fit_on = config.fit_on
        if fit_on == "target" or not self.calibration.needs_fit:
            return None
        if fit_on.startswith("nli:"):
            fit_files(path := fit_on.removeprefix("nli:"))
            return partial(sentences_of, path, config.words.tokenizer, lower=config.words.lower)
        signature = dataset.signature() or {}
        if "split" not in signature:
            raise ConfigError(
                f"fit_on={fit_on}: dataset {dataset.name!r} has no splits; use fit_on=target (the measured text "
                "itself), or fit_on=nli:<path> with a file of sentences"
            )
        same = dataset.arguments.get("split", signature["split"][1]) == fit_on
        return None if same else partial(self._load_corpus, split=fit_on)

    def check(self) -> None:
        """Raise CtxexpError for the first thing that a run would fail at. A run may fail in spite of it: files are not
        read to their end."""
        config = self.config
        for device in (config.device, config.model.arguments.get("device"), config.transform.arguments.get("device")):
            if isinstance(device, str):
                check_device(device)
        _ = self.baseline, self.calibration
        self._check_reader()
        for metric in self.prototypes.values():
            for other in {*metric.baselines} - {OF_RUN}:
                self.named_baseline(other)
        if config.dataset.offer.builtin:
            self._check_data()
        if config.model.offer.builtin:  # a plugin's may have other arguments and poolings
            check_arguments(config.model.arguments)
            if (pooling := config.sentence.pooling) and pooling not in POOLINGS:
                raise ConfigError(f"sentence.pooling={short(pooling)}: no such pooling{near(pooling, POOLINGS)}")
        _ = self.load_fit_text

    def key(self) -> str:
        """The job's key: see `ctxexp.command.identity`."""
        return key_of(self.config, self.study)

    def _check_reader(self) -> None:
        """Raise ConfigError where the config asks for a text that isn't stored as a whole and for what needs that."""
        if self.reader is None:
            return
        self.reader.check(self.prototypes, self.baseline, self.calibration.prototype, self.control)
        if not self.reader.stores_rows and self.config.model.arguments.get("pooling") == "pieces":
            raise ConfigError(f"{SHARDS} follows words, but model.pooling=pieces gives pieces; leave one of them out")

    def _check_data(self) -> None:
        """A data set with a limit is read to its first sentence, of others the path must be there."""
        part = self.config.dataset
        if "limit" in (part.signature() or {}):
            limit, level = part.arguments.get("limit"), log.level
            log.setLevel(logging.ERROR)  # the run itself warns
            try:
                part.make(limit=1 if limit is None else min(limit, 1))
            finally:
                log.setLevel(level)
        elif (path := part.arguments.get("path")) and not user_path(path).exists():
            raise DataError(f"no such file or folder: {user_path(path)} (dataset.path)")

    @cached_property
    def study(self) -> Study:
        """The study that the config describes, its texts and its model loaded. Raises CtxexpError."""
        self._check_reader()
        config, calibration, load_fit_text = self.config, self.calibration, self.load_fit_text
        corpus = self.corpus
        of_words = any(metric.over == "word" for metric in self.prototypes.values())
        if of_words and (self.reader is None or self.reader.stores_rows):
            check_contexts(len(set(corpus.sentences)), self.words.min_contexts)  # before a model is loaded
        encoder = self.encoder
        return Study(
            corpus=corpus,
            reader=self.reader,
            fit_on=deduplicate(load_fit_text()) if load_fit_text else None,
            encoder=encoder,
            metrics={label: part.factory for label, part in config.metric.items()},
            prototypes=self.prototypes,
            baseline=self.baseline,
            named_baseline=self.named_baseline,
            transform=calibration.factory,
            transform_name=calibration.name,
            control=self.control,
            words=self.words,
            mix=config.words.mix,
            intervals=config.intervals,
            pooling=SentencePooling(name=config.sentence.pooling, mixes=tuple(config.sentence.mixes)),
            seed=config.seed,
            bootstrap=config.bootstrap,
            observers={TABLE: partial(WordMap, most=most)} if (most := config.figures.explorer) else {},
            info=run_info(config, self.title),
        )

    @cached_property
    def _cache(self) -> Path:
        """The folder of vectors; one of this experiment's own for those that no other run may find."""
        if "not_stored" not in self.encoder.details:
            return vector_folder(self.config.cache.folder)
        folder = Path(mkdtemp(prefix="ctxexp-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    @property
    def vectors(self) -> Vectors:
        """How vectors are computed and kept."""
        config = self.config
        limit = config.cache.limit_gb
        return Vectors(
            cache=self._cache,
            limit_bytes=limit if limit is None or limit == "auto" else int(limit * 1e9),
            batch_tokens=config.batch_tokens,
            version=encoder_version(config.model),
            engine=self.engine,
            make=_encoder_factory(config.model),
        )

    def run(self, folder: Path) -> Results:
        """The study's results, for the caller to save; metrics may leave files of their own in `folder`. An error of a
        part becomes one of the plugin that supplied it."""
        config = self.config
        try:
            return self.study.run(self.vectors, folder=folder, progress=self.progress)
        except CtxexpError as error:
            kind, label = error.part or ("", "")
            part = config.metric.get(label) if kind == "metric" else vars(config).get(kind)
            if not isinstance(part, Component):
                raise
            with part.offer.plugin_call():
                raise


def encoder_version(model: Component) -> str:
    """The version of a plugin's encoder: the plugin's own and the arguments that aren't defaults, since its name may
    lack one and the vector cache would mix the encoders up. Empty for ctxexp's models."""
    source = model.offer.supplier
    if source is None:
        return ""
    version = f"{source.plugin if source.is_file else source.distribution} {source.version}"
    decisive = {key: value for key, value in sorted(model.choices.items()) if key != "device"}
    texts = (json.dumps(value, sort_keys=True, default=str) for value in decisive.values())
    return " ".join([version, *(f"{key}={text}" for key, text in zip(decisive, texts, strict=True))])


def _encoder_factory(model: Component) -> Callable[[], Encoder] | None:
    """A factory that builds the configured model in another process; None for an object of Python."""
    if model.offer.plugin == "python":
        return None
    return partial(_build_encoder, [str(file) for file in plugin_files()], model.name, dict(model.arguments))


def _build_encoder(files: list[str], name: str, arguments: Mapping[str, object]) -> Encoder:
    load_plugin_files(files)
    return component_of("model", "model", {"name": name, **arguments}, registry()).make()
