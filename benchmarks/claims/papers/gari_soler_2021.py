"""Planted self-similarities of single words in groups; a word's layers go together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from ctxexp_papers.papers.gari_soler_2021 import BANDS, ENGLISH, MONO, OTHERS, POOLS, SenseGroups

from benchmarks.claims.worlds import World

WORDS, LAYERS = 150, 13
SPREAD, STEP = 0.05, 0.04  # of words, between groups


def source(means: Mapping[str, float], rng: np.random.Generator) -> SenseGroups:
    """Words of every model, pool and group, whose truth is that group's mean in all layers."""
    values = {}
    for model in (*ENGLISH, *OTHERS):
        for pool in ("", *POOLS):
            for group in (MONO,) if not pool else (pool, *BANDS):
                own = rng.normal(0, SPREAD, (WORDS, 1)) + rng.normal(0, SPREAD / 2, (WORDS, LAYERS))
                values[model, pool, group] = 0.6 + means.get(group, 0.0) + own
    return SenseGroups("protocol", "", values=values)


EQUAL = partial(source, {})
ABOVE, BELOW = partial(source, {MONO: STEP}), partial(source, {MONO: -STEP})
WORLDS = dict.fromkeys(
    ("mono-above-poly", "mono-above-one-sense", "other-languages"), World(null=EQUAL, true=ABOVE, false=BELOW)
) | {
    "bands-in-order": World(
        null=EQUAL, true=partial(source, {"low": STEP, "high": -STEP}), false=partial(source, {"low": -STEP})
    )
}
