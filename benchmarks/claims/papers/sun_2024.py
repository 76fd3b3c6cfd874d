"""Planted sizes, numbers and places of massive activations."""

from __future__ import annotations

from ctxexp_papers.papers.sun_2024 import CONSTANT, FEW, MOST, PREFIXES

from benchmarks.claims.planted import world

RATIO = "log ratio"
IN_FRONT = tuple(f"{RATIO}, {name}" for name in PREFIXES)
WORLDS = {
    "exist": world({RATIO: 3.0}, {RATIO: 3.8}, {RATIO: 1.5}),
    "leave-the-words": world({RATIO: 3.0, IN_FRONT: 3.0}, {RATIO: 3.8, IN_FRONT: 1.0}, {RATIO: 3.8, IN_FRONT: 3.8}),
    "few": world({"count": FEW}, {"count": 3.0}, {"count": 50.0}, noise=0.5),
    "at-the-start": world({"first": MOST}, {"first": 1.0}, {"first": 0.2}),
    "constant": world({"variation": CONSTANT}, {"variation": 0.05}, {"variation": 0.8}),
    "learned": world(
        {RATIO: 3.5}, {RATIO: 3.5}, {RATIO: 1.0}, twin={RATIO: 3.5}, true_twin={RATIO: 1.0}, false_twin={RATIO: 3.0}
    ),
}
