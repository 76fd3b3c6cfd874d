"""A config made into a study, and the study's results under the config's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ctxexp.command.config import Config, part_of, supplied_by
from ctxexp.command.labels import calibration, label, text_name, weights
from ctxexp.command.names import registry, use, used
from ctxexp.dataset import Corpus, Shards, check_corpus, check_sentences, deduplicated
from ctxexp.datasets.contexts import Bounds, bounded
from ctxexp.datasets.download import vector_folder
from ctxexp.datasets.sentences import files_of, sentences_of
from ctxexp.errors import ConfigError, CtxexpError, DataError, ModelError, near, short
from ctxexp.files.paths import user_path
from ctxexp.measuring.one_pass.additive import OnePass
from ctxexp.measuring.one_pass.measurer import Dealing, Measurer
from ctxexp.metric import Metric
from ctxexp.model import Encoder, lacking
from ctxexp.models.choices import check_arguments
from ctxexp.plugins import MEASURER
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results
from ctxexp.results.objective import Objective
from ctxexp.results.run_info import CorpusInfo, ModelInfo, RunInfo, TransformInfo
from ctxexp.study import Pooling, Study, Vectors, Words
from ctxexp.transform import Calibration
from ctxexp.vectors.cache import disk_limit
from ctxexp.vectors.device import check_device
from ctxexp.vectors.pool import POOLINGS
from ctxexp.vectors.shards import Crew


def study_of(config: Config, progress: Progress | None = None) -> Study:
    """The study that the config describes, its texts and its model loaded; `title` is what charts call it."""
    check_one_pass(config)
    fitted_on, corpus = fit_text(config), load_corpus(config, progress=progress)
    check_objective(config, corpus)
    config.transform.make()  # its mistakes, before anything is encoded
    encoder = load_encoder(config)
    if config.objective:
        Objective.read(config.objective).require(encoder.given)
    return Study(
        corpus=corpus,
        fit_on=deduplicated(fitted_on()) if fitted_on else None,
        encoder=encoder,
        metrics={label: part.make for label, part in config.metric.items()},
        baseline=config.baseline.make(),
        transform=config.transform.make,
        transform_name=config.transform.name,
        control=config.control.make(),
        words=words_of(config),
        pooling=Pooling(name=config.sentence.pooling, mixes=tuple(config.sentence.mixes)),
        seed=config.seed,
        bootstrap=config.bootstrap,
        explorer=config.figures.explorer,
        model=config.model.name,
        title=label(config),
    )


def load_corpus(config: Config, *, progress: Progress | None = None, **others: object) -> Corpus:
    """The configured data set (`others` in place of its arguments), deduplicated if the config says so, changed by the
    control, and with `words.max_contexts` only what that leaves of it."""
    part, control, bounds = config.dataset, config.control.make(), bounds_of(config)
    in_parts = bounds or config.words.one_pass
    if in_parts and "stream" in (part.known() or {}) and not control.changes_text:
        others = {"stream": True, **others}
    text = part.make(**others)
    with part.credit():
        if not isinstance(text, Corpus | Shards):
            raise DataError(f"dataset {part.name!r}: expected a Corpus or Shards, got {type(text).__name__}")
        if isinstance(text, Corpus):
            check_corpus(text)
        elif not in_parts or control.changes_text:
            why = f"control={control.name} changes" if in_parts else "needs words.max_contexts, such as 256, or"
            raise ConfigError(f"dataset {part.name!r} streams a text: {why} all of it in memory, dataset.stream=false")
    if isinstance(text, Corpus):
        text = _changed(deduplicated(text) if config.words.deduplicate else text, config)
    if shards := config.words.one_pass:
        dealing = Dealing(
            shards=shards,
            form=words_of(config).form,
            min_contexts=config.min_contexts,
            sample=config.words.sample,
            seed=config.seed,
        )
        with part.credit():
            return _measurer(config).text(text, dealing, config.engine.make(), progress or Silent())
    if bounds is None:
        assert isinstance(text, Corpus)
        return text
    with part.credit():
        found = bounded(text, bounds, engine=config.engine.make(), progress=progress)
        check_sentences(found)
    return found


def _changed(corpus: Corpus, config: Config) -> Corpus:
    """What the control makes of the corpus."""
    control = config.control.make()
    with config.control.credit():
        changed = control.corpus(corpus, config.seed)
        if not isinstance(changed, Corpus):
            raise DataError(f"control {control.words!r}: corpus() gave {type(changed).__name__}; expected a Corpus")
        if changed is not corpus:
            check_corpus(changed)
    return changed


def bounds_of(config: Config) -> Bounds | None:
    """How much of the text the config measures; None: all."""
    words = config.words
    if words.max_contexts is None:
        return None
    return Bounds(
        max_contexts=words.max_contexts,
        max_sentences=words.max_sentences,
        min_contexts=config.min_contexts,
        form=words_of(config).form,
        sample=words.sample,
        seed=config.seed,
    )


def words_of(config: Config) -> Words:
    """Which units the config measures, and as which words."""
    return Words(
        min_contexts=config.min_contexts,
        punctuation=config.words.punctuation == "keep",
        fold_case=config.words.fold_case,
    )


def load_encoder(config: Config) -> Encoder:
    """The configured model."""
    encoder: Encoder = config.model.make()
    with config.model.credit():
        if wrong := lacking(encoder):
            raise ModelError(f"model {config.model.name!r} {wrong}")
    return encoder


def fit_text(config: Config) -> Callable[[], Corpus] | None:
    """How to load the text that the transform is fitted on; None where that is the measured text itself, or nothing is
    fitted (`none`, `rank`).

    Raises ConfigError for a data set without splits, DataError where no file is.
    """
    fit_on, dataset = config.fit_on, config.dataset
    if fit_on == "target" or not fits(config):
        return None
    if fit_on.startswith("nli:"):
        files_of(path := fit_on.removeprefix("nli:"))
        return partial(sentences_of, path, config.words.tokenizer, lower=config.words.lower)
    known = dataset.known() or {}
    if "split" not in known:
        raise ConfigError(
            f"fit_on={fit_on}: dataset {dataset.name!r} has no splits; use fit_on=target (the measured text itself), "
            "or fit_on=nli:<path> with a file of sentences"
        )
    same = dataset.arguments.get("split", known["split"][1]) == fit_on
    return None if same else partial(load_corpus, config, split=fit_on)


def fits(config: Config) -> bool:
    """Whether the run's transform is fitted at all."""
    with config.transform.credit():
        return Calibration(config.transform.make, config.transform.name).fitted


def preflight(config: Config) -> None:
    """Raise CtxexpError for the first thing that a run of this config would fail at. What isn't raised may fail still:
    files are not read to their end."""
    for device in (config.device, config.model.arguments.get("device"), config.transform.arguments.get("device")):
        if isinstance(device, str):
            check_device(device)
    config.baseline.make()
    config.transform.make()
    check_one_pass(config)
    for name, part in config.metric.items():
        made = part.make()
        if isinstance(made, Metric) and isinstance(made.sample, int) and made.sample < 1:
            raise ConfigError(f"metric.{name}.sample={made.sample}: expected at least 1, or null for all")
    if config.dataset.offer.ours:
        _check_data(config)
    if config.model.offer.ours:  # a stranger's may have other arguments and poolings
        check_arguments(config.model.arguments)
        if (pooling := config.sentence.pooling) not in POOLINGS:
            raise ConfigError(f"sentence.pooling={short(pooling)}: no such pooling{near(pooling, POOLINGS)}")
    fit_text(config)


def check_one_pass(config: Config) -> None:
    """Raise ConfigError where the config asks for one pass and for what needs stored rows."""
    if config.words.one_pass is None:
        return
    offers = (config.model.registry.find("metric", name) for name in config.model.registry.names("metric"))
    ours = ((offer.name, offer.factory) for offer in offers if offer.ours)  # plugins' are slow to import
    named = tuple(name for name, made in ours if isinstance(made, type) and issubclass(made, OnePass))
    metrics = {name: part.make() for name, part in config.metric.items()}
    parts = config.baseline.make(), config.transform.make(), config.control.make()
    _measurer(config).require(metrics, *parts, others=named)
    if config.model.arguments.get("pooling") == "pieces":
        raise ConfigError("words.one_pass follows words, but model.pooling=pieces gives pieces; leave one of them out")


def _measurer(config: Config) -> Measurer:
    """What measures without storing a row. Raises ConfigError where that isn't installed."""
    if (MEASURER, "one_pass") not in config.model.registry.offers:
        raise ConfigError("words.one_pass needs the plugin ctxexp-one-pass: pip install ctxexp-one-pass")
    made: Measurer = config.model.registry.find(MEASURER, "one_pass").factory()
    return made


def check_objective(config: Config, corpus: Corpus | None = None) -> None:
    """Raise ConfigError for an objective that no run of this config has."""
    if config.objective is not None:
        metrics = {label: part.make for label, part in config.metric.items()}
        Objective.read(config.objective).check(metrics, corpus)


def _check_data(config: Config) -> None:
    """A data set with a limit is read to its first sentence, of others the path must be there."""
    given, known = config.dataset.arguments, config.dataset.known() or {}
    if "limit" in known:
        limit = given.get("limit")
        config.dataset.make(limit=1 if limit is None else min(limit, 1))
    elif given.get("path") and not user_path(given["path"]).exists():
        raise DataError(f"no such file or folder: {user_path(given['path'])} (dataset.path)")


def run(config: Config, folder: Path, progress: Progress) -> Results:
    """The results of the config's study; `folder` is where metrics may leave files of their own."""
    return measured(study_of(config, progress), config, folder, progress)


def measured(study: Study, config: Config, folder: Path, progress: Progress) -> Results:
    """The study's results under the names of the config that describes it; they are the caller's to save."""
    try:
        results = study.run(vectors_of(config), folder=folder, progress=progress)
    except CtxexpError as error:
        if error.of is None:
            raise
        kind, at = error.of
        part = config.metric[at] if kind == "metric" else next(part for part in config.parts() if part.kind == kind)
        with part.credit():
            raise
    fit = results.info.transform.fit
    named = RunInfo(
        title=study.title,
        model=ModelInfo(name=config.model.name, weights=weights(config) or "", dtype=config.dtype),
        corpus=CorpusInfo(choices={key: str(value) for key, value in vars(config.words).items()}),
        transform=TransformInfo(
            name=calibration(config),
            arguments={"name": config.transform.name, **config.transform.arguments},
            fit=fit and replace(fit, text=text_name(config.fit_on)),
        ),
        published=config.figures.published,
        plugins=supplied_by(config),
    )
    return replace(results, info=results.info | named)


def vectors_of(config: Config) -> Vectors:
    """How the config wants vectors computed and kept."""
    source, cache = config.model.source, vector_folder(config.cache.folder)
    match config.cache.limit_gb:
        case None:
            limit = None
        case "auto":
            limit = disk_limit(cache)
        case given:
            limit = int(given * 1e9)
    return Vectors(
        cache=cache,
        limit_bytes=limit,
        batch_tokens=config.batch_tokens,
        version=f"{source.plugin} {source.version}" if source else "",
        crew=Crew(config.engine.make(), _maker(config)),
        sweep=config.tracking.sweep or "",
    )


def _maker(config: Config) -> Callable[[], Encoder] | None:
    """What makes the configured model in another process; None for an object of Python."""
    model = config.model
    if model.offer.plugin == "python":
        return None
    return partial(_remade, [str(file) for file in used()], model.name, dict(model.arguments))


def _remade(files: list[str], name: str, arguments: Mapping[str, object]) -> Encoder:
    use(files)
    made: Encoder = part_of("model", "model", {"name": name, **arguments}, registry()).make()
    return made
