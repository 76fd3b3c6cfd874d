"""Measures of isotropy and dimension: naive references as printed, planted spaces with known answers, their edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise
from math import lgamma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.isotropy.weighted import Symmetry
from scipy.optimize import minimize_scalar

from ctxexp import Group, Metric
from ctxexp.command import Experiment, configured
from ctxexp.model import EmbeddingTable
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
    rows,
)

NAN = math.nan


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def turn(d: int, k: int, seed: int = 5) -> np.ndarray:
    """(d, k) orthonormal columns."""
    return np.linalg.qr(normal(d, k, seed=seed))[0]  # type: ignore[no-any-return]


def value(metric: Metric, x: np.ndarray) -> Mapping[str, Any]:
    metric.update(Group(0, x))
    return metric.compute()


def even(k: int, d: int) -> np.ndarray:
    """k directions of d, each used alike."""
    return np.concatenate([np.eye(k), -np.eye(k)]) @ turn(d, k).T


UNDEFINED: dict[str, Edge] = {
    "zeros": (np.zeros((20, 4)), {"raw": NAN, "n": 20}),
    "NaN": (np.full((20, 4), NAN), NAN),
    "one row": (np.zeros((1, 4)), NAN),
}
EQUAL: Edge = (np.tile(np.float32([0.1, 0.7, 1e3]), (500, 1)), NAN)
LINE: Edge = (np.outer(normal(50, seed=3), turn(6, 1)), {"n": 50})
EXACT, NOISE = np.concatenate([np.eye(8), -np.eye(8)]), normal(40_000, 8, seed=1)
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
    known = {f"{k} of 9": (even(k, 9), even_is(k)) for k in (2, 3, 5, 9)}
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
            **{f"{k} of 9": (even(k, 9), (k - 1) / 8) for k in (2, 3, 5)},
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


def partition(x: np.ndarray) -> Statistics:
    """Mu & Viswanath 2018: Z(c) by loops, over each eigenvector in both signs."""
    _, _, axes = np.linalg.svd(x, full_matrices=True)  # right singular vectors, here as rows: eigenvectors of x^T x
    z = [sum(np.exp(sign * float(c @ w)) for w in x) for c in axes for sign in (1, -1)]
    return {"raw": min(z) / max(z), "log": np.log(min(z) / max(z))}


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


def neighbour_distances(x: np.ndarray, k: int) -> np.ndarray:
    each = (np.linalg.norm(x - row, axis=1) for row in x.astype(np.float64))
    return np.array([np.sort(np.delete(distances, i))[:k] for i, distances in enumerate(each)])


def intrinsic(x: np.ndarray, k: int = 7) -> Statistics:
    near = neighbour_distances(x, k)
    mu = sorted(b / a for a, b in near[:, :2])  # Facco et al. 2017, the recipe in their Results
    points = [(np.log(m), -np.log(1 - (i + 1) / len(x))) for i, m in enumerate(mu[: int(len(x) * 0.9)])]
    slope = sum(a * b for a, b in points) / sum(a * a for a, _ in points)
    inverse = [np.mean([np.log(row[-1] / t) for t in row[:-1]]) for row in near]  # Levina & Bickel 2004, Eq. 8
    return {"raw": slope, "mle": 1 / np.mean(inverse), "duplicates": 0}


def log_density(mu: np.ndarray, d: float, n1: int) -> np.ndarray:
    """Log of the density of ratios as Denti et al. 2022 print it, in powers of mu, with n2 = 2 n1."""
    log_beta = 2 * lgamma(n1) - lgamma(2 * n1)
    result: np.ndarray = np.log(d) - log_beta - (d * (2 * n1 - 1) + 1) * np.log(mu)
    return result + (n1 - 1) * np.log(mu**d - 1) if n1 > 1 else result


def gride(x: np.ndarray, n1: int = 4) -> Statistics:
    """The dimension of the largest printed likelihood."""
    near = neighbour_distances(x, 16)
    found: dict[str, float] = {"radius": near[:, 2 * n1 - 1].mean(), "duplicates": 0}
    for one in (1, 2, 4, 8):
        mu = near[:, 2 * one - 1] / near[:, one - 1]
        lost = partial(lambda d, mu, n1: -log_density(mu, d, n1).sum(), mu=mu, n1=one)
        found[f"scale_{one}"] = minimize_scalar(lost, bounds=(0.1, 30), options={"xatol": 1e-9}).x
    return {**found, "raw": found[f"scale_{n1}"]}


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


def star(x: np.ndarray, batch: int = 20, zeta: float = 0.3) -> Statistics:
    """Rudman & Eickhoff 2024, Algorithm 1, step by step."""
    few, more = x[:batch], x[batch:]
    shrunk = np.linalg.eigvalsh((1 - zeta) * np.cov(few.T) + zeta * np.cov(more.T))
    raw = naive.isoscore_of_variances(shrunk)
    return {"raw": raw, "isoscore": naive.isoscore(few), "all_of": naive.isoscore(x), "n": batch}


def inside(dim: int, ambient: int) -> np.ndarray:
    """A plane of few dimensions in many."""
    return np.random.default_rng(dim).uniform(size=(2000, dim)) @ turn(ambient, dim).T  # type: ignore[no-any-return]


WIDE = normal(1000, 64)
ANGLE = np.random.default_rng(0).uniform(0, 2 * np.pi, 1500)
ROWS = normal(700, 4).astype(np.float32)
TWICE = np.concatenate([ROWS, ROWS[:200], ROWS[:90] * np.float32(1 + 1.2e-7)])  # within float32's rounding
NO_DIMENSION = {**UNDEFINED, "zeros": (np.zeros((20, 4)), {"raw": NAN, "n": 1})}  # equal rows count once
SAMPLES = (
    Case(
        metric="partition_isotropy", options={"redraws": 2}, within=1e-7,
        values=first_sample(partition, redraws=2),
        draw=lambda rng: groups_of("sample", [rows(rng, 40, 5) / 4 for _ in range(4)]),
        edges={
            "even": (EXACT, 1), "noise": (NOISE, pytest.approx(0.95, abs=0.05)),
            "equal rows": (np.tile(3 * turn(6, 1).T, (7, 1)), {"log": -6}),  # Z is n e^3 along it, n / e^3 against it
            "very long": (1e4 * rows(np.random.default_rng(0), 400), 0),
        },
    ),
    Case(
        metric="partition_isotropy", options={"unit_norm": True}, edges={"a zero row": (np.zeros((3, 2)), NAN)},
        values=first_sample(lambda x: partition(x / np.linalg.norm(x, axis=1, keepdims=True))), within=1e-7,
    ),
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
        metric="intrinsic_dimension", options={"k": 7, "redraws": 2}, within=1e-6,
        values=first_sample(intrinsic, redraws=2),
        edges={
            **NO_DIMENSION, "equal rows": (TWICE, {**intrinsic(ROWS), "duplicates": 290, "n": 700}),
            "few rows": (ROWS[:5], {"mle": NAN}),
            "a curve": (np.stack([np.cos(ANGLE), np.sin(ANGLE), 0 * ANGLE], axis=1), pytest.approx(1, rel=0.08)),
            **{f"{d} in {of}": (inside(d, of), dict.fromkeys(("raw", "mle"), pytest.approx(d, rel=0.12)))
               for d, of in ((1, 10), (2, 30), (5, 64))},
        },
    ),
    Case(
        metric="gride", options={"n1": 4, "redraws": 2}, values=first_sample(gride, redraws=2), within=1e-5,
        edges={
            **NO_DIMENSION, "no ratio": (np.eye(40), NAN), "few rows": (ROWS[:8], {"raw": NAN, "radius": NAN}),
            "just enough": (ROWS[:17], {**gride(ROWS[:17].astype(np.float64)), "scale_16": NAN}),
            "equal rows": (np.concatenate([ROWS[:100], ROWS[:30]]), {**gride(ROWS[:100]), "duplicates": 30}),
            # What is short of 5 and 10 are the edges, where neighbours lie on one side.
            **{f"{draw} in {d}": (getattr(np.random.default_rng(d), draw)(size=(2000, d)) @ turn(30, d).T,
                                  {f"scale_{n1}": pytest.approx(d, rel=off) for n1 in (1, 4, 16)})
               for d, off in ((2, 0.08), (5, 0.15), (10, 0.25)) for draw in ("uniform", "normal")},
            "a high dimension": (normal(1000, 50), {"scale_16": pytest.approx(23, abs=1)}),
        },
    ),
    Case(
        metric="cluster_adjusted_similarity", values=first_sample(adjusted),
        draw=lambda rng: groups_of("sample", [planted(rng, 8, 12, 20)]), within=1e-6,
        edges={**UNDEFINED, "one cloud": (normal(400, 20) + 5, {
            "clusters": 1, "silhouette": NAN, **dict.fromkeys(("raw", "single"), pytest.approx(-1 / 399, abs=1e-3))})},
        also=frozenset({"permutation"}),
    ),
    Case(
        metric="isoscore_star", options={"batch": 20, "zeta": 0.3}, values=first_sample(star), edges=UNDEFINED,
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


def symmetry(groups: Sequence[Group]) -> Statistics:
    """Each word's mean, as often as it occurs and once."""
    x, found = np.array([group.x.mean(0) for group in groups]), {}
    for names, counts in ((("raw", "first"), [len(g.x) for g in groups]), (("uniform", "uniform_first"), [1] * len(x))):
        p = np.array(counts) / sum(counts)
        mean = p @ x
        eigen = np.linalg.eigvalsh(sum(w * np.outer(r - mean, r - mean) for w, r in zip(p, x, strict=True)))
        share = eigen[eigen > 1e-12] / eigen.sum()
        second = -(share * np.log(share)).sum() / np.log(x.shape[1])
        found |= dict(zip(names, (second, 1 - np.linalg.norm(mean) / (p @ np.linalg.norm(x, axis=1))), strict=True))
    return {**found, "n": len(x)}


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
    Case(
        metric="symmetry", values=symmetry, within=1e-6,
        edges={"zeros": (groups_of("word", [np.zeros((20, 4))] * 2), NAN)},
        draw=lambda rng: groups_of("word", [rows(rng, n) for n in range(2, 30, 2)]),
    ),
)  # fmt: skip


class TestFormulas(MetricTester):
    cases = (*SPECTRA, *SAMPLES, *GROUPS)


def test_sums_of_one_pass_are_kept_for_the_next_run(tmp_path: Path) -> None:
    options = ["one_pass.shards=2", "bootstrap=0", "min_contexts=2", f"cache.folder={tmp_path}"]
    text = ["The bank was wet.", "The bank lent us money.", "We sat on the bank."]
    metrics = ["isoscore", "effective_rank", "participation_ratio", "first_component"]
    first, again = (
        Experiment(configured("random_words", text, options, metrics=metrics)).run(tmp_path) for _ in range(2)
    )
    assert (first.info.encoded, again.info.encoded) == (3, 0)
    np.testing.assert_array_equal(first.frame.value, again.frame.value)


def test_symmetry_weighs_words_by_frequency_and_names_both_choices() -> None:
    """Frequent words about the origin, rare ones far off: skewed where each counts once, all but even by frequency."""
    x = np.vstack([normal(50, 6), normal(50, 6, seed=1) * [1, 1, 1, 1, 1, 12] + 20])
    counts = np.repeat([400, 1], 50)
    metric = Symmetry()
    for word, (row, n) in enumerate(zip(x, counts.tolist(), strict=True)):
        metric.update(Group(word, np.repeat(row[None], n, axis=0)))
    values = metric.compute()
    assert values["raw"] > values["uniform"] + 0.1
    assert values["first"] > values["uniform_first"] + 0.3
    tokens = [str(i) for i in range(101)]
    table = EmbeddingTable("in", tokens, np.vstack([x, [900.0] * 6]).astype(np.float32), np.append(counts, 7), (100,))
    of_table = Symmetry()
    of_table.update(Group("in", table.vectors, table=table))
    assert of_table.compute() == pytest.approx(values, rel=1e-5)
    unknown = Symmetry()
    unknown.update(Group("in", table.vectors, table=EmbeddingTable("in", tokens, table.vectors, None)))
    assert np.isnan(unknown.compute()["raw"])
    assert np.isfinite(unknown.compute()["uniform"])
