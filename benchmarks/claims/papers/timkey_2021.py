"""Planted shares of dimensions, and gains and losses by standardising."""

from __future__ import annotations

from collections.abc import Callable

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.timkey_2021 import DOMINATE, EVEN, READINGS, WIDE, WIDTHS

from benchmarks.claims.planted import world


def names(statistic: str) -> tuple[str, ...]:
    return tuple(f"{statistic}, {name}" for name in READINGS)


def of(statistic: str, null: float, true: float, false: float) -> Callable[..., object]:
    return world({names(statistic): null}, {names(statistic): true}, {names(statistic): false})


def drawn(**values: float) -> dict[str, float]:
    """The same under both variants."""
    return {f"{name.replace('_', ' ')}, {variant}": value for name, value in values.items() for variant in (EVEN, WIDE)}


DRAWN = {"models": tuple(WIDTHS), "layers": 1, "samples": 12}
WORLDS = {
    "standardising-corrects": world(
        drawn(rogue_share=DOMINATE, gain=NONE, beyond_scaling=NONE),
        drawn(rogue_share=0.9, gain=0.4, beyond_scaling=0.3),
        drawn(rogue_share=0.9, gain=0.0, beyond_scaling=0.0),
        **DRAWN,
    ),
    "standardising-reveals": world(drawn(lost=NONE), drawn(lost=0.0), drawn(lost=0.3), **DRAWN),
    "few-dominate": of("share", DOMINATE, 0.8, 0.1),
    "axes-not-directions": of("excess", NONE, 0.5, 0.0),
    "similarity-hangs-on-them": of("changed", NONE, 0.5, 0.0),
}
