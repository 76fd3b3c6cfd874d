"""`STS=FOLDER python -m docs.numbers.card`: the tables of the minis' card, of the folder that holds STSbenchmark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ctxexp import Results, measure
from ctxexp.results import Key
from docs.numbers.marked import write_marked
from docs.numbers.part import MINIS, markdown, one_run_each, without_leading_zero

CARD = MINIS.with_name("CARD.md")
MARK = "measured"
MODELS = ("bert", "gpt2", "elmo")
WEIGHTS = ("mini", "untrained")
CONTEXT = Key("contextuality", "raw")
RAW, CHANCE, ADJUSTED = (Key("self_similarity", name) for name in ("raw", "baseline", "adjusted"))
SENSES, PAIRS = Key("sense_separation", "raw"), Key("sts", "all")
FUNCTION_WORDS = ("the", "of", "to", "and", "a")

Found = Mapping[str, Results]
"""One model's runs: `words`, `sts`, `whitened`."""
Layer = Callable[[np.ndarray], int]
"""Which layer of a curve is meant."""


def measured(model: str, weights: str, sts: str) -> Found:
    """Everything that the card says of one model."""
    chosen = {"weights": weights, "device": "cpu"}
    pairs = {**chosen, "dataset": "sts_b", "dataset.path": sts}
    return {
        "sts": measure(model, metrics="sts", options=pairs),  # first: a wrong folder is said at once
        "whitened": measure(model, metrics="sts", transform="whitening", options=pairs),
        "words": measure(model, metrics=["contextuality", "self_similarity", "sense_separation"], options=chosen),
    }


def section(found: Mapping[tuple[str, str], Found]) -> str:
    """The tables: curves by layer, what training changed with intervals, single words."""
    names = [f"{model}-mini" if weights == "mini" else "untrained" for model, weights in found]
    curves = {
        "contextuality": ("words", CONTEXT),
        "self-similarity, raw": ("words", RAW),
        "chance": ("words", CHANCE),
        "self-similarity, adjusted": ("words", ADJUSTED),
        "same sense minus other sense, cosine": ("words", SENSES),
        "STS-B test, Spearman × 100, mean of words": ("sts", PAIRS),
        "the same, whitened on these sentences": ("whitened", PAIRS),
    }
    by_layer = [
        [title, *(" ".join(map(number, of[part].by_key[key].value)) for of in found.values())]
        for title, (part, key) in curves.items()
    ]
    last, before_last, best = (lambda c: len(c) - 1), (lambda c: len(c) - 2), (lambda c: int(c.argmax()))
    changes = [
        gains("contextuality, last layer", found, "words", CONTEXT, last),
        gains("the same, the layer before", found, "words", CONTEXT, before_last),
        gains("same sense minus other sense, last layer", found, "words", SENSES, last),
        gains("STS-B test, last layer", found, "sts", PAIRS, last),
        gains("the same, each at its best layer", found, "sts", PAIRS, best),
        gains("STS-B test, whitened, last layer", found, "whitened", PAIRS, last),
    ]
    words = [
        [f"{model}-mini" if weights == "mini" else f"{model}, untrained", *standing(of["words"])]
        for (model, weights), of in found.items()
    ]
    tables = (
        markdown(["layer 0, 1, ...", *names], by_layer),
        markdown(["trained less untrained, 95% interval", *(f"{model}-mini" for model in MODELS)], changes),
        markdown(["words of lower self-similarity, mean over layers", *FUNCTION_WORDS, "lowest of all"], words),
    )
    return "\n\n".join(tables) + one_run_each(MODELS)


def gains(title: str, found: Mapping[tuple[str, str], Found], part: str, key: Key, layer: Layer) -> list[str]:
    """Each model's value less its untrained twin's, on the same resamples of the text."""
    cells = []
    for model in MODELS:
        trained, untrained = (found[model, weights][part] for weights in WEIGHTS)
        at, against = ([layer(results.by_key[key].value)] for results in (trained, untrained))
        value, low, high = map(number, np.ravel(trained.difference(untrained, key, layers=at, others=against)))
        cells.append(f"{value} [{low}, {high}]")
    return [title, *cells]


def standing(results: Results) -> Iterator[str]:
    """The share of words of lower self-similarity than each function word, and the five lowest."""
    table = results.tables["self_similarity"]
    words, means = np.array(table["word"]), np.asarray(table["mean"], float)
    for word in FUNCTION_WORDS:
        yield f"{(means < means[words == word][0]).mean():.0%}" if word in words else "-"
    yield ", ".join(words[np.argsort(means, kind="stable")[:5]])


def number(value: float) -> str:
    """Three figures: ".670", "1", "9.72", "36.4"."""
    if abs(value) > 1.0005:
        return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"
    text = without_leading_zero(value)
    return "1" if text == "1.000" else text


if __name__ == "__main__":
    sts = str(Path(os.environ["STS"]).resolve())
    write_marked(CARD, MARK, section({(m, w): measured(m, w, sts) for m in MODELS for w in WEIGHTS}))
