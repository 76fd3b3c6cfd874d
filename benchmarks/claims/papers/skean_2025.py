"""Planted scores of 32 tasks by layer: a task's level, a walk over layers of its own, and their truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from ctxexp_papers.papers.skean_2025 import MODELS, SUBSETS, TASKS, LayerScores

from benchmarks.claims.worlds import Draw, World

LAYERS, NOISE = 13, 2.0  # points
RESAMPLES = 1000
MIDDLE, LAST = LAYERS // 2, LAYERS - 1
FLAT = np.zeros(LAYERS)


def peak(height: float, at: int, *, rest: float = 0.0) -> np.ndarray:
    """The truth of a model of which one layer exceeds the rest."""
    truth = np.full(LAYERS, rest)
    truth[at] = height
    return truth


def source(truths: Mapping[str, np.ndarray], noise: float, rng: np.random.Generator) -> LayerScores:
    """Scores of every model by its own truth, or that under ""; tasks differ in level, and each in its own layers."""
    scores = {}
    for model in (*MODELS, "untrained"):
        level = rng.uniform(20, 80, (TASKS, 1))
        own = rng.normal(0, noise, (TASKS, LAYERS)) + rng.normal(0, noise / 3, (TASKS, LAYERS)).cumsum(axis=1)
        table = level + own + truths.get(model, truths[""])
        for variant in SUBSETS:
            scores[model, variant] = table
    layers = dict.fromkeys(scores, tuple(range(LAYERS)))
    return LayerScores("protocol", "", scores=scores, layers=layers, resamples=RESAMPLES)


def no_gain(rng: np.random.Generator) -> LayerScores:
    """All layers alike, so that one may seem better; or but one as good as the ends, which may seem worse."""
    equal = peak(0.0, MIDDLE, rest=-6.0)
    equal[[0, LAST]] = 0.0
    return source({"": FLAT if rng.random() < 0.5 else equal}, NOISE, rng)


def planted(null: Draw, true: Mapping[str, np.ndarray], false: Mapping[str, np.ndarray]) -> World:
    return World(null=null, true=partial(source, true, NOISE), false=partial(source, false, NOISE))


def by_turns(rng: np.random.Generator) -> LayerScores:
    """The last layer wins one task in five, by far: the share lies on its line."""
    clear = source({"": peak(20.0, MIDDLE)}, 0.5, rng)
    scores = {}
    for key, table in clear.scores.items():
        loses = rng.random(TASKS) < 0.2
        scores[key] = table + 40.0 * loses[:, None] * (np.arange(LAYERS) == LAST)
    return LayerScores("protocol", "", scores=scores, layers=clear.layers, resamples=RESAMPLES)


ABOVE_ALL, LAST_BEST, INPUT_BEST = {"": peak(6.0, MIDDLE)}, {"": peak(6.0, LAST)}, {"": peak(6.0, 0)}
UNTRAINED = {"untrained": ABOVE_ALL[""]}
WORLDS = {
    "middle-above-last": planted(no_gain, ABOVE_ALL, LAST_BEST),
    "middle-above-ends": planted(no_gain, ABOVE_ALL, INPUT_BEST),
    "nearly-every-task": planted(by_turns, {"": peak(20.0, MIDDLE)}, {"": FLAT}),
    "best-at-mid-depth": planted(no_gain, ABOVE_ALL, LAST_BEST),
    "gain-is-learned": planted(
        partial(source, ABOVE_ALL, NOISE), ABOVE_ALL | {"untrained": LAST_BEST[""]}, {"": FLAT} | UNTRAINED
    ),
}
