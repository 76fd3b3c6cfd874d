"""Planted sizes and numbers of massive activations."""

from __future__ import annotations

from ctxexp_papers.papers.sun_2024 import CONSTANT, FEW

from benchmarks.claims.planted import world

RATIO = "log ratio"
WORLDS = {
    "exist": world({RATIO: 3.0}, {RATIO: 3.8}, {RATIO: 1.5}),
    "few": world({"count": FEW}, {"count": 3.0}, {"count": 50.0}, noise=0.5),
    "constant": world({"variation": CONSTANT}, {"variation": 0.05}, {"variation": 0.8}),
}
