"""Planted cones."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE

from benchmarks.claims.planted import world

WORLDS = {"cone": world({"table": NONE}, {"table": 0.4}, {"table": 0.0}, layers=1)}
