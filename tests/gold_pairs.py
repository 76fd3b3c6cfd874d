"""Pairs with made-up gold, and measures of them."""

from __future__ import annotations

import numpy as np

from ctxexp import SimilarityMetric
from tests.measuring_helpers import Sides, computed

WORDS = ["a", "cat", "sat", "on", "the", "old", "mat", "again"]


def pairs(seed: int, n: int = 40, d: int = 6, grades: int = 6) -> Sides:
    """Sides whose cosine goes with gold, with noise; texts that differ the more the lower gold is."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, grades, n).astype(float)
    x = rng.normal(size=(n, d))
    y = x + rng.normal(size=(n, d)) * (0.3 + (grades - gold)[:, None] / 3)
    texts = []
    for g in gold.astype(int):
        words = list(rng.choice(WORDS, 6))
        other = [str(w) if rng.random() < g / grades else str(rng.choice(WORDS)) for w in words]
        texts.append((" ".join(map(str, words)), " ".join(other)))
    return Sides(x.astype(np.float32), y.astype(np.float32), gold, texts)


def cosines(p: Sides) -> np.ndarray:
    x, y = p.x.astype(float), p.y.astype(float)
    return np.array([a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(x, y, strict=True)])


def measured(metric: SimilarityMetric, parts: dict[str, Sides], replicates: int = 0) -> dict[str, float]:
    for subset, p in parts.items():
        metric.update(p.group(subset))
    return computed(metric, np.random.default_rng(0), replicates)
