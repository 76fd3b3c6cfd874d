"""Measures of isotropy and dimension: naive references as printed, planted spaces with known answers, their edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from ctxexp import Group, Metric
from tests import naive
from tests.metric_tester import (
    Case,
    Edge,
    MetricTester,
    Statistics,
    all_rows,
    first_sample,
    groups_of,
    mean_over_groups,
)

NAN = math.nan


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def turn(d: int, k: int) -> np.ndarray:
    """(d, k) orthonormal columns."""
    return np.linalg.qr(normal(d, k, seed=5))[0]  # type: ignore[no-any-return]


def value(metric: Metric, x: np.ndarray) -> Mapping[str, Any]:
    metric.update(Group(0, x))
    return metric.compute()


def even(k: int) -> np.ndarray:
    """k directions of 9, each used alike."""
    return np.concatenate([np.eye(k), -np.eye(k)]) @ turn(9, k).T


UNDEFINED: dict[str, Edge] = {
    "zeros": (np.zeros((20, 4)), {"raw": NAN, "n": 20}),
    "NaN": (np.full((20, 4), NAN), NAN),
    "one row": (np.zeros((1, 4)), NAN),
}
EQUAL: Edge = (np.tile(np.float32([0.1, 0.7, 1e3]), (500, 1)), NAN)
LINE: Edge = (np.outer(normal(50, seed=3), turn(6, 1)), {"n": 50})
EXACT, NOISE = np.concatenate([np.eye(8), -np.eye(8)]), normal(10_000, 8, seed=1)
FEW = normal(300, 100, seed=2)  # of n even rows d n / (d + n) dimensions are seen, as the README states


# Of the spectrum of all occurrences.


def isoscore(x: np.ndarray) -> Statistics:
    return {"raw": naive.isoscore(x), "dimensions": naive.participation_ratio(x)}


def first_component(x: np.ndarray) -> Statistics:
    s = naive.singular_values(x) ** 2
    return {"raw": s[0] / s.sum(), "mean_cosine": naive.mean_cosine(x)}


def of_spectrum(metric: str, *, centred: bool, even_is: Callable[[int], float], **edges: Edge) -> Case:
    """Effective rank or participation ratio."""
    reference = getattr(naive, metric)
    known = {f"{k} of 9": (even(k), even_is(k)) for k in (2, 3, 5, 9)}
    known |= {"a line": (LINE[0], pytest.approx(1, abs=1e-6))}
    return Case(
        metric=metric, options={"centred": centred}, values=all_rows(lambda x: {"raw": reference(x, centred=centred)}),
        edges={**UNDEFINED, **known, **edges}, within=1e-6,
    )  # fmt: skip


LONG, MOVED = normal(4000, 10) * [30, *[1] * 9], normal(4000, 10) + 30 * np.eye(10)[0]
SPECTRA = (
    Case(
        metric="isoscore", values=all_rows(isoscore),
        edges={
            **UNDEFINED, "equal rows": EQUAL, "one dimension": (np.arange(5.0)[:, None], NAN),
            "even": (EXACT, {"raw": 1, "dimensions": 8, "n": 16}), "noise": (NOISE, pytest.approx(1, abs=0.002)),
            "few rows": (FEW, {"dimensions": pytest.approx(75, rel=0.02)}),
            "a line": (LINE[0], {"raw": 0, "dimensions": 1, "n": 50}),
            **{f"{k} of 9": (even(k), (k - 1) / 8) for k in (2, 3, 5)},
            "far away": (MOVED + 1e6, naive.isoscore(MOVED)),
        },
    ),
    of_spectrum("effective_rank", centred=True, even_is=float, equal_rows=EQUAL,
                noise=(NOISE, pytest.approx(8, rel=0.002))),
    of_spectrum("effective_rank", centred=False, even_is=float),
    of_spectrum("participation_ratio", centred=True, even_is=float, few=(FEW, pytest.approx(75, rel=0.02)),
                moved=(EXACT + 100 * np.eye(8)[0], {"raw": 8, "share": 1, "n": 16})),
    of_spectrum("participation_ratio", centred=False, even_is=float,
                moved=(EXACT + 100 * np.eye(8)[0], pytest.approx(1, abs=1e-3))),
    # One direction of much variance about the origin; a common mean: two anisotropies that differ.
    Case(
        metric="first_component", values=all_rows(first_component), within=1e-6,
        edges={
            **UNDEFINED,
            "long": (LONG, {"raw": pytest.approx(900 / 909, abs=0.02), "mean_cosine": pytest.approx(0, abs=0.02)}),
            "moved": (MOVED, {"raw": pytest.approx(0.1, abs=0.02), "mean_cosine": pytest.approx(0.98, abs=0.02)}),
        },
    ),
)  # fmt: skip


# Of samples.


def rogue(x: np.ndarray) -> Statistics:
    """Shares of the largest dimensions in the mean cosine, and that without them: by every pair and dimension."""
    pairs = list(combinations(range(len(x)), 2))
    each = np.zeros(x.shape[1])
    for i, j in pairs:
        for c in range(x.shape[1]):
            each[c] += x[i, c] * x[j, c] / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) / len(pairs)
    order = sorted(range(x.shape[1]), key=lambda c: -each[c])
    whole = naive.mean_cosine(x)
    found = {"mean_cosine": whole, "raw": each[order[0]] / whole, "dimension": order[0]}
    for k in (1, 3, 5):
        found |= {f"top_{k}": each[order[:k]].sum() / whole, f"without_{k}": naive.mean_cosine(x[:, order[k:]])}
    return found


def planted(rng: np.random.Generator, *sizes: int) -> np.ndarray:
    """Even clouds of so many rows around far points, all in one cone, in random order."""
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return (30 * np.eye(len(sizes), 20) + 60)[labels] + rng.normal(size=(len(labels), 20))  # type: ignore[no-any-return]


def silhouette(x: np.ndarray, labels: np.ndarray) -> float:
    """By the definition (Rousseeuw 1987)."""
    scores = []
    for i in range(len(x)):
        mean = {c: np.mean([np.linalg.norm(x[i] - x[j]) for j in np.nonzero(labels == c)[0] if j != i])
                for c in set(labels.tolist())}  # fmt: skip
        a, b = mean[labels[i]], min(v for c, v in mean.items() if c != labels[i])
        scores.append((b - a) / max(a, b))
    return float(np.mean(scores))


def adjusted(x: np.ndarray) -> Statistics:
    """Of three planted clusters."""
    labels = x[:, :3].argmax(axis=1)
    within = [one for c in range(3) for one in naive.cosines(x[labels == c] - x[labels == c].mean(0))]
    single = naive.mean_cosine(x - x.mean(0))
    return {"raw": np.mean(within), "single": single, "clusters": 3, "silhouette": silhouette(x, labels)}


WIDE = normal(1000, 64)
SAMPLES = (
    Case(
        metric="rogue_dimensions", options={"redraws": 2}, values=first_sample(rogue, redraws=2), within=1e-6,
        edges={
            **UNDEFINED, "three columns": (normal(20, 3) + 3, {"top_3": NAN}),
            "opposite": (np.array([[1.0, 0], [-1, 0]]), {"mean_cosine": -1, "raw": NAN}),  # no mean to take shares of
            "one": (WIDE + 50 * np.eye(64)[17], {"dimension": 17, "mean_cosine": pytest.approx(0.975, abs=0.025),
                    "top_1": pytest.approx(1, abs=0.001), "without_1": pytest.approx(0, abs=0.01)}),
            "three": (WIDE + 30 * np.eye(64)[[3, 9, 60]].sum(0), {
                "top_1": pytest.approx(1 / 3, abs=0.01), "top_3": pytest.approx(1, abs=0.001),
                "without_1": pytest.approx(0.95, abs=0.05), "without_3": pytest.approx(0, abs=0.01)}),
            "a direction of all axes": (WIDE + 4, {"mean_cosine": pytest.approx(0.95, abs=0.05),
                "top_1": pytest.approx(1 / 64, abs=0.014), "without_5": pytest.approx(0.95, abs=0.05)}),
        },
    ),
    Case(
        metric="cluster_adjusted_similarity", values=first_sample(adjusted),
        draw=lambda rng: groups_of("sample", [planted(rng, 8, 12, 20)]), within=1e-6,
        edges={**UNDEFINED, "one cloud": (normal(400, 20) + 5, {
            "clusters": 1, "silhouette": NAN, **dict.fromkeys(("raw", "single"), pytest.approx(-1 / 399, abs=1e-3))})},
        also=frozenset({"permutation"}),
    ),
)  # fmt: skip


# Of sentences and words.


def entropy(x: np.ndarray) -> float:
    if len(x) < 2:
        return NAN
    p = np.linalg.eigvalsh(x @ x.T)
    p = p[p > 1e-12 * p.sum()] / p.sum()
    return float(-(p * np.log(p)).sum()) if len(p) else NAN


def about_mean(x: np.ndarray) -> np.ndarray:
    return np.array([row / np.sqrt((row**2).sum()) for row in x - x.mean(0)])


def entropy_as_released(x: np.ndarray) -> float:
    """compute_entropy of the released code with its normalize, alpha = 1: by loops."""
    if not (x - x.mean(0)).any():
        return NAN
    x = about_mean(x)
    cov = x.T @ x if len(x) > x.shape[1] else x @ x.T
    cov = np.array([[max(value, 0.0) for value in row] for row in cov])
    values = np.abs(np.linalg.eigvalsh(cov / np.trace(cov)))
    return float(-sum(v * np.log(v) for v in values if v > 0))


def curvature(x: np.ndarray, *, released: bool = False) -> float:
    if not (x - x.mean(0)).any():
        return NAN
    steps = np.diff(about_mean(x) if released else x, axis=0)
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairwise(steps)]
    return float(np.mean([np.arccos(min(1.0, abs(c))) if released else np.arccos(c) for c in cosines]))


STRAIGHT = (np.outer([1.0, 2.0, 3.0, 4.0], normal(8)), np.arange(5.0)[:, None] * normal(4))
WALK = normal(400, 500)  # independent steps
GROUPS = (
    Case(
        metric="matrix_entropy", values=mean_over_groups(entropy), baseline=entropy, within=1e-6,
        edges={"zeros": (np.zeros((20, 4)), NAN), "a line": (STRAIGHT[0], 0), "even": (np.eye(6), np.log(6))},
    ),
    Case(
        metric="matrix_entropy", options={"definition": "released"}, values=mean_over_groups(entropy_as_released),
        baseline=entropy_as_released, edges={"a line": (STRAIGHT[0], np.log(2))}, within=1e-6,
    ),
    Case(
        metric="curvature", values=mean_over_groups(curvature, least=3), baseline=curvature, within=1e-6,
        edges={
            "zeros": (np.zeros((20, 4)), NAN), "straight": (STRAIGHT[1], pytest.approx(0, abs=1e-6)),
            "independent": (WALK, pytest.approx(2 * np.pi / 3, abs=0.01)),
            "back": (np.array([[0.0, 0], [1, 0], [0, 0]]), np.pi),
            "a word as the one before": (np.array([[0.0, 0], [1, 0], [1, 0], [2, 0]]), NAN),
        },
    ),
    Case(
        metric="curvature", options={"definition": "released"}, within=1e-6,
        values=mean_over_groups(lambda x: curvature(x, released=True), least=3),
        baseline=lambda x: curvature(x, released=True),
        edges={"independent": (WALK, pytest.approx(np.pi / 3, abs=0.01))},
    ),
)  # fmt: skip


class TestFormulas(MetricTester):
    cases = (*SPECTRA, *SAMPLES, *GROUPS)
