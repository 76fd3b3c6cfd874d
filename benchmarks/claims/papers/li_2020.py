"""Planted rank correlations of rarity, and shares that the link explains."""

from __future__ import annotations

from ctxexp_papers.papers.li_2020.optimum import FREE, TIED, WORDS

from benchmarks.claims.planted import optimum, world

PAIRS = {"models": ("bert",), "layers": 1}
WORLDS = {
    claim: world({name: 0.0}, {name: 0.3}, {name: -0.3}, noise=0.07)
    for claim, name in (("frequent-near-origin", "norm"), ("rare-lie-sparse", "distance"), ("sparse-by-angle", "angle"))
} | {
    "softmax-link": optimum(("link", "beyond log p", "beyond narrow"), (FREE, TIED), tuple(WORDS)),
    "last-two-above-last": world(
        {"last two": 0.5, "last": 0.5}, {"last two": 0.6, "last": 0.5}, {"last two": 0.4, "last": 0.5}, **PAIRS
    ),
    "flow-gains": world(
        {"flow": 0.5, "last two": 0.5}, {"flow": 0.6, "last two": 0.5}, {"flow": 0.4, "last two": 0.5}, **PAIRS
    ),
    "more-than-centring": world(
        {"flow": 0.5, "centred": 0.5}, {"flow": 0.6, "centred": 0.5}, {"flow": 0.4, "centred": 0.5}, **PAIRS
    ),
    "follows-edit-distance": world(
        {"edits": 0.3, "edits of ratings": 0.3},
        {"edits": 0.5, "edits of ratings": 0.3},
        {"edits": 0.2, "edits of ratings": 0.4},
        **PAIRS,
    ),
}
