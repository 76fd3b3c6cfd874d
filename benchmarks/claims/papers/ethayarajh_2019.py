"""Planted runs of the three models, whose truth lies on a claim's bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.papers.ethayarajh_2019.polysemy import WordProperties

from benchmarks.claims.worlds import World
from ctxexp.results import Estimates, Key

SE, WORDS = 0.01, 3500
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
Plan = Callable[[int, np.random.Generator], np.ndarray]
"""From a number of layers and a generator to the truth."""

MEAN = ["anisotropy/mean_cosine"]
SIMILARITIES = [f"self_similarity/{s}" for s in ("raw", "adjusted", "share_of_room")]
VARIANCES = [
    f"max_explainable_variance{d}/{s}"
    for d in ("", "_centred", "_released")
    for s in ("raw", "adjusted", "size_matched_adjusted")
]


def walk(n: int, rng: np.random.Generator) -> np.ndarray:
    return 0.5 + 0.05 * rng.normal(size=n).cumsum()


def at(value: float) -> Plan:
    """A curve whose truth is one value in every layer."""
    return lambda n, rng: np.full(n, value)


def line(first: float, last: float) -> Plan:
    """A curve that goes from one value to another in equal steps."""
    return lambda n, rng: np.linspace(first, last, n)


FALLS, RISES = line(0.8, 0.1), line(0.1, 0.8)
PLANS: dict[str, tuple[list[str], Plan, Plan, Plan]] = {
    "anisotropic": (MEAN, at(0.05), at(0.4), at(0.0)),
    "same-word-closer": (SIMILARITIES, at(0.0), at(0.3), at(-0.2)),
    "self-similarity-falls": (SIMILARITIES, walk, FALLS, RISES),
    "upper-more-contextual": (SIMILARITIES, at(0.3), FALLS, RISES),
    "variance-below-5": (VARIANCES, at(0.05), at(0.0), at(0.3)),
}
"""By claim: the names of a curve whose truth lies on its bound in all layers and models, where a verdict of either kind
is a false one; that as it says; that as it denies. The same under all readings."""


def source(names: list[str], plan: Plan, rng: np.random.Generator, se: float = SE) -> Family:
    """Runs of the three models; estimates err by `se`, independently by layer."""
    members = []
    for model, n in LAYERS.items():
        truth = plan(n, rng)
        value = truth + se * rng.normal(size=n)
        span = Estimates(value, value - 1.96 * se, value + 1.96 * se)
        members.append(Evidence(model, {Key.of(*name.split("/")): span for name in names}))
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


WORLDS = {
    claim: World(
        null=partial(source, names, null),
        true=partial(source, names, true, se=SE / 4),
        false=partial(source, names, false, se=SE / 4),
    )
    for claim, (names, null, true, false) in PLANS.items()
} | {
    "variety-not-polysemy": World(
        null=partial(words, 0.0, 0.0), true=partial(words, 0.0, 1.0), false=partial(words, 1.0, 0.0)
    )
}
