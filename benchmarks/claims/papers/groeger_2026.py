"""Planted similarities of noise by size, and of pairs of models."""

from __future__ import annotations

from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.papers.groeger_2026 import DEPTHS, GLOBAL, LOCAL, NOISE, WIDTHS

from benchmarks.claims.planted import Truth, world
from benchmarks.claims.worlds import World


def sizes(step: float, *, level: float = 0.0, which: str = "") -> Truth:
    """The same curve by width and by depth, as far as both go."""
    names = zip(WIDTHS, DEPTHS, strict=True)
    return {
        (f"width {width}{which}", f"depth {depth}{which}"): level + step * i for i, (width, depth) in enumerate(names)
    }


def noise(null: Truth, true: Truth, false: Truth) -> World:
    plain = sizes(0.1)  # beside the calibrated values, by which a source is known
    worlds = [{**plain, **truth} for truth in (null, true, false)]
    return world(*worlds, models=(NOISE,), layers=1, samples=16)


CALIBRATED = ", calibrated"
PAIRS = {"models": ("gpt2-bert", "gpt2-elmo"), "layers": 1}
WORLDS = {
    "scale-inflates": noise(sizes(0.0), sizes(0.1), sizes(-0.1)),
    "calibration-removes-it": noise(
        sizes(0.0, level=NONE, which=CALIBRATED), sizes(0.0, which=CALIBRATED), sizes(0.2, which=CALIBRATED)
    ),
    "global-disappears": world({GLOBAL: NONE}, {GLOBAL: 0.0}, {GLOBAL: 0.4}, **PAIRS),
    "local-remains": world({LOCAL: 0.0}, {LOCAL: 0.2}, {LOCAL: -0.2}, **PAIRS),
}
