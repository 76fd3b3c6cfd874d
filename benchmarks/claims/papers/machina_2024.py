"""Planted mean cosines before the final norm and after it."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE

from benchmarks.claims.planted import world

WORLDS = {
    "isotropic-exists": world({"cosine": NONE}, {"cosine": 0.0}, {"cosine": 0.5}),
    "final-norm": world({"cosine": 0.3, "before": 0.3}, {"cosine": 0.1, "before": 0.5}, {"cosine": 0.5, "before": 0.1}),
}
