"""Degeneration: the metric against definitions and planted spaces, and the theorems behind it on a toy softmax."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ctxexp_measures.frequency.degeneration import BLOCK, positive_pairs, statistics
from ctxexp_measures.frequency.hull import negative_direction

from tests import naive
from tests.metric_tester import Case, MetricTester, Statistics, all_rows, rows

NAN = math.nan


def definitions(x: np.ndarray) -> Statistics:
    s = naive.singular_values(x, centred=False)
    share = s**2 / (s @ s)
    mean = sum(row / math.hypot(*row) for row in x)
    angles = [math.degrees(math.acos(naive.cosine(row, mean))) for row in x]
    return {
        "mean_cosine": naive.mean_cosine(x), "positive_pairs": np.mean(np.array(naive.cosines(x)) > 0),
        "effective_rank": naive.effective_rank(x, centred=False),
        "participation_ratio": naive.participation_ratio(x, centred=False),
        "energy_1": share[0], "energy_2": share[0] + share[1],
        "cone_nearest": min(angles), "cone_mean": np.mean(angles), "cone_aperture": max(angles), "tested": len(x),
    }  # fmt: skip


def entropy(values: np.ndarray) -> float:
    return math.exp(-sum(p * math.log(p) for p in values / sum(values)))


PLANE = np.random.default_rng(6).normal(size=(400, 2)) @ np.random.default_rng(7).normal(size=(2, 300))
DIRECTED = np.random.default_rng(2).normal(size=(20, 4)) + 2
EVEN = {"effective_rank": 8, "participation_ratio": 8, "mean_cosine": -1 / 15, "negative_direction": 0, "margin": 0}
CONE = {"negative_direction": 1, "positive_pairs": 0, "margin": 1 / math.sqrt(8), "lp_margin": 1}


class TestFormula(MetricTester):
    cases = (
        Case(
            metric="degeneration", values=all_rows(definitions), within=1e-5,
            edges={
                "isotropic": (np.concatenate([np.eye(8), -np.eye(8)]), {**EVEN, "lp_margin": 0, "cone_narrowest": NAN}),
                "a cone": (np.eye(8), {**CONE, "cone_narrowest": math.degrees(math.acos(1 / math.sqrt(8)))}),
                # Of the singular values, not of their squares; 298 values that are nothing but rounding don't count.
                "uneven": (np.diag([3.0, 1, 0, 0]), {"effective_rank": entropy(np.array([3.0, 1])), "energy_1": 0.9}),
                "a plane": (PLANE, {"effective_rank": entropy(np.linalg.svd(PLANE, compute_uv=False)[:2])}),
                "a line": (np.outer(np.arange(1.0, 6), [1.0, 2, 2]),
                           dict.fromkeys(("effective_rank", "energy_1", "margin", "positive_pairs"), 1)),
                "few rows": (rows(np.random.default_rng(0), 3), {"chance": 1}),
                "rows without a direction": (np.concatenate([DIRECTED, [[0, 0, 0, 0], [NAN, 1, 1, 1]]]),
                                             {"n": 21, "zeros": 1, "undefined": 1, "tested": 20, "mean_cosine": NAN,
                                              "margin": negative_direction(DIRECTED).margin}),
                "no group": ([], {"n": 0, "margin": NAN}),
            },
        ),
    )  # fmt: skip


def test_pairs_are_counted_across_blocks() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BLOCK + 300, 3)) + 0.3
    products = x @ x.T
    above = products[np.triu_indices(len(x), 1)] > 0
    assert positive_pairs(x) == pytest.approx(above.mean(), abs=1e-12)
    assert math.isnan(positive_pairs(x[:1]))


def test_more_rows_than_are_tested_are_sampled_by_seed() -> None:
    x = np.random.default_rng(3).normal(size=(300, 4)) + 1
    first, again, other = (statistics(x, rows=50, seed=seed)[0] for seed in (0, 0, 1))
    assert first["tested"] == 50
    assert first == again
    assert first["margin"] != other["margin"]
    assert first["mean_cosine"] == other["mean_cosine"]  # of all rows
