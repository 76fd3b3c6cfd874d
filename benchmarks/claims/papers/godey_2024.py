"""Planted mean cosines of networks with their untrained twins, and of untrained blocks by drift."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.godey_2024 import BLOCK, DRIFTS, READINGS

from benchmarks.claims.planted import Truth, world
from benchmarks.claims.worlds import World

COSINE = tuple(READINGS.values())


def curve(name: str, rise: float) -> Truth:
    return {f"{name} {times:g}": 0.2 + rise * i for i, times in enumerate(DRIFTS)}


def block(name: str) -> World:
    return world(curve(name, 0.0), curve(name, 0.2), curve(name, -0.2), models=(BLOCK,), layers=1, samples=8)


WORLDS = {
    "inherent": world({COSINE: NONE}, {COSINE: 0.4}, {COSINE: 0.0}),
    "untrained-too": world(
        {COSINE: 0.4},
        {COSINE: 0.4},
        {COSINE: 0.4},
        twin={COSINE: NONE},
        true_twin={COSINE: 0.4},
        false_twin={COSINE: 0.0},
    ),
    "training-adds": world(
        {COSINE: 0.4},
        {COSINE: 0.4},
        {COSINE: 0.4},
        twin={COSINE: 0.4},
        true_twin={COSINE: 0.1},
        false_twin={COSINE: 0.7},
    ),
    "drift-makes-it": block("cosine"),
    "drift-sharpens": block("sharpness"),
}
