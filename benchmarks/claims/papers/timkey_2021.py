"""Planted shares of dimensions, and gains and losses by standardising."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.timkey_2021 import DOMINATE, EVEN, READINGS, WIDE, WIDTHS

from benchmarks.claims.planted import world


def drawn(**values: float) -> dict[str, float]:
    """The same under both variants."""
    return {f"{name.replace('_', ' ')}, {variant}": value for name, value in values.items() for variant in (EVEN, WIDE)}


SHARES = tuple(f"share, {name}" for name in READINGS)
DRAWN = {"models": tuple(WIDTHS), "layers": 1, "samples": 12}
WORLDS = {
    "standardising-corrects": world(
        drawn(rogue_share=DOMINATE, gain=NONE, beyond_scaling=NONE),
        drawn(rogue_share=0.9, gain=0.4, beyond_scaling=0.3),
        drawn(rogue_share=0.9, gain=0.0, beyond_scaling=0.0),
        **DRAWN,
    ),
    "standardising-reveals": world(drawn(lost=NONE), drawn(lost=0.0), drawn(lost=0.3), **DRAWN),
    "few-dominate": world({SHARES: DOMINATE}, {SHARES: 0.8}, {SHARES: 0.1}),
}
