"""A negative control: two unrelated tables of words, compared as the spaces are."""

from __future__ import annotations

import numpy as np

from ctxexp_compare.measure import RowChoice, Sample, Stream, TwoSpaces

DIMENSIONS = 192  # of a random vector a word


def negative_control(measure: TwoSpaces, sample: Sample, choice: RowChoice, permutations: int) -> tuple[float, float]:
    """The measure between two spaces of a random vector a word, raw and adjusted."""
    if sample.strata is None:
        return float("nan"), float("nan")
    rng = np.random.default_rng([sample.seed, Stream.CONTROL])
    tables = rng.normal(size=(2, int(sample.strata.max()) + 1, DIMENSIONS)).astype(np.float32)
    a, b = (measure.side((unit_norm(x) if choice == "unit_norm" else x)[sample.strata], sample) for x in tables)
    value = measure.score(a, b).value
    chance = measure.chance(a, b, sample, permutations).mean
    return value, (value - chance) / (measure.limit(len(sample)) - chance)


def unit_norm(x: np.ndarray) -> np.ndarray:
    """Rows (n, d) at norm 1, float32; rows of norm 0 stay."""
    wide = x.astype(np.float64)
    norm = np.linalg.norm(wide, axis=1, keepdims=True)
    result: np.ndarray = np.divide(wide, norm, out=wide, where=norm > 0).astype(np.float32)
    return result
