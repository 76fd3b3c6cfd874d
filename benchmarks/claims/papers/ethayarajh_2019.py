"""Planted runs of the three models, whose truth lies on a claim's bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.papers.ethayarajh_2019.polysemy import WordProperties
from ctxexp_papers.papers.ethayarajh_2019.words import ELMO_LOWEST

from benchmarks.claims.worlds import World
from ctxexp.results.values import Estimates, Key

SE = 0.01
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
Curves = dict[str, np.ndarray]  # by "measure/statistic"

SIMILARITIES = [f"self_similarity/{s}" for s in ("raw", "adjusted", "corrected")]
SENTENCES = [f"intra_sentence_similarity/{p}{s}" for p in ("", "size_matched_") for s in ("adjusted", "corrected")]
VARIANCES = [
    f"max_explainable_variance{d}/{s}"
    for d in ("", "_centred", "_released")
    for s in ("raw", "adjusted", "size_matched_adjusted")
]


def walk(n: int, rng: np.random.Generator) -> np.ndarray:
    return 0.5 + 0.05 * rng.normal(size=n).cumsum()


def at(value: float | Mapping[str, float], names: list[str]) -> Callable[[str, int, np.random.Generator], Curves]:
    """Curves whose truth is one value (by model) in every layer: on the bound."""
    return lambda model, n, rng: dict.fromkeys(names, np.full(n, value if isinstance(value, float) else value[model]))


def one_walk(names: list[str]) -> Callable[[str, int, np.random.Generator], Curves]:
    return lambda model, n, rng: dict.fromkeys(names, walk(n, rng))


def independent(model: str, n: int, rng: np.random.Generator) -> Curves:
    """Mean cosine and raw self-similarity as walks that know nothing of each other."""
    a, raw = walk(n, rng), walk(n, rng)
    corrected = (raw - a) / (1 - a)
    return {"anisotropy/mean_cosine": a} | dict(zip(SIMILARITIES, (raw, raw - a, corrected), strict=True))


MEAN = ["anisotropy/mean_cosine"]
ON_THE_BOUND: dict[str, Callable[[str, int, np.random.Generator], Curves]] = {
    "anisotropic": at(0.05, MEAN),
    "elmo-input-isotropic": at(0.05, MEAN),
    "anisotropy-rises": one_walk(MEAN),
    "hidden-more-anisotropic": at(0.3, MEAN),
    "same-word-closer": at(0.0, SIMILARITIES),
    "self-similarity-falls": one_walk(SIMILARITIES),
    "always-more-anisotropic": independent,
    "gpt2-most-contextual": at(0.3, SIMILARITIES),
    "gpt2-last-layer": at(0.05, SIMILARITIES),
    "elmo-sentence-rises": one_walk(SENTENCES),
    "bert-sentence-falls": one_walk(SENTENCES),
    "bert-sentence-above": at(0.0, SENTENCES),
    "gpt2-sentence-none": at(0.05, SENTENCES),
    "gpt2-sentence-input": at(0.1, SENTENCES),
    "sentence-above-line": at(0.2, SENTENCES),
    "bert-last-below-elmo-2": at(0.3, SIMILARITIES),
    "bert-last-close-to-elmo-2": at({"bert": 0.35, "elmo": 0.30, "gpt2": 0.3}, SIMILARITIES),
    "elmo-2-below-bert-2": at(0.3, SIMILARITIES),
    "variance-below-5": at(0.05, VARIANCES),
    "variance-raw": at({"bert": 0.05, "elmo": 0.05, "gpt2": 0.35}, VARIANCES),
}
"""By claim: curves whose truth lies on its bound in all layers and models, the same under all readings, where a verdict
of either kind is a false one."""


def source(claim_id: str, rng: np.random.Generator) -> Family:
    """Runs of the three models; estimates err by SE, independently by layer."""
    members = []
    for model, n in LAYERS.items():
        held = {}
        noise: dict[int, np.ndarray] = {}
        for name, truth in ON_THE_BOUND[claim_id](model, n, rng).items():
            error = noise.setdefault(id(truth), SE * rng.normal(size=n))  # one curve under all readings
            value = truth + error
            held[Key.of(*name.split("/"))] = Estimates(value, value - 1.96 * SE, value + 1.96 * SE)
        members.append(Evidence(model, held))
    return Family("protocol", "", members=members)


def words(of_senses: float, of_variety: float, rng: np.random.Generator) -> WordProperties:
    """Words of the three models, whose self-similarity falls by so much with a property's standard deviation; both
    properties go with frequency, and so does self-similarity."""
    tables = {}
    for model in LAYERS:
        frequency, own_senses, own_variety, noise = rng.normal(size=(4, WORDS))
        senses, variety = frequency + own_senses, frequency + own_variety
        similarity = -frequency - of_senses * own_senses - of_variety * own_variety + noise
        columns = {"self_similarity": similarity, "senses": np.floor(np.exp(senses / 2)), "variety": variety}
        tables[model] = pd.DataFrame(columns | {"contexts": np.ceil(5 * np.exp(frequency))})
    return WordProperties("protocol", "", words=tables, resamples=200)


def lowest_five(lower: int, rng: np.random.Generator) -> Family:
    """ELMo's words, of which about so many, of 1,000, lie below the highest of the five."""
    is_lower = rng.random(1000) < lower / 1000
    values = np.concatenate([np.full(5, 0.3), np.where(is_lower, 0.2, 0.6)])
    names = [*ELMO_LOWEST, *(f"word{i}" for i in range(1000))]
    table = pd.DataFrame({"word": names, "raw_0": values, "raw_1": values})
    return Family("protocol", "", members=[Evidence("elmo", {}, tables={"self_similarity": table})])


WORDS = 3500
WORLDS = {claim: World(null=partial(source, claim)) for claim in ON_THE_BOUND} | {
    "variety-not-polysemy": World(
        null=partial(words, 0.0, 0.0), true=partial(words, 0.0, 1.0), false=partial(words, 1.0, 0.0)
    ),
    "elmo-lowest-words": World(
        null=partial(lowest_five, 10), true=partial(lowest_five, 0), false=partial(lowest_five, 100)
    ),
}
"""Of the other claims on runs, worlds in which they hold, and fail, are planted in the plugin's tests."""
