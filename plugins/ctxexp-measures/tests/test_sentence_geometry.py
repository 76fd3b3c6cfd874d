"""Geometry of sentence vectors against the definitions: double loops, singular values, IsoScore's own algorithm."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ctxexp_measures.calibration.sentence_geometry import SentenceGeometry

from ctxexp import Group
from ctxexp.errors import MetricError
from ctxexp.maths import Moments, effective_rank, isoscore, participation_ratio
from ctxexp.testing import check
from tests.engine import Sides, computed
from tests.shipped import Whitening

RNG = np.random.default_rng(0)


def cloud(n: int = 60, d: int = 7, *, shift: float = 2.0) -> np.ndarray:
    """Rows (n, d) float32 off the origin, of unequal spread."""
    return (RNG.normal(size=(n, d)) * np.linspace(3, 0.2, d) + shift).astype(np.float32)


def pairs(x: np.ndarray) -> Sides:
    """All rows once, as sentences of pairs."""
    half = len(x) // 2
    texts = [(f"sentence {i}", f"sentence {i + half}") for i in range(half)]
    return Sides(x[:half], x[half : 2 * half], np.zeros(half), texts)


def measured(*parts: Sides) -> dict[str, float]:
    metric = SentenceGeometry()
    for i, part in enumerate(parts):
        metric.update(part.group(f"task/{i}"))
    return computed(metric, np.random.default_rng(0), 0)


def rudman(x: np.ndarray) -> float:
    """IsoScore step by step, as Rudman et al. 2022 have it in Algorithm 1."""
    x = x.astype(np.float64)
    d = x.shape[1]
    _, _, axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    variances = np.var((x - x.mean(axis=0)) @ axes.T, axis=0, ddof=1)  # the diagonal of the covariance after PCA
    normalised = np.sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    used = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2  # the share of dimensions that are used evenly
    return float((d * used - 1) / (d - 1))


def test_mean_cosine_is_the_double_loops() -> None:
    x = cloud().astype(np.float64)
    cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in itertools.combinations(x, 2)]
    assert measured(pairs(x))["mean_cosine"] == pytest.approx(np.mean(cosines), abs=1e-12)


def test_the_spectrum_is_that_of_the_definitions() -> None:
    x = cloud()
    found = measured(pairs(x))
    singular = np.linalg.svd(x - x.mean(axis=0, dtype=np.float64), compute_uv=False)
    p = singular / singular.sum()
    assert found["effective_rank"] == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-10)
    v = singular**2
    assert found["participation_ratio"] == pytest.approx(v.sum() ** 2 / (v**2).sum(), rel=1e-10)
    assert found["isoscore"] == pytest.approx(rudman(x), rel=1e-10)
    assert (found["n"], found["zero_vectors"]) == (60, 0)


@pytest.mark.parametrize("d", [2, 3, 16])
def test_isoscore_is_rudmans_and_ends_at_0_and_1(d: int) -> None:
    x = RNG.normal(size=(200, d)) @ RNG.normal(size=(d, d))
    assert isoscore(Moments().add(x).trace_one_covariance()) == pytest.approx(rudman(x), abs=1e-10)
    assert isoscore(np.eye(d) / d) == pytest.approx(1, abs=1e-12)
    line = np.zeros((d, d))
    line[0, 0] = 1
    assert isoscore(line) == pytest.approx(0, abs=1e-12)
    assert participation_ratio(np.eye(d) / d) == pytest.approx(d)
    assert effective_rank(np.eye(d) / d) == pytest.approx(d)


def test_only_the_cosine_depends_on_a_shift() -> None:
    x = cloud(d=5).astype(np.float64)
    turn, _ = np.linalg.qr(RNG.normal(size=(5, 5)))
    before, turned, moved = (measured(pairs(y)) for y in (x, 7 * x @ turn, x + 30))
    assert turned == pytest.approx(before, rel=1e-9)
    assert {k: v for k, v in moved.items() if k != "mean_cosine"} == pytest.approx(
        {k: v for k, v in before.items() if k != "mean_cosine"}, rel=1e-9
    )
    assert moved["mean_cosine"] > before["mean_cosine"] + 0.1


def test_a_sentence_of_several_pairs_counts_once() -> None:
    x = cloud(6)
    p = pairs(x)
    texts = [(f"sentence {i}", f"sentence {(i + 1) % 3}") for i in range(3)]
    again = Sides(p.x, p.x[[1, 2, 0]], np.ones(3), texts)
    assert measured(p, again) == measured(p)
    other = Sides(p.x, p.y, p.gold, [("new " + a, "new " + b) for a, b in p.texts])  # equal vectors, other sentences
    assert measured(p, other)["n"] == 12


def test_whitened_sentences_are_isotropic() -> None:
    x = cloud(80)
    white = Whitening().fit(x).apply(x)
    found = measured(pairs(white))
    assert found["isoscore"] == pytest.approx(1, abs=1e-6)
    assert found["mean_cosine"] < 0 < measured(pairs(x))["mean_cosine"]
    assert found["participation_ratio"] == pytest.approx(7, abs=1e-5)


def test_columns_that_a_transform_left_empty_are_no_dimensions() -> None:
    x = cloud(80)
    kept = np.zeros_like(x)
    kept[:, :3] = Whitening(k=3).fit(x).apply(x)
    assert measured(pairs(kept)) == pytest.approx(measured(pairs(kept[:, :3].copy())), rel=1e-9)
    assert measured(pairs(kept))["isoscore"] == pytest.approx(1, abs=1e-6)


def test_pieces_of_any_size_add_up() -> None:
    x = RNG.normal(size=(2 * 1024 + 5, 3)) + 1e4
    whole, parts = Moments().add(x), Moments().add(x[:1]).add(x[1:700]).add(x[700:])
    assert (whole.n, parts.n) == (2 * 1024 + 5,) * 2
    np.testing.assert_allclose(whole.scatter, parts.scatter, rtol=1e-9)
    np.testing.assert_allclose(whole.scatter, np.cov(x.T, bias=True) * len(x), rtol=1e-7)
    assert whole.mean_cosine() == pytest.approx(parts.mean_cosine(), abs=1e-12)


def test_what_is_undefined_is_nan() -> None:
    x = cloud(6)
    x[0] = 0
    found = measured(pairs(x))
    assert found["zero_vectors"] == 1
    assert found["mean_cosine"] == pytest.approx(measured(pairs_of(x[1:]))["mean_cosine"], abs=1e-12)
    same = measured(pairs(np.full((6, 4), 0.1, np.float32)))
    assert same["mean_cosine"] == pytest.approx(1)
    assert all(np.isnan(same[key]) for key in ("isoscore", "participation_ratio", "effective_rank"))
    zero = measured(pairs(np.zeros((6, 4), np.float32)))
    assert np.isnan([zero["mean_cosine"], zero["isoscore"]]).all()
    assert zero["zero_vectors"] == 6
    line = measured(pairs(cloud(6, 1)))
    assert np.isnan(line["isoscore"])
    assert line["participation_ratio"] == pytest.approx(1)
    assert np.isnan(measured()["mean_cosine"])


def pairs_of(x: np.ndarray) -> Sides:
    """An odd number of sentences: the last stands in two pairs."""
    texts = [(f"sentence {i}", f"sentence {len(x) - 1}") for i in range(len(x) - 1)]
    return Sides(x[:-1], np.repeat(x[-1:], len(x) - 1, axis=0), np.zeros(len(x) - 1), texts)


def test_it_keeps_the_laws_of_pair_metrics() -> None:
    check("metric", SentenceGeometry)


def test_mistakes_are_named() -> None:
    x = cloud(4)
    with pytest.raises(MetricError, match=r"sub-set 'a': vectors of shape \(4, 2, 7\) and 4 gold values, 1 texts; exp"):
        SentenceGeometry().update(Sides(x, x, np.zeros(4), [("x", "y")]).group("a"))
    with pytest.raises(MetricError, match=r"sub-set 'a': vectors of shape \(4, 7\) and no pairs"):
        SentenceGeometry().update(Group("a", x))
