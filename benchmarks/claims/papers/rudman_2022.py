"""Planted scores of clouds."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.rudman_2022 import WIDTHS

from benchmarks.claims.planted import world

UNEVEN, CENTRED, SHIFTED = "isoscore of uneven", "cosine of uneven", "cosine of shifted"
WORLDS = {
    "cosine-is-no-isotropy": world(
        {SHIFTED: NONE, CENTRED: 0.0, UNEVEN: 0.4},
        {SHIFTED: 0.9, CENTRED: 0.0, UNEVEN: 0.4},
        {SHIFTED: 0.0, CENTRED: 0.0, UNEVEN: 0.4},
        models=tuple(WIDTHS), layers=1, noise=0.002, samples=12,
    ),
}  # fmt: skip
