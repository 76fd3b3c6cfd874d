"""Planted rank correlations of rarity."""

from __future__ import annotations

from benchmarks.claims.planted import world

WORLDS = {
    claim: world({name: 0.0}, {name: 0.3}, {name: -0.3}, noise=0.07)
    for claim, name in (("frequent-near-origin", "norm"), ("rare-lie-sparse", "distance"), ("sparse-by-angle", "angle"))
}
