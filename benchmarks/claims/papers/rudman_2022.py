"""Planted scores of clouds and of layers."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.rudman_2022 import CLOSE, WIDTHS

from benchmarks.claims.planted import Truth, world
from benchmarks.claims.worlds import World


def clouds(null: Truth, true: Truth, false: Truth) -> World:
    return world(null, true, false, models=tuple(WIDTHS), layers=1, noise=0.002, samples=12)


def close(name: str) -> World:
    return clouds({name: CLOSE}, {name: 0.0}, {name: 0.1})


UNEVEN, CENTRED, SHIFTED = "isoscore of uneven", "cosine of uneven", "cosine of shifted"
WORLDS = {
    "cosine-is-no-isotropy": clouds(
        {SHIFTED: NONE, CENTRED: 0.0, UNEVEN: 0.4},
        {SHIFTED: 0.9, CENTRED: 0.0, UNEVEN: 0.4},
        {SHIFTED: 0.0, CENTRED: 0.0, UNEVEN: 0.4},
    ),
    "mean-agnostic": close("shifted"),
    "scale-agnostic": close("scaled"),
    "rotation-agnostic": close("rotated"),
    "counts-dimensions": close("half"),
    "mean-makes-the-cosine": world(
        {"isoscore": CLOSE, "cosine": NONE}, {"isoscore": 0.0, "cosine": 0.5}, {"isoscore": 0.1, "cosine": 0.5},
        noise=0.003,
    ),
}  # fmt: skip
