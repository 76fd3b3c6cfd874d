"""Degeneration: the metric against definitions and planted spaces, and the theorems behind it on a toy softmax."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.frequency.degeneration import BLOCK, Degeneration, positive_pairs, statistics
from ctxexp_measures.frequency.hull import negative_direction

from ctxexp import Group
from ctxexp.model import EmbeddingTable
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
            refused={"rows=0: expected at least 1 row to test": {"rows": 0}},
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


def test_a_table_is_measured_and_its_spectrum_written(tmp_path: Path) -> None:
    x = (np.random.default_rng(4).normal(size=(40, 6)) + 1).astype(np.float32)
    metric, layer = Degeneration(), Degeneration()
    layer.update(Group("corpus", x))
    metric.update(Group("input", x, table=EmbeddingTable("input", ["t"] * 40, x, None)))
    assert metric.compute() == layer.compute()
    metric.outputs()["spectrum"].write(tmp_path)
    lines = (tmp_path / "spectrum.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "i,sigma,relative"
    assert [float(line.split(",")[2]) for line in lines[1:]] == pytest.approx(
        np.linalg.svd(x, compute_uv=False) / np.linalg.svd(x, compute_uv=False)[0], rel=1e-5
    )


# The theory (Gao et al. 2019) on a softmax with fixed hidden states: what the linear programme stands for.


def unseen_token(h: np.ndarray, steps: int, rate: float = 2.0) -> np.ndarray:
    """Norms of the vector of a token that never occurs, along gradient descent on the log-likelihood of the others.

    Its part of the loss is mean_i log(exp(<w, h_i>) + c_i), with c_i the others' sum, here 1.
    """
    w, norms = np.zeros(h.shape[1]), []
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(h @ w)))  # the token's probability in each context
        w = w - rate * (p @ h) / len(h)
        norms.append(float(np.linalg.norm(w)))
    return np.array(norms)


def test_norms_grow_for_ever_where_the_hull_misses_the_origin() -> None:
    """Theorem 1: the hull of the hidden states decides, not that of the word vectors."""
    h = np.random.default_rng(5).normal(size=(50, 3)) + 3 * np.eye(3)[0]
    found = negative_direction(h)
    assert found.v is not None
    norms = unseen_token(h, 20_000)
    assert (np.diff(norms[10:]) > 0).all()
    assert norms[19_999] - norms[1_999] > 0.8 * (norms[1_999] - norms[199])  # like log t: equal steps a decade
    assert norms[-1] > 5
    # and it goes along a uniformly negative direction
    w = np.zeros(3)
    for _ in range(20_000):
        w -= 2.0 * ((1 / (1 + np.exp(-(h @ w)))) @ h) / len(h)
    assert (h @ w < 0).all()


def test_norms_stay_bounded_where_the_hull_holds_the_origin() -> None:
    h = np.random.default_rng(6).normal(size=(50, 3)) + 0.4 * np.eye(3)[0]
    assert negative_direction(h).v is None
    norms = unseen_token(h, 20_000)
    assert norms.max() < 5
    assert abs(norms[-1] - norms[2_000]) < 1e-9  # settled


def test_a_rare_tokens_optimum_is_near_the_unseen_tokens() -> None:
    """Theorem 3 on quadratics: f alpha-strongly convex with minimum x*, f + eps (g - f) as the rare token's loss; for
    eps < a / (a + b), |x* - x_eps*|^2 <= 4 eps B / (a - eps (a + b))."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        d = int(rng.integers(1, 6))
        a, b = rng.uniform(0.5, 3), rng.uniform(0.1, 3)

        def matrix(least: float, most: float, d: int = d) -> np.ndarray:
            q = np.linalg.qr(rng.normal(size=(d, d)))[0]
            return (q * rng.uniform(least, most, d)) @ q.T

        convex, other = matrix(a, 4.0), -matrix(0.0, b)  # f is a-strongly convex, g's Hessian is at least -b
        radius = 2.0
        x, y = rng.normal(size=d), rng.normal(size=d)
        x *= rng.uniform(0, 1) / np.linalg.norm(x)
        y *= rng.uniform(0, 1) / np.linalg.norm(y)
        eps = rng.uniform(0, 0.5) * a / (a + b)
        # (1 - eps) f + eps g with f = (z-x)'C(z-x)/2, g = (z-y)'O(z-y)/2: minimised in closed form
        total = (1 - eps) * convex + eps * other
        assert np.linalg.eigvalsh(total).min() > 0
        best = np.linalg.solve(total, (1 - eps) * convex @ x + eps * other @ y)
        radius = max(radius, float(np.linalg.norm(best)))

        def f(z: np.ndarray, c: np.ndarray, m: np.ndarray) -> float:
            return float((z - m) @ c @ (z - m) / 2)

        # B bounds |f| and |g| at the two optima, which is all that the proof uses
        bound = max(abs(f(z, c, m)) for z in (x, best) for c, m in ((convex, x), (other, y)))
        assert float((x - best) @ (x - best)) <= 4 * eps * bound / (a - eps * (a + b)) + 1e-12
