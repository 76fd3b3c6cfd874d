"""Planted word vectors' values on the claims' bounds, beyond them and short of them."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.claims.pairs import WORDS
from ctxexp_papers.papers.mu_2018 import SCALES

from benchmarks.claims.planted import world

FILES = {"models": ("glove",), "layers": 1}
GAIN = tuple(f"gain, {name}" for name in SCALES)
OVER = tuple(f"gain over random, {name}" for name in SCALES)
WORLDS = {
    "nonzero-mean": world({"mean": NONE}, {"mean": 0.3}, {"mean": 0.0}, **FILES),
    "few-directions": world({"top": NONE}, {"top": 0.2}, {"top": 0.0}, **FILES),
    "isotropy-rises": world({GAIN: 0.0}, {GAIN: 0.5}, {GAIN: -0.5}, **FILES),
    "similarity-gains": world({WORDS: 0.0}, {WORDS: 0.1}, {WORDS: -0.1}, **FILES),
    "top-directions-matter": world({OVER: 0.0}, {OVER: 0.5}, {OVER: -0.5}, **FILES),
}
