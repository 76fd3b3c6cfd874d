"""Instances of the theorems, and planted cones."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.gao_2019.instances import BIGRAMS, WIDTHS

from benchmarks.claims.planted import instances, world

TABLE, LAST = {"layers": 1}, {"layers": 2}
WORLDS = {
    "theorem-1": instances("theorem", tuple(WIDTHS)),
    "layer-norm": instances("normed", tuple(WIDTHS)),
    "bias-does-it": instances("without", tuple(WIDTHS)),
    "theorem-3": instances("rare", tuple(WIDTHS)),
    "regulariser-lowers-cosine": world(
        {"plain": 0.2, "regularised": 0.2 - NONE},
        {"plain": 0.4, "regularised": 0.0},
        {"plain": 0.2, "regularised": 0.2},
        models=(BIGRAMS,), **TABLE,
    ),
    "cone": world({"table": NONE}, {"table": 0.4}, {"table": 0.0}, **TABLE),
    "cone-is-learned": world(
        {"table": 0.4}, {"table": 0.4}, {"table": 0.4},
        twin={"table": 0.4}, true_twin={"table": 0.0}, false_twin={"table": 0.8}, **TABLE,
    ),
    "hull-misses": world({"margin": 0.0}, {"margin": 0.3}, {"margin": -0.3}, **LAST),
}  # fmt: skip
