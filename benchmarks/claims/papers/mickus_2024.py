"""Planted scores of clusters, and what whitening costs words."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.mickus_2024 import AS_MANY, EVEN, FEWER

from benchmarks.claims.planted import Truth, world
from benchmarks.claims.worlds import World


def clusters(null: Truth, true: Truth, false: Truth) -> World:
    return world(null, true, false, models=(FEWER, AS_MANY), layers=1, samples=12)


COST = "cost of whitening"
WORLDS = {
    "isotropy-excludes-clusters": clusters(
        {"isoscore": EVEN, "silhouette": 0.8},
        {"isoscore": 0.2, "silhouette": 0.8},
        {"isoscore": 1.0, "silhouette": 0.8},
    ),
    "isotropy-costs-clusters": clusters({COST: NONE}, {COST: 0.4}, {COST: 0.0}),
    "words-lose": world({"cost": 0.0}, {"cost": 0.1}, {"cost": -0.1}),
}
