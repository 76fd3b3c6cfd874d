"""Planted self-similarities of single words in groups; a word's layers go together."""

from __future__ import annotations

from functools import partial

import numpy as np
from ctxexp_papers.papers.gari_soler_2021 import MIXED, MONO, OTHERS, SenseGroups

from benchmarks.claims.worlds import World

WORDS, LAYERS = 150, 13
SPREAD, STEP = 0.05, 0.04  # of words, between groups


def source(step: float, rng: np.random.Generator) -> SenseGroups:
    """Words of every model, pool and group, monosemous ones higher by a step in all layers."""
    values = {}
    for model in OTHERS:
        for pool in ("", *MIXED):
            own = rng.normal(0, SPREAD, (WORDS, 1)) + rng.normal(0, SPREAD / 2, (WORDS, LAYERS))
            values[model, pool, pool or MONO] = 0.6 + own + (0.0 if pool else step)
    return SenseGroups("protocol", "", values=values)


WORLDS = {"other-languages": World(null=partial(source, 0.0), true=partial(source, STEP), false=partial(source, -STEP))}
