"""Planted shares of dimensions."""

from __future__ import annotations

from collections.abc import Callable

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.timkey_2021 import DOMINATE, READINGS

from benchmarks.claims.planted import world


def names(statistic: str) -> tuple[str, ...]:
    return tuple(f"{statistic}, {name}" for name in READINGS)


def of(statistic: str, null: float, true: float, false: float) -> Callable[..., object]:
    return world({names(statistic): null}, {names(statistic): true}, {names(statistic): false})


WORLDS = {
    "few-dominate": of("share", DOMINATE, 0.8, 0.1),
    "axes-not-directions": of("excess", NONE, 0.5, 0.0),
    "similarity-hangs-on-them": of("changed", NONE, 0.5, 0.0),
}
