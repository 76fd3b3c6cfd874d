"""One run: config in, curves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import __version__
from ctxexp.config import Node, arguments, named, supplied
from ctxexp.controls import control
from ctxexp.corpus import Corpus, check_corpus, deduplicated
from ctxexp.datasets.download import cache_folder
from ctxexp.encoder import Encoder, details
from ctxexp.errors import DataError, MetricError, ModelError, TransformError
from ctxexp.paths import user_path
from ctxexp.plugins import Registry, Source
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.sentences import WORDS

if TYPE_CHECKING:
    from ctxexp.store import Store

# Machine epsilon of what the encoder computed in: differences at that level are noise, not spread.
PRECISION = {"float32": None, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def load_corpus(config: Node, registry: Registry) -> Corpus:
    """The configured data set, deduplicated and shuffled if the config says so."""
    corpus = supplied("dataset", config["dataset"], registry)
    if not isinstance(corpus, Corpus):
        with registry.credit("dataset", config["dataset"]["name"]):
            raise DataError(f"dataset {config['dataset']['name']!r}: expected a Corpus, got {type(corpus).__name__}")
    with registry.credit("dataset", config["dataset"]["name"]):
        check_corpus(corpus)
    corpus = deduplicated(corpus) if config["words"]["deduplicate"] else corpus
    return control(config["control"]).corpus(corpus, config["seed"])


def load_encoder(config: Node, registry: Registry) -> Encoder:
    """The configured model."""
    encoder: Encoder = supplied("model", config["model"], registry)
    missing = [a for a in ("name", "n_layers", "dim", "encode") if not hasattr(encoder, a)]
    if missing:
        with registry.credit("model", config["model"]["name"]):
            raise ModelError(f"model {config['model']['name']!r} is no encoder: it lacks {', '.join(missing)}")
    return encoder


def supplied_by(config: Node, registry: Registry) -> list[Node]:
    """The plugins that supply something to this run: plugin, distribution, version, and what (`model lengths`)."""
    brought: dict[Source, list[str]] = {}
    for kind, name in named(config):
        if source := registry.source(kind, name):
            brought.setdefault(source, []).append(f"{kind} {name}")
    return [{**vars(source), "supplies": names} for source, names in brought.items()]


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
    from ctxexp.encode import open_store
    from ctxexp.fit import load_text
    from ctxexp.measure import measure
    from ctxexp.measure_pairs import measure_pairs, require_pairs
    from ctxexp.pairs import PairMetric
    from ctxexp.spaces import Spaces
    from ctxexp.tables import measure_tables
    from ctxexp.transform import Calibration, Measured, fit_table, transformed

    _require_senses(config, corpus, registry)
    metrics: dict[str, Callable[[], Any]] = {
        label: partial(supplied, "metric", node, registry) for label, node in config["metric"].items()
    }
    paired = {label: factory for label, factory in metrics.items() if isinstance(factory(), PairMetric)}
    others = {label: factory for label, factory in metrics.items() if label not in paired}
    cache, model = config["cache"], config["model"]["name"]
    if paired:
        require_pairs(corpus, list(paired))
    text = text or load_text(config, registry, load_corpus)

    def opened(corpus: Corpus, encoder: Encoder) -> Store:
        with registry.credit("model", model):
            return open_store(
                corpus,
                encoder,
                cache=vector_cache(config),
                batch_tokens=config["batch_tokens"],
                limit_bytes=None if cache["limit_gb"] is None else int(cache["limit_gb"] * 1e9),
                progress=progress,
                version=f"{source.plugin} {source.version}" if (source := registry.source("model", model)) else "",
            )

    spaces = Spaces(config, encoder, opened, sentences=bool(paired))
    results, words = Results(), None
    transform = config["transform"]
    calibrated = partial(supplied, "transform", transform, registry)
    try:
        with registry.credit("transform", transform["name"]):
            fitting = Calibration(calibrated, transform["name"])
        if others:
            store, occurrences = spaces.words(corpus)
            words = transformed(
                store,
                occurrences,
                calibrated,
                name=transform["name"],
                text=Measured(*spaces.words(text)) if text else None,
            )
            results = measure(
                words,
                occurrences,
                others,
                supplied("baseline", config["baseline"], registry),
                seed=config["seed"],
                bootstrap=config["bootstrap"],
                progress=progress,
                folder=folder,
                eps=PRECISION[config["dtype"]] if store.dtype == np.float16 else None,
            )
            credit = registry.credit("model", model)
            title = label(config, registry)
            measure_tables(results, encoder, corpus, others, folder, progress, title=title, model=credit)
        if paired:
            found = measure_pairs(
                spaces.sentences(corpus),
                corpus,
                paired,
                calibration=None if fitting.identity else fitting,
                text=spaces.sentences(text) if text else None,
                mixes=spaces.mixes,
                seed=config["seed"],
                bootstrap=config["bootstrap"],
                progress=progress,
                folder=folder,
            )
            results = found.joined(results)
        if (fits := fit_table(words, fitting)) is not None:
            results.tables["transform_fit"] = fits
    except TransformError:
        with registry.credit("transform", transform["name"]):
            raise
    except MetricError as error:
        if error.of is None:
            raise
        kind, at = error.of
        with registry.credit(kind, (config["metric"][at] if kind == "metric" else config[kind])["name"]):
            raise
    if paired:
        results.info |= {
            "pooling": config["sentence"]["pooling"],
            "pooling_details": spaces.pooling_details,
            "mixes": {mix.name: str(mix) for mix in spaces.mixes},
        }
    unknown, pieces = spaces.unknown(corpus)
    if fitting.fitted:
        results.info |= fitted_on(config, corpus, text)
    results.info.update(
        {
            "version": __version__,
            "model": label(config, registry),
            "name": config["model"]["name"],
            "weights": weights(config),
            "encoder": encoder.name,
            "details": dict(details(encoder)),
            "dtype": config["dtype"],
            "transform": calibration(config, registry),
            "transform_arguments": dict(transform),
            "control": control(config["control"]).words or "none",
            "left_out": spaces.left_out.get(corpus.fingerprint, 0),
            "corpus": corpus.name,
            "fingerprint": corpus.fingerprint,
            "choices": {**corpus.choices, **{k: str(v) for k, v in config["words"].items()}},
            "n_sentences": len(corpus.sentences),
            "skipped": spaces.skipped(corpus)[0],
            "skipped_share": spaces.skipped(corpus)[1],
            "unknown": unknown,
            "pieces": pieces,
            "unknown_share": unknown / pieces if pieces else None,  # an encoder without pieces has no share of them
            "encoded": spaces.encoded,
            "min_contexts": config["min_contexts"],
            "seed": config["seed"],
        }
    )
    return results


def fitted_on(config: Node, corpus: Corpus, text: Corpus | None) -> Node:
    """What the transform was fitted on: the choice, whether the measured sentences were all among its text
    (`transductive`), their share, and how many sentences it has."""
    from ctxexp.fit import overlap

    share = 1.0 if text is None else overlap(text, corpus)
    return {
        "fit_on": _text_name(config["fit_on"]),
        "transductive": share == 1,
        "fit_overlap": share,
        "fit_sentences": len(set(corpus.sentences) if text is None else text.sentences),
    }


def vector_cache(config: Node) -> Path:
    """The folder of cached vectors."""
    folder = config["cache"]["folder"]
    return user_path(folder).resolve() if folder else cache_folder() / "vectors"


def label(config: Node, registry: Registry | None = None) -> str:
    """What charts call the run: the model, its checkpoint where one was given, weights that aren't the default, and
    the control and the transform unless they are none, with the text that it was fitted on and the sentences' pooling
    unless they are the default's."""
    model = config["model"]
    parts = [str(model["name"])]
    if given := _given(model):
        parts += [given, "(untrained)"] if model.get("weights") == "untrained" else [given]
    elif model.get("weights") not in (None, "mini"):
        parts.append(f"({model['weights']})")
    if words := control(config.get("control", {"name": "none"})).words:
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
    known = arguments(registry.find("transform", node["name"]).factory) if registry else None
    defaults = {key: default for key, (_type, default) in (known or {}).items()} | {"device": node.get("device")}
    said = {k: v for k, v in node.items() if k != "name" and not (k in defaults and defaults[k] == v)}
    listed = ", ".join(f"{key}={value}" for key, value in said.items())
    return f"{node['name']} ({listed})" if listed else str(node["name"])


def _require_senses(config: Node, corpus: Corpus, registry: Registry) -> None:
    """Before anything is encoded: metrics over senses need labels."""
    for label, node in config["metric"].items():
        if not corpus.senses and getattr(supplied("metric", node, registry), "over", None) == "sense":
            raise DataError(
                f"metric {label!r} compares occurrences by their sense labels, but corpus {corpus.name!r} has none; "
                "choose a data set that labels senses, such as dataset=polysemy"
            )
