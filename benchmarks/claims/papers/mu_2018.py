"""Planted word vectors' values on the claims' bounds, beyond them and short of them."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE

from benchmarks.claims.planted import world

FILES = {"models": ("glove",), "layers": 1}
WORLDS = {
    "nonzero-mean": world({"mean": NONE}, {"mean": 0.3}, {"mean": 0.0}, **FILES),
    "few-directions": world({"top": NONE}, {"top": 0.2}, {"top": 0.0}, **FILES),
}
