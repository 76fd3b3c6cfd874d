"""Planted scores of linear maps between layers."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.razzhigaev_2024_linear import FITTED, HELD_OUT, LINEAR

from benchmarks.claims.planted import Truth, world
from benchmarks.claims.worlds import World

BOTH = (FITTED, HELD_OUT)
STEP = tuple(f"{name}, of the step" for name in BOTH)


def scores(layer: float, step: float = 0.5) -> Truth:
    return {BOTH: layer, STEP: step}


def of(null: Truth, true: Truth, false: Truth) -> World:
    return world(null, true, false, noise=0.005, samples=8)


WORLDS = {
    "almost-linear": of(scores(LINEAR), scores(0.99), scores(0.8)),
    "less-without-residual": of(scores(0.9, 0.9 - NONE), scores(0.9, 0.5), scores(0.9, 0.9)),
}
