"""Negative control: two unrelated tables of word vectors, compared in the same way as the spaces."""

from __future__ import annotations

import numpy as np

from ctxexp_compare.measure import ComparisonStream, RowNorm, Sample, TwoSpaces

DIMENSIONS = 192  # of a random vector per word


def negative_control(measure: TwoSpaces, sample: Sample, choice: RowNorm, permutations: int) -> tuple[float, float]:
    """Raw and adjusted value between two spaces that give each word a random vector; NaN where words are unknown."""
    if sample.strata is None:
        return float("nan"), float("nan")
    rng = np.random.default_rng([sample.seed, ComparisonStream.CONTROL])
    tables = rng.normal(size=(2, int(sample.strata.max()) + 1, DIMENSIONS)).astype(np.float32)
    a, b = (measure.prepare_side((unit_norm(x) if choice == "unit_norm" else x)[sample.strata], sample) for x in tables)
    value = measure.score(a, b).value
    chance = measure.chance(a, b, sample, permutations).mean
    return value, (value - chance) / (measure.self_score_at(len(sample)) - chance)


def unit_norm(x: np.ndarray) -> np.ndarray:
    """Rows (n, d) divided by their norms, float32; rows of norm 0 stay."""
    wide = x.astype(np.float64)
    norm = np.linalg.norm(wide, axis=1, keepdims=True)
    result: np.ndarray = np.divide(wide, norm, out=wide, where=norm > 0).astype(np.float32)
    return result
