"""Participation ratio, rogue dimensions, intrinsic dimension, isotropy in clusters: loops, planted spaces, laws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import ctxexp_measures.isotropy as iso
import numpy as np
import pytest
from ctxexp_measures.isotropy.sample import SampleMetric

from ctxexp import Group, Metric
from ctxexp.maths import kmeans
from ctxexp.testing import check

SAMPLES: list[Callable[[], SampleMetric]] = [
    partial(iso.PartitionIsotropy, redraws=1), partial(iso.RogueDimensions, redraws=1),
    partial(iso.IntrinsicDimension, k=5, redraws=1), partial(iso.ClusterAdjustedSimilarity, redraws=1),
]  # fmt: skip
EACH: list[Callable[[], Metric]] = [
    iso.ParticipationRatio, partial(iso.ParticipationRatio, centred=False), *SAMPLES,
    partial(iso.ClusterAdjustedSimilarity, clusters=2),
]  # fmt: skip
IDS = ["participation", "participation, origin", "partition", "rogue", "intrinsic", "clusters", "two clusters"]


def value(metric: Metric, x: np.ndarray) -> dict[str, float]:
    """What the metric makes of all rows, as a sample or as occurrences."""
    metric.update(Group(0, x))
    return metric.compute()


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("factory", EACH, ids=IDS)
def test_each_keeps_a_metrics_laws_and_declared_invariances(factory: Callable[[], Metric]) -> None:
    check("metric", factory)


@pytest.mark.parametrize("factory", SAMPLES, ids=IDS[2:6])
def test_the_spread_is_that_of_the_redraws(factory: Callable[[], SampleMetric]) -> None:
    metric = type(factory())(redraws=2)
    samples = [normal(60, 5, seed=s) + 0.5 for s in range(4)]
    for key, x in enumerate(samples):
        metric.update(Group(key, x))
    each = [value(type(metric)(), x)["raw"] for x in samples]
    assert metric.compute()["raw"] == each[0]
    assert metric.compute()["sd"] == pytest.approx(np.std(each[1:3], ddof=1))
    assert np.isnan(value(type(metric)(), samples[0])["sd"])
    assert type(metric)().compute()["n"] == 0


@pytest.mark.parametrize("factory", EACH[:2] + EACH[3:], ids=IDS[:2] + IDS[3:])  # zeros are even to I(W)
def test_degenerate_spaces_are_undefined_not_wrong(factory: Callable[[], Metric]) -> None:
    assert np.isnan(factory().compute()["raw"])
    for x in (np.zeros((20, 4)), np.full((20, 4), np.nan), np.zeros((1, 4))):
        metric = factory()
        with np.errstate(invalid="ignore"):
            metric.update(Group(0, x))
        assert np.isnan(metric.compute()["raw"])
        assert metric.compute()["n"] == (1 if isinstance(metric, iso.IntrinsicDimension) and not x.any() else len(x))


def test_participation_ratio_is_that_of_the_eigenvalues() -> None:
    x = normal(300, 9) @ normal(9, 9, 1) + 2
    spectrum = np.linalg.svd(x.astype(np.float64) - x.mean(0, dtype=np.float64), compute_uv=False) ** 2
    expected = spectrum.sum() ** 2 / (spectrum**2).sum()
    assert value(iso.ParticipationRatio(), x) == pytest.approx({"raw": expected, "share": expected / 9, "n": 300})
    spectrum = np.linalg.svd(x.astype(np.float64), compute_uv=False) ** 2
    expected = spectrum.sum() ** 2 / (spectrum**2).sum()
    assert value(iso.ParticipationRatio(centred=False), x)["raw"] == pytest.approx(expected)


def test_participation_ratio_counts_even_dimensions() -> None:
    d = 16
    exact = np.concatenate([np.eye(d), -np.eye(d)])
    assert value(iso.ParticipationRatio(), exact)["raw"] == pytest.approx(d)
    assert value(iso.ParticipationRatio(), normal(50_000, d))["raw"] == pytest.approx(d, rel=0.001)
    few = normal(300, 100, seed=2)  # the bias that the docstring states: d n / (d + n)
    assert value(iso.ParticipationRatio(), few)["raw"] == pytest.approx(75, rel=0.02)
    halves = np.diag([1.0] * 4 + [0.0] * 12)
    assert value(iso.ParticipationRatio(), exact @ halves)["raw"] == pytest.approx(4)
    moved = exact + 100 * np.eye(d)[0]
    assert value(iso.ParticipationRatio(), moved)["raw"] == pytest.approx(d)
    assert value(iso.ParticipationRatio(centred=False), moved)["raw"] == pytest.approx(1, abs=1e-3)


def rogue_by_loops(x: np.ndarray, k: int) -> tuple[float, float, float]:
    """Mean cosine, share of the k largest dimensions, mean cosine without them: every pair, one dimension at a time."""
    x = x.astype(np.float64)
    pairs = list(combinations(range(len(x)), 2))
    each = np.zeros(x.shape[1])
    for i, j in pairs:
        for dimension in range(x.shape[1]):
            size = np.linalg.norm(x[i]) * np.linalg.norm(x[j])
            each[dimension] += x[i, dimension] * x[j, dimension] / size / len(pairs)
    whole = float(np.mean([cosine(x[i], x[j]) for i, j in pairs]))
    top = sorted(range(x.shape[1]), key=lambda c: -each[c])[:k]
    rest = [c for c in range(x.shape[1]) if c not in top]
    return whole, each[top].sum() / whole, float(np.mean([cosine(x[i, rest], x[j, rest]) for i, j in pairs]))


def test_rogue_dimensions_are_those_of_every_pair() -> None:
    x = normal(25, 8) + np.float32([3, 0, 0, 1, 0, 0, -2, 0])
    got = value(iso.RogueDimensions(), x)
    for k in (1, 3, 5):
        whole, share, rest = rogue_by_loops(x, k)
        assert got["mean_cosine"] == pytest.approx(whole)
        assert got[f"top_{k}"] == pytest.approx(share)
        assert got[f"without_{k}"] == pytest.approx(rest)
    assert got["raw"] == got["top_1"]
    assert got["dimension"] == 0


def test_planted_rogue_dimensions_make_the_anisotropy() -> None:
    x = normal(1000, 64)
    one = x + 50 * np.eye(64, dtype=np.float32)[17]
    got = value(iso.RogueDimensions(), one)
    assert got["dimension"] == 17
    assert got["mean_cosine"] > 0.95
    assert got["top_1"] == pytest.approx(1, abs=0.001)
    assert got["without_1"] == pytest.approx(0, abs=0.01)
    three = x + 30 * np.eye(64, dtype=np.float32)[[3, 9, 60]].sum(0)
    got = value(iso.RogueDimensions(), three)
    assert got["top_1"] == pytest.approx(1 / 3, abs=0.01)
    assert got["top_3"] == pytest.approx(1, abs=0.001)
    assert got["without_1"] > 0.9
    assert abs(got["without_3"]) < 0.01
    shared = x + 4  # a common direction over all axes alike is no rogue dimension
    got = value(iso.RogueDimensions(), shared)
    assert got["mean_cosine"] > 0.9
    assert got["top_1"] < 0.03
    assert got["without_5"] > 0.9


def test_rogue_dimensions_depend_on_the_axes_and_their_number() -> None:
    x = (normal(200, 6) + 10 * np.eye(6)[0]).astype(np.float64)
    turn = np.linalg.qr(normal(6, 6, 4).astype(np.float64))[0]
    assert abs(value(iso.RogueDimensions(), x)["raw"] - value(iso.RogueDimensions(), x @ turn)["raw"]) > 0.1
    narrow = value(iso.RogueDimensions(), x[:, :3])
    assert np.isfinite(narrow["top_1"])
    assert np.isnan(narrow["top_3"])
    opposite = value(iso.RogueDimensions(), np.array([[1.0, 0], [-1, 0]]))  # no positive mean to take shares of
    assert opposite["mean_cosine"] == pytest.approx(-1)
    assert np.isnan(opposite["raw"])


def neighbours_by_loops(x: np.ndarray, k: int) -> np.ndarray:
    x = x.astype(np.float64)
    return np.array([sorted(float(np.linalg.norm(a - b)) for j, b in enumerate(x) if j != i)[:k]
                     for i, a in enumerate(x)])  # fmt: skip


def test_intrinsic_dimension_is_the_papers_by_loops() -> None:
    x, k = normal(150, 6) @ normal(6, 6, 1) + 5, 7
    near = neighbours_by_loops(x, k)
    assert iso.neighbour_distances(x.astype(np.float64), k) == pytest.approx(near, rel=1e-6)
    mu = sorted(b / a for a, b in near[:, :2])  # Facco et al. 2017, the recipe in their Results
    points = [(np.log(m), -np.log(1 - (i + 1) / 150)) for i, m in enumerate(mu[: int(150 * 0.9)])]
    slope = sum(a * b for a, b in points) / sum(a * a for a, _ in points)
    inverse = [np.mean([np.log(row[-1] / t) for t in row[:-1]]) for row in near]  # Levina & Bickel 2004, Eq. 8
    got = value(iso.IntrinsicDimension(k=k), x)
    assert got["raw"] == pytest.approx(slope, rel=1e-6)
    assert got["mle"] == pytest.approx(1 / np.mean(inverse), rel=1e-6)
    assert got["mle"] < np.mean(1 / np.array(inverse))  # the plain mean, which MacKay and Ghahramani correct, is larger


def test_a_plane_of_few_dimensions_in_many_has_those_few() -> None:
    for dim, ambient in ((1, 10), (2, 30), (5, 64)):
        inside = np.random.default_rng(dim).uniform(size=(2000, dim))
        x = inside @ np.linalg.qr(normal(ambient, dim, 3).astype(np.float64))[0].T
        got = value(iso.IntrinsicDimension(), x)
        assert got["raw"] == pytest.approx(dim, rel=0.12)
        assert got["mle"] == pytest.approx(dim, rel=0.12)
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 1500)
    curled = np.stack([np.cos(angle), np.sin(angle), np.zeros(1500)], axis=1)  # a curve, not a plane
    assert value(iso.IntrinsicDimension(), curled)["raw"] == pytest.approx(1, rel=0.08)
    assert value(iso.ParticipationRatio(), curled)["raw"] == pytest.approx(2, rel=0.05)


def test_squared_distances_would_halve_the_dimension() -> None:
    near = iso.neighbour_distances(normal(500, 5).astype(np.float64), 20)
    assert iso.mle(near**2) == pytest.approx(iso.mle(near) / 2)
    assert iso.two_nn(near**2) == pytest.approx(iso.two_nn(near) / 2)


def test_equal_rows_are_left_out_and_counted() -> None:
    x = normal(700, 4)
    alone = value(iso.IntrinsicDimension(), x)
    close = x[:90] * np.float32(1 + 1.2e-7)  # within float32's rounding
    twice = value(iso.IntrinsicDimension(), np.concatenate([x, x[:200], close]))
    assert twice["duplicates"] == 290
    assert alone["duplicates"] == 0
    assert twice["n"] == alone["n"] == 700
    assert twice["raw"] == pytest.approx(alone["raw"], rel=1e-6)
    assert twice["mle"] == pytest.approx(alone["mle"], rel=1e-6)
    few = value(iso.IntrinsicDimension(k=10), x[:5])
    assert np.isfinite(few["raw"])
    assert np.isnan(few["mle"])


def planted(n: int = 150, d: int = 20, k: int = 3, apart: float = 30.0) -> tuple[np.ndarray, np.ndarray]:
    """Even clouds around k far points, all in one cone; rows in random order, with their cluster."""
    rng = np.random.default_rng(8)
    centres = apart * np.eye(k, d) + 2 * apart
    labels = rng.permutation(np.repeat(np.arange(k), n))
    return centres[labels] + rng.normal(size=(n * k, d)), labels


def test_clusters_in_a_cone_are_even_within() -> None:
    x, labels = planted()
    got = value(iso.ClusterAdjustedSimilarity(), x)
    assert got["clusters"] == 3
    assert got["silhouette"] > 0.7
    assert got["raw"] == pytest.approx(-1 / 149, abs=0.002)
    assert got["single"] == pytest.approx(-1 / 449, abs=0.01)
    assert value(iso.RogueDimensions(), x)["mean_cosine"] > 0.9
    pairs = [cosine(x[i] - x[labels == c].mean(0), x[j] - x[labels == c].mean(0))
             for c in range(3) for i, j in combinations(np.nonzero(labels == c)[0], 2)]  # fmt: skip
    assert got["raw"] == pytest.approx(np.mean(pairs), abs=1e-6)
    again = value(iso.ClusterAdjustedSimilarity(seed=5), x[::-1].copy())
    assert again["raw"] == pytest.approx(got["raw"], abs=1e-9)


def test_one_cloud_is_one_cluster() -> None:
    x, _ = planted(k=2)
    skewed = np.random.default_rng(1).exponential(size=len(x)) ** 4  # mean above most: the rest shares a direction
    got = value(iso.ClusterAdjustedSimilarity(clusters=2), x + np.outer(skewed, np.eye(20)[5]))
    assert got["raw"] > 0.1
    cloud = value(iso.ClusterAdjustedSimilarity(), normal(400, 20) + 5)
    assert cloud["clusters"] == 1
    assert np.isnan(cloud["silhouette"])
    assert cloud["raw"] == cloud["single"] == pytest.approx(-1 / 399, abs=1e-3)


def test_silhouettes_are_those_of_the_definition() -> None:
    x, labels = planted(40, 5, 4, apart=8)
    found = kmeans(x, 4, seed=0)[0]
    assert sorted(np.unique(np.stack([labels, found]), axis=1)[0].tolist()) == [0, 1, 2, 3]  # one to one
    scores = []
    for i in range(len(x)):
        mean = {c: np.mean([np.linalg.norm(x[i] - x[j]) for j in np.nonzero(found == c)[0] if j != i])
                for c in range(4)}  # fmt: skip
        a, b = mean[found[i]], min(v for c, v in mean.items() if c != found[i])
        scores.append((b - a) / max(a, b))
    assert iso.mean_silhouette(x, found) == pytest.approx(np.mean(scores), rel=1e-9)
    lone = np.array([[0.0, 0], [0, 1], [9, 9]])
    assert iso.mean_silhouette(lone, np.array([0, 0, 1])) == pytest.approx(2 * (1 - 1 / np.hypot(9, 8.5)) / 3, rel=0.02)
    assert np.isnan(iso.mean_silhouette(lone, np.zeros(3, int)))
    assert iso.mean_silhouette(lone, np.arange(3)) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(iso.RogueDimensions, redraws=-1), "rogue_dimensions redraws=-1: expected 0 or more"),
        (partial(iso.IntrinsicDimension, k=1), "intrinsic_dimension k=1: expected at least 2 neighbours"),
        (partial(iso.ClusterAdjustedSimilarity, clusters=0),
         "cluster_adjusted_similarity clusters=0: expected 1 or more, or null for the best silhouette"),
    ],
    ids=["redraws", "k", "clusters"],
)  # fmt: skip
def test_bad_arguments_are_named(make: Callable[[], Metric], message: str) -> None:
    with pytest.raises(Exception, match=message):
        make()
