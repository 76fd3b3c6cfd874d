"""One run: config in, curves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import __version__
from ctxexp.config import Node, build, named
from ctxexp.corpus import Corpus, deduplicated
from ctxexp.datasets.download import cache_folder
from ctxexp.encoder import Encoder, details
from ctxexp.errors import DataError, MetricError, ModelError, TransformError
from ctxexp.plugins import Registry, Source
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.words import is_punctuation

# Machine epsilon of what the encoder computed in: differences at that level are noise, not spread.
PRECISION = {"float32": None, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def load_corpus(config: Node, registry: Registry) -> Corpus:
    """The configured data set, deduplicated if the config says so."""
    corpus = _supplied("dataset", config["dataset"], registry)
    if not isinstance(corpus, Corpus):
        with registry.credit("dataset", config["dataset"]["name"]):
            raise DataError(f"dataset {config['dataset']['name']!r}: expected a Corpus, got {type(corpus).__name__}")
    return deduplicated(corpus) if config["words"]["deduplicate"] else corpus


def load_encoder(config: Node, registry: Registry) -> Encoder:
    """The configured model."""
    encoder: Encoder = _supplied("model", config["model"], registry)
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
    config: Node, corpus: Corpus, encoder: Encoder, registry: Registry, folder: Path, progress: Progress
) -> Results:
    """Encode (or read the cache) and measure every layer; `config` is complete and checked.

    `folder` is where metrics may leave files of their own; the results are the caller's to save.
    """
    from ctxexp.encode import open_store
    from ctxexp.measure import measure
    from ctxexp.occurrences import Occurrences
    from ctxexp.transform import transformed

    cache = config["cache"]
    model = config["model"]["name"]
    with registry.credit("model", model):
        store = open_store(
            corpus,
            encoder,
            cache=vector_cache(config),
            batch_tokens=config["batch_tokens"],
            limit_bytes=None if cache["limit_gb"] is None else int(cache["limit_gb"] * 1e9),
            progress=progress,
            version=f"{source.plugin} {source.version}" if (source := registry.source("model", model)) else "",
        )
    words = config["words"]
    occurrences = Occurrences.of(
        store,
        corpus,
        min_contexts=config["min_contexts"],
        keep=(lambda unit: not is_punctuation(unit)) if words["punctuation"] == "drop" else (lambda unit: True),
        key=str.casefold if words["fold_case"] else str,
    )
    metrics: dict[str, Callable[[], Any]] = {
        label: partial(_supplied, "metric", node, registry) for label, node in config["metric"].items()
    }
    baseline = _supplied("baseline", config["baseline"], registry)
    transform = config["transform"]
    try:
        with registry.credit("transform", transform["name"]):
            calibrated = partial(_supplied, "transform", transform, registry)
            vectors = transformed(store, occurrences, calibrated, name=transform["name"])
        results = measure(
            vectors,
            occurrences,
            metrics,
            baseline,
            seed=config["seed"],
            bootstrap=config["bootstrap"],
            progress=progress,
            folder=folder,
            eps=PRECISION[config["dtype"]] if store.dtype == np.float16 else None,
        )
    except TransformError:
        with registry.credit("transform", transform["name"]):
            raise
    except MetricError as error:
        if error.of is None:
            raise
        kind, at = error.of
        with registry.credit(kind, (config["metric"][at] if kind == "metric" else config[kind])["name"]):
            raise
    results.info.update(
        {
            "version": __version__,
            "model": label(config),
            "name": config["model"]["name"],
            "weights": weights(config),
            "encoder": encoder.name,
            "details": dict(details(encoder)),
            "dtype": config["dtype"],
            "transform": calibration(config),
            "corpus": corpus.name,
            "fingerprint": corpus.fingerprint,
            "choices": {**corpus.choices, **{k: str(v) for k, v in words.items()}},
            "n_sentences": len(corpus.sentences),
            "encoded": store.encoded,
            "min_contexts": config["min_contexts"],
            "seed": config["seed"],
        }
    )
    return results


def vector_cache(config: Node) -> Path:
    """The folder of cached vectors."""
    folder = config["cache"]["folder"]
    return Path(folder).expanduser().resolve() if folder else cache_folder() / "vectors"


def label(config: Node) -> str:
    """What charts call the run: the model, its checkpoint where one was given, weights that aren't the default, and
    the transform unless it is none."""
    model = config["model"]
    parts = [str(model["name"])]
    if given := _given(model):
        parts += [given, "(untrained)"] if model.get("weights") == "untrained" else [given]
    elif model.get("weights") not in (None, "mini"):
        parts.append(f"({model['weights']})")
    if (transform := calibration(config)) != "none":
        parts += ["+", transform]
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


def calibration(config: Node) -> str:
    """The transform and its arguments: `none`, `center`, `drop_top (k=3)`."""
    node = config["transform"]
    arguments = ", ".join(f"{key}={value}" for key, value in node.items() if key != "name")
    return f"{node['name']} ({arguments})" if arguments else str(node["name"])


def _supplied(kind: str, node: Node, registry: Registry) -> Any:
    """Build what a factory supplies; what a stranger's factory raises is named as theirs."""
    with registry.credit(kind, node["name"]):
        return build(kind, node, registry)
