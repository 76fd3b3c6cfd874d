"""Planted similarities of pairs of models, and shares that PMI explains."""

from __future__ import annotations

from ctxexp_papers.papers.huh_2024 import BINARY, ENDLESS, EVENTS, MEASURES

from benchmarks.claims.planted import optimum, world

PAIRS = {"models": ("gpt2-bert", "gpt2-elmo"), "layers": 1}
WORLDS = {
    "kernel-is-pmi": optimum(("kernel", "beyond joint", "beyond narrow"), (ENDLESS, BINARY), tuple(EVENTS)),
    "models-agree": world({MEASURES: 0.0}, {MEASURES: 0.2}, {MEASURES: -0.2}, **PAIRS),
}  # fmt: skip
