"""One run: config in, curves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ctxexp import __version__
from ctxexp.config import Node, build
from ctxexp.corpus import Corpus, deduplicated
from ctxexp.datasets.download import cache_folder
from ctxexp.encoder import Encoder, details
from ctxexp.errors import CtxexpError, ModelError, PluginError
from ctxexp.plugins import Registry
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.words import is_punctuation


def load_corpus(config: Node, registry: Registry) -> Corpus:
    """The configured data set, deduplicated if the config says so."""
    corpus: Corpus = _supplied("dataset", config["dataset"], registry)
    return deduplicated(corpus) if config["words"]["deduplicate"] else corpus


def load_encoder(config: Node, registry: Registry) -> Encoder:
    """The configured model."""
    encoder: Encoder = _supplied("model", config["model"], registry)
    missing = [a for a in ("name", "n_layers", "dim", "encode") if not hasattr(encoder, a)]
    if missing:
        raise ModelError(f"model {config['model']['name']!r} is no encoder: it lacks {', '.join(missing)}")
    return encoder


def run(
    config: Node, corpus: Corpus, encoder: Encoder, registry: Registry, folder: Path, progress: Progress
) -> Results:
    """Encode (or read the cache) and measure every layer; `config` is complete and checked.

    `folder` is where metrics may leave files of their own; the results are the caller's to save.
    """
    from ctxexp.encode import open_store
    from ctxexp.measure import measure
    from ctxexp.occurrences import Occurrences

    cache = config["cache"]
    store = open_store(
        corpus,
        encoder,
        cache=vector_cache(config),
        batch_tokens=config["batch_tokens"],
        limit_bytes=None if cache["limit_gb"] is None else int(cache["limit_gb"] * 1e9),
        progress=progress,
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
    results = measure(
        store,
        occurrences,
        metrics,
        baseline,
        seed=config["seed"],
        bootstrap=config["bootstrap"],
        progress=progress,
        folder=folder,
    )
    results.info.update(
        {
            "version": __version__,
            "model": label(config),
            "weights": config["model"].get("weights"),
            "encoder": encoder.name,
            "details": dict(details(encoder)),
            "dtype": config["dtype"],
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
    """What charts call the run: the model, its checkpoint where one was given, and weights that aren't the default."""
    model = config["model"]
    parts = [str(model["name"])]
    given = model.get("checkpoint") or model.get("weight_file") or model.get("path")
    if given:
        parts.append(Path(str(given)).name)
    elif model.get("weights") not in (None, "mini"):
        parts.append(f"({model['weights']})")
    return " ".join(parts)


def _supplied(kind: str, node: Node, registry: Registry) -> Any:
    """Build what a factory supplies; what a stranger's factory raises is named as theirs."""
    try:
        return build(kind, node, registry)
    except CtxexpError:
        raise
    except Exception as error:
        offer = registry.find(kind, node["name"])
        raise PluginError(
            f"{kind} {offer.name!r} of plugin {offer.plugin!r} could not be built: {type(error).__name__}: {error}"
        ) from error
