"""Corrections and thresholds of these measures, a row each, with a right value by hand or of another library; others
are held by the naive references of their own tests."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.calibration.edit_distance import EditDistance
from ctxexp_measures.isotropy.clusters import ClusterAdjustedSimilarity
from ctxexp_measures.senses.components.estimate import components, squares

from tests import naive
from tests.gold_pairs import pairs
from tests.measuring_helpers import computed

from .test_components import small


def clusters(apart: float) -> float:
    """How many are found of two clouds so many deviations apart."""
    x = np.random.default_rng(0).normal(size=(200, 30))
    x[:100, 0] += apart
    return ClusterAdjustedSimilarity().values(x)["clusters"]


def spreads() -> tuple[list[float], list[float]]:
    """Deviations of the similarities of pairs at a distance of 0 to 50, and of those beyond: as told, and by hand."""
    sides, metric = pairs(3, 40), EditDistance(threshold=50)
    metric.update(sides.group("T/x"))
    computed(metric)
    told = [float(str(row["similarity_sd"])) for row in metric.outputs()["table"]]
    cosines = [naive.cosine(x, y) for x, y in zip(sides.x, sides.y, strict=True)]
    return told, [statistics.stdev(cosines)]


def planted_parts() -> tuple[float, float, float]:
    """The sum of the parts of a text's variance, the variance over n - 1, and the largest sum of influences."""
    design, x = small(1)
    parts = components(design, squares(x, design), 20).values()
    return (
        sum(part.value for part in parts),
        float(np.var(x, axis=0, ddof=1).sum()),
        max(abs(float(part.influence.sum())) for part in parts),
    )


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "clusters of a mean silhouette of .1 are some": (lambda: [clusters(0.0), clusters(6.0)], [1, 2]),
    "a deviation is over n - 1": (lambda: spreads()[0], spreads()[1]),
    "parts make up the variance over n - 1": (lambda: planted_parts()[0], planted_parts()[1]),
    "as much moves a part up as down": (lambda: 1 + planted_parts()[2], 1),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_correction_gives_the_planted_cases_right_value(row: str) -> None:
    found, right = ROWS[row][0](), ROWS[row][1]
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(right, float), rtol=1e-3)
