"""Instances of the theorem, planted entropies over depth: walks, valleys, hills."""

from __future__ import annotations

from functools import partial

import numpy as np
from ctxexp_papers.claims.samples import Samples
from ctxexp_papers.papers.queipo_2025 import SHAPES

from benchmarks.claims.planted import draw, instances
from benchmarks.claims.worlds import World

LAYERS = 13


def walk(rng: np.random.Generator) -> Samples:
    """Both models with an entropy that walks over layers, by steps that go alike: it knows nothing of the middle."""
    steps = rng.normal(size=LAYERS)
    for i in range(1, LAYERS):
        steps[i] += 0.8 * steps[i - 1]
    return planted(0.05 * steps.cumsum(), rng)


def planted(curve: np.ndarray, rng: np.random.Generator) -> Samples:
    return draw({"entropy": curve}, rng, models=("smollm2",), layers=LAYERS)


VALLEY = 0.9 - 0.6 * np.sin(np.linspace(0, np.pi, LAYERS))
WORLDS = {
    "one-direction": instances("share", tuple(SHAPES)),
    "entropy-bound": instances("entropy", tuple(SHAPES)),
    "valley": World(null=walk, true=partial(planted, VALLEY), false=partial(planted, -VALLEY)),
}
