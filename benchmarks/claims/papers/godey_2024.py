"""Planted mean cosines of networks."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.godey_2024 import READINGS

from benchmarks.claims.planted import world

COSINE = tuple(READINGS.values())
WORLDS = {"inherent": world({COSINE: NONE}, {COSINE: 0.4}, {COSINE: 0.0})}
