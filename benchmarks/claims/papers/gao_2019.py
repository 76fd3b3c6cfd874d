"""Instances of the theorems, and planted cones."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.gao_2019 import WIDTHS

from benchmarks.claims.planted import instances, world

TABLE, LAST = {"layers": 1}, {"layers": 2}
WORLDS = {
    "theorem-1": instances("theorem", tuple(WIDTHS)),
    "layer-norm": instances("normed", tuple(WIDTHS)),
    "bias-does-it": instances("without", tuple(WIDTHS)),
    "cone": world({"table": NONE}, {"table": 0.4}, {"table": 0.0}, **TABLE),
    "cone-is-learned": world(
        {"table": 0.4}, {"table": 0.4}, {"table": 0.4},
        twin={"table": 0.4}, true_twin={"table": 0.0}, false_twin={"table": 0.8}, **TABLE,
    ),
    "hull-misses": world({"margin": 0.0}, {"margin": 0.3}, {"margin": -0.3}, **LAST),
}  # fmt: skip
