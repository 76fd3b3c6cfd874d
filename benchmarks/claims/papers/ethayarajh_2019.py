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
from ctxexp.results import Estimates, Key

SE = 0.01
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
Curves = dict[str, np.ndarray]  # by "measure/statistic"
Plan = Callable[[str, int, np.random.Generator], Curves]
"""From a model, its number of layers and a generator to the truth."""

SIMILARITIES = [f"self_similarity/{s}" for s in ("raw", "adjusted", "share_of_room")]
SENTENCES = [f"intra_sentence_similarity/{p}{s}" for p in ("", "size_matched_") for s in ("adjusted", "share_of_room")]
VARIANCES = [
    f"max_explainable_variance{d}/{s}"
    for d in ("", "_centred", "_released")
    for s in ("raw", "adjusted", "size_matched_adjusted")
]


def walk(n: int, rng: np.random.Generator) -> np.ndarray:
    return 0.5 + 0.05 * rng.normal(size=n).cumsum()


def at(value: float | Mapping[str, float], names: list[str]) -> Plan:
    """Curves whose truth is one value (by model) in every layer: on the bound."""
    return lambda model, n, rng: dict.fromkeys(names, np.full(n, value if isinstance(value, float) else value[model]))


def one_walk(names: list[str]) -> Plan:
    return lambda model, n, rng: dict.fromkeys(names, walk(n, rng))


def independent(model: str, n: int, rng: np.random.Generator) -> Curves:
    """Mean cosine and raw self-similarity as walks that know nothing of each other."""
    a, raw = walk(n, rng), walk(n, rng)
    corrected = (raw - a) / (1 - a)
    return {"anisotropy/mean_cosine": a} | dict(zip(SIMILARITIES, (raw, raw - a, corrected), strict=True))


def line(first: float, last: float, names: list[str]) -> Plan:
    """Curves that go from one value to another in equal steps."""
    return lambda model, n, rng: dict.fromkeys(names, np.linspace(first, last, n))


def ends(first: float, rest: float, names: list[str]) -> Plan:
    """Curves of one value in the input layer, of another in the others."""
    return lambda model, n, rng: dict.fromkeys(names, np.append(first, np.full(n - 1, rest)))


def both(a: tuple[float, float], raw: tuple[float, float]) -> Plan:
    """Mean cosine and raw self-similarity as lines."""

    def plan(model: str, n: int, rng: np.random.Generator) -> Curves:
        x, y = np.linspace(*a, n), np.linspace(*raw, n)
        return {"anisotropy/mean_cosine": x} | dict(zip(SIMILARITIES, (y, y - x, (y - x) / (1 - x)), strict=True))

    return plan


def by_model(elmo: float, bert: float, gpt2: float) -> dict[str, float]:
    return {"elmo": elmo, "bert": bert, "gpt2": gpt2}


MEAN = ["anisotropy/mean_cosine"]
PLANS: dict[str, tuple[Plan, Plan | None, Plan | None]] = {
    "anisotropic": (at(0.05, MEAN), at(0.4, MEAN), at(0.0, MEAN)),
    "elmo-input-isotropic": (
        at(0.05, MEAN), at(by_model(0.0, 0.4, 0.4), MEAN), at(by_model(0.4, 0.4, 0.4), MEAN),
    ),
    "anisotropy-rises": (one_walk(MEAN), line(0.1, 0.8, MEAN), line(0.8, 0.1, MEAN)),
    "hidden-more-anisotropic": (at(0.3, MEAN), ends(0.1, 0.5, MEAN), ends(0.5, 0.1, MEAN)),
    "same-word-closer": (at(0.0, SIMILARITIES), at(0.3, SIMILARITIES), at(-0.2, SIMILARITIES)),
    "self-similarity-falls": (one_walk(SIMILARITIES), line(0.8, 0.1, SIMILARITIES), line(0.1, 0.8, SIMILARITIES)),
    "upper-more-contextual": (at(0.3, SIMILARITIES), line(0.8, 0.1, SIMILARITIES), line(0.1, 0.8, SIMILARITIES)),
    "always-more-anisotropic": (independent, both((0.05, 0.85), (0.95, 0.15)), both((0.05, 0.25), (0.2, 0.95))),
    "gpt2-most-contextual": (
        at(0.3, SIMILARITIES), at(by_model(0.4, 0.4, 0.1), SIMILARITIES), at(by_model(0.1, 0.1, 0.4), SIMILARITIES),
    ),
    "gpt2-last-layer": (at(0.05, SIMILARITIES), at(0.0, SIMILARITIES), at(0.4, SIMILARITIES)),
    "elmo-sentence-rises": (one_walk(SENTENCES), None, None),  # three layers decide no trend
    "bert-sentence-falls": (one_walk(SENTENCES), line(0.8, 0.1, SENTENCES), line(0.1, 0.8, SENTENCES)),
    "bert-sentence-above": (at(0.0, SENTENCES), at(0.3, SENTENCES), at(-0.3, SENTENCES)),
    "gpt2-sentence-none": (at(0.05, SENTENCES), at(0.0, SENTENCES), at(0.4, SENTENCES)),
    "gpt2-sentence-input": (at(0.1, SENTENCES), ends(0.5, 0.1, SENTENCES), ends(0.1, 0.5, SENTENCES)),
    "sentence-above-line": (at(0.2, SENTENCES), at(0.5, SENTENCES), at(0.0, SENTENCES)),
    "bert-last-below-elmo-2": (
        at(0.3, SIMILARITIES), at(by_model(0.5, 0.2, 0.3), SIMILARITIES), at(by_model(0.2, 0.5, 0.3), SIMILARITIES),
    ),
    "bert-last-close-to-elmo-2": (
        at(by_model(0.30, 0.35, 0.3), SIMILARITIES), at(0.3, SIMILARITIES), at(by_model(0.2, 0.5, 0.3), SIMILARITIES),
    ),
    "elmo-2-below-bert-2": (
        at(0.3, SIMILARITIES), at(by_model(0.2, 0.5, 0.3), SIMILARITIES), at(by_model(0.5, 0.2, 0.3), SIMILARITIES),
    ),
    "variance-below-5": (at(0.05, VARIANCES), at(0.0, VARIANCES), at(0.3, VARIANCES)),
    "variance-raw": (
        at(by_model(0.05, 0.05, 0.35), VARIANCES), at(by_model(0.01, 0.01, 0.3), VARIANCES), at(0.6, VARIANCES),
    ),
}  # fmt: skip
"""By claim: curves whose truth lies on its bound in all layers and models, where a verdict of either kind is a false
one; curves as it says; curves as it denies. The same under all readings."""


def source(plan: Plan, rng: np.random.Generator, se: float = SE) -> Family:
    """Runs of the three models; estimates err by `se`, independently by layer."""
    members = []
    for model, n in LAYERS.items():
        held = {}
        noise: dict[int, np.ndarray] = {}
        for name, truth in plan(model, n, rng).items():
            error = noise.setdefault(id(truth), se * rng.normal(size=n))  # one curve under all readings
            value = truth + error
            held[Key.of(*name.split("/"))] = Estimates(value, value - 1.96 * se, value + 1.96 * se)
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


def world(null: Plan, true: Plan | None, false: Plan | None) -> World:
    return World(
        null=partial(source, null),
        true=true and partial(source, true, se=SE / 4),
        false=false and partial(source, false, se=SE / 4),
    )


WORLDS = {claim: world(*plans) for claim, plans in PLANS.items()} | {
    "variety-not-polysemy": World(
        null=partial(words, 0.0, 0.0), true=partial(words, 0.0, 1.0), false=partial(words, 1.0, 0.0)
    ),
    "elmo-lowest-words": World(
        null=partial(lowest_five, 10), true=partial(lowest_five, 0), false=partial(lowest_five, 100)
    ),
}
"""Of the claims on single words and on static vectors, worlds are planted in the plugin's tests."""
