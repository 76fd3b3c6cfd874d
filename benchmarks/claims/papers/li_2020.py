"""Planted rank correlations, and shares that the link explains."""

from __future__ import annotations

from ctxexp_papers.papers.li_2020 import FREE, TIED, WORDS

from benchmarks.claims.planted import optimum, world

WORLDS = {
    "softmax-link": optimum(("link", "beyond log p", "beyond narrow"), (FREE, TIED), tuple(WORDS)),
    "flow-gains": world(
        {"flow": 0.5, "last two": 0.5},
        {"flow": 0.6, "last two": 0.5},
        {"flow": 0.4, "last two": 0.5},
        models=("bert",),
        layers=1,
    ),
}
