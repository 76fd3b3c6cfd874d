"""Planted shares of the first component by layer: flat, or a bell."""

from __future__ import annotations

from functools import partial

import numpy as np
from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.claims.samples import Samples
from ctxexp_papers.papers.razzhigaev_2024_shape import ALL, LATER

from benchmarks.claims.planted import LAYERS, Truth, draw
from benchmarks.claims.worlds import World

DEPTH = 13


def bell(height: float, *, rest: float = 0.0) -> Truth:
    """A middle layer that exceeds both ends by so much; the others by `rest`."""
    curve = np.full(LAYERS, 0.3 + rest)
    curve[[0, -1]] = 0.3
    curve[LAYERS // 2] = 0.3 + height
    return {(ALL, LATER): curve}


def on_the_line(height: float, model: str, rng: np.random.Generator) -> Samples:
    """All middle layers of this height, or but one, with the rest far below."""
    return draw(bell(height, rest=height if rng.random() < 0.5 else height - 0.2), rng, models=(model,))


def planted(model: str, null: float, true: float, false: float) -> World:
    return World(
        null=partial(on_the_line, null, model),
        true=partial(draw, bell(true, rest=min(true, 0.0)), models=(model,)),
        false=partial(draw, bell(false, rest=min(false, 0.0)), models=(model,)),
    )


def walk(rng: np.random.Generator) -> Samples:
    """Shares that walk over layers by steps that go alike: many have some bell."""
    steps = rng.normal(size=DEPTH)
    for i in range(1, DEPTH):
        steps[i] += 0.8 * steps[i - 1]
    return shaped(0.3 + 0.02 * steps.cumsum(), rng)


def shaped(curve: np.ndarray, rng: np.random.Generator) -> Samples:
    return draw({(ALL, LATER): curve}, rng, models=("smollm2",), layers=DEPTH)


BELL = np.sin(np.linspace(0, np.pi, DEPTH))
WORLDS = {
    "decoders-bell": World(null=walk, true=partial(shaped, BELL), false=partial(shaped, -BELL)),
    "encoders-flat": planted("bert", NONE, -0.1, 0.3),
}
