"""One run: config in, curves out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from ctxexp.command.config import Node, named, supplied
from ctxexp.command.fit import load_text
from ctxexp.control import Control
from ctxexp.dataset import Corpus, check_corpus, deduplicated
from ctxexp.datasets.download import cache_folder
from ctxexp.errors import CtxexpError, DataError, ModelError
from ctxexp.files.paths import user_path
from ctxexp.model import Encoder, lacking
from ctxexp.plugins import Registry, Source, arguments
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.run_info import CorpusInfo, FitInfo, ModelInfo, RunInfo, TransformInfo
from ctxexp.study import Pooling, Study, Vectors, Words
from ctxexp.vectors.pool import WORDS


def load_corpus(config: Node, registry: Registry, control: Control | None = None) -> Corpus:
    """The configured data set, deduplicated if the config says so, changed by the control (None: the config's)."""
    corpus = supplied("dataset", config["dataset"], registry)
    if not isinstance(corpus, Corpus):
        with registry.credit("dataset", config["dataset"]["name"]):
            raise DataError(f"dataset {config['dataset']['name']!r}: expected a Corpus, got {type(corpus).__name__}")
    with registry.credit("dataset", config["dataset"]["name"]):
        corpus = prepared(corpus, deduplicate=config["words"]["deduplicate"])
    with registry.credit("control", config["control"]["name"]):
        return changed(corpus, control or supplied("control", config["control"], registry), config["seed"])


def prepared(corpus: Corpus, *, deduplicate: bool) -> Corpus:
    """The corpus, checked; each text once if so wished."""
    check_corpus(corpus)
    return deduplicated(corpus) if deduplicate else corpus


def changed(corpus: Corpus, control: Control, seed: int) -> Corpus:
    """The corpus that is encoded under the control, checked if it is another. Raises DataError."""
    other = control.corpus(corpus, seed)
    if not isinstance(other, Corpus):
        raise DataError(f"control {control.words!r}: corpus() gave {type(other).__name__}; expected a Corpus")
    if other is not corpus:
        check_corpus(other)
    return other


def load_encoder(config: Node, registry: Registry) -> Encoder:
    """The configured model."""
    encoder: Encoder = supplied("model", config["model"], registry)
    with registry.credit("model", config["model"]["name"]):
        if wrong := lacking(encoder):
            raise ModelError(f"model {config['model']['name']!r} {wrong}")
    return encoder


def supplied_by(config: Node, registry: Registry) -> list[Node]:
    """The plugins that supply something to this run: plugin, distribution, version, and what (`model lengths`)."""
    brought: dict[Source, list[str]] = {}
    for kind, name in named(config):
        if source := registry.source(kind, name):
            brought.setdefault(source, []).append(f"{kind} {name}")
    return [{**vars(source), "supplies": names} for source, names in brought.items()]


def study_of(config: Node, corpus: Corpus, encoder: Encoder, registry: Registry, text: Corpus | None = None) -> Study:
    """The study that a complete, checked config describes; `text` is what its transform is fitted on."""
    words, sentence, transform = config["words"], config["sentence"], config["transform"]
    chosen = supplied("control", config["control"], registry)
    supplied("transform", transform, registry)  # its mistakes, before anything is encoded
    return Study(
        corpus=corpus,
        encoder=encoder,
        metrics={label: partial(supplied, "metric", node, registry) for label, node in config["metric"].items()},
        baseline=supplied("baseline", config["baseline"], registry),
        transform=partial(supplied, "transform", transform, registry),
        transform_name=transform["name"],
        fit_on=text,
        control=chosen,
        words=Words(
            min_contexts=config["min_contexts"],
            punctuation=words["punctuation"] == "keep",
            fold_case=words["fold_case"],
        ),
        pooling=Pooling(name=sentence["pooling"], mixes=tuple(sentence["mixes"])),
        seed=config["seed"],
        bootstrap=config["bootstrap"],
        model=config["model"]["name"],
        title=label(config, registry, chosen),
    )


def vectors_of(config: Node, registry: Registry) -> Vectors:
    """How the config wants vectors computed and kept."""
    limit, source = config["cache"]["limit_gb"], registry.source("model", config["model"]["name"])
    return Vectors(
        cache=vector_cache(config),
        limit_bytes=None if limit is None else int(limit * 1e9),
        batch_tokens=config["batch_tokens"],
        version=f"{source.plugin} {source.version}" if source else "",
    )


def run(
    config: Node,
    corpus: Corpus,
    encoder: Encoder,
    registry: Registry,
    folder: Path,
    progress: Progress,
    text: Corpus | None = None,
) -> Results:
    """Encode (or read the cache) and measure every layer; `config` is complete and checked.

    `folder` is where metrics may leave files of their own; the results are the caller's to save. `text` is what the
    transform is fitted on, where the caller has loaded it already.
    """
    text = text or load_text(config, registry, load_corpus)
    return measured(study_of(config, corpus, encoder, registry, text), config, registry, folder, progress)


def measured(study: Study, config: Node, registry: Registry, folder: Path, progress: Progress) -> Results:
    """The study's results under the names of the config that describes it."""
    try:
        results = study.run(vectors_of(config, registry), folder=folder, progress=progress)
    except CtxexpError as error:
        if error.of is None:
            raise
        kind, at = error.of
        with registry.credit(kind, (config["metric"][at] if kind == "metric" else config[kind])["name"]):
            raise
    fit = results.info.transform.fit
    return replace(results, info=results.info | names(config, registry, study.control, fit))


def names(config: Node, registry: Registry, chosen: Control, fit: FitInfo | None = None) -> RunInfo:
    """What results call the run and its parts, as the config has them; `chosen` is the run's control, `fit` what its
    transform was fitted on."""
    return RunInfo(
        title=label(config, registry, chosen),
        model=ModelInfo(name=config["model"]["name"], weights=weights(config) or "", dtype=config["dtype"]),
        corpus=CorpusInfo(choices={name: str(value) for name, value in config["words"].items()}),
        transform=TransformInfo(
            name=calibration(config, registry),
            arguments=dict(config["transform"]),
            fit=fit and replace(fit, text=_text_name(config["fit_on"])),
        ),
    )


def vector_cache(config: Node) -> Path:
    """The folder of cached vectors."""
    folder = config["cache"]["folder"]
    return user_path(folder).resolve() if folder else cache_folder() / "vectors"


def label(config: Node, registry: Registry | None = None, chosen: Control | None = None) -> str:
    """What charts call the run: the model, its checkpoint where one was given, weights that aren't the default, and
    the control (`chosen`; None: the config's) and the transform unless they are none, with the text that it was fitted
    on and the sentences' pooling unless they are the default's."""
    model = config["model"]
    parts = [str(model["name"])]
    if given := _given(model):
        parts += [given, "(untrained)"] if model.get("weights") == "untrained" else [given]
    elif model.get("weights") not in (None, "mini"):
        parts.append(f"({model['weights']})")
    if chosen is None and registry is not None:
        chosen = supplied("control", config["control"], registry)
    if words := chosen.words if chosen else "":
        parts.append(f"({words})")
    if (transform := calibration(config, registry)) != "none":
        parts += ["+", transform]
        if (fit_on := config.get("fit_on", "target")) != "target":
            parts.append(f"fitted on {_text_name(fit_on)}")
    if (pooling := config.get("sentence", {}).get("pooling", WORDS)) != WORDS:
        parts.append(f"sentence.pooling={pooling}")  # `pooling` alone is the words' from pieces
    return " ".join(parts)


def weights(config: Node) -> str | None:
    """Which weights the run used: the group's choice, or the user's own files in its place."""
    model = config["model"]
    chosen, given = model.get("weights"), _given(model)
    return f"untrained {given}" if given and chosen == "untrained" else given or chosen


def _given(model: Node) -> str:
    """The name of a checkpoint or file that the user gave; empty if none."""
    given = model.get("checkpoint") or model.get("weight_file") or model.get("options_file") or model.get("path")
    return Path(str(given)).name if given else ""


def _text_name(fit_on: str) -> str:
    """The choice of the fitted text, a path by its last part."""
    return Path(fit_on.removeprefix("nli:")).name if fit_on.startswith("nli:") else fit_on


def calibration(config: Node, registry: Registry | None = None) -> str:
    """The transform and its arguments: `none`, `center`, `drop_top (k=3)`. With the registry, whose factories know
    their defaults, only arguments that differ from these; where it was computed says nothing about the space."""
    node = config["transform"]
    offer = registry.offers.get(("transform", node["name"])) if registry else None  # an object from Python is no offer
    known = arguments(offer.factory) if offer else None
    defaults = {key: default for key, (_type, default) in (known or {}).items()} | {"device": node.get("device")}
    said = {k: v for k, v in node.items() if k != "name" and not (k in defaults and defaults[k] == v)}
    listed = ", ".join(f"{key}={value}" for key, value in said.items())
    return f"{node['name']} ({listed})" if listed else str(node["name"])
