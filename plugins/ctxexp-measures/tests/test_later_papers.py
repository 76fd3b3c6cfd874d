"""Matrix entropy, curvature, first component, IsoScore*, symmetry: references as printed, planted spaces, laws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import ctxexp_measures.isotropy as iso
import numpy as np
import pytest

from ctxexp import Block, Group, Metric
from ctxexp.errors import MetricError
from ctxexp.model import EmbeddingTable
from ctxexp.testing import check
from tests.shipped import Whitening

EACH: list[Callable[[], Metric]] = [
    iso.MatrixEntropy, partial(iso.MatrixEntropy, definition="released"), iso.Curvature,
    partial(iso.Curvature, definition="released"), iso.FirstComponent, partial(iso.IsoScoreStar, batch=5), iso.Symmetry,
]  # fmt: skip
IDS = ["entropy", "entropy, released", "curvature", "curvature, released", "first", "star", "symmetry"]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("factory", EACH, ids=IDS)
def test_each_keeps_a_metrics_laws_and_declared_invariances(factory: Callable[[], Metric]) -> None:
    check("metric", factory)


def entropy_as_released(x: np.ndarray) -> float:
    """compute_entropy of the released code with its normalize, alpha = 1: by loops."""
    n, d = x.shape
    x = x - x.mean(0)
    x = np.array([row / np.sqrt((row**2).sum()) for row in x])
    cov = x.T @ x if n > d else x @ x.T
    cov = np.array([[max(value, 0.0) for value in row] for row in cov])
    values = np.abs(np.linalg.eigvalsh(cov / np.trace(cov)))
    return float(-sum(v * np.log(v) for v in values if v > 0))


def curvature_as_released(x: np.ndarray) -> float:
    x = x - x.mean(0)
    x = np.array([row / np.sqrt((row**2).sum()) for row in x])
    angles = []
    for k in range(1, len(x) - 1):
        a, b = x[k] - x[k - 1], x[k + 1] - x[k]
        angles.append(float(np.arccos(min(1.0, abs(float(a @ b)) / np.sqrt(a @ a) / np.sqrt(b @ b)))))
    return float(np.mean(angles))


@pytest.mark.parametrize(("n", "d"), [(9, 20), (20, 6)])
def test_both_definitions_are_those_that_were_printed_and_released(n: int, d: int) -> None:
    x = normal(n, d) + 0.5
    values = np.linalg.eigvalsh(x @ x.T)
    p = values[values > 1e-12] / values.sum()
    assert iso.MatrixEntropy().score(x[None])[0] == pytest.approx(-(p * np.log(p)).sum())
    assert iso.MatrixEntropy(definition="released").score(x[None])[0] == pytest.approx(entropy_as_released(x))
    steps = np.diff(x, axis=0)
    angles = [np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairwise(steps)]
    assert iso.Curvature().score(x[None])[0] == pytest.approx(np.mean(angles))
    assert iso.Curvature(definition="released").score(x[None])[0] == pytest.approx(curvature_as_released(x))


def test_collinear_words_have_entropy_0_or_log_2_by_variant() -> None:
    line = np.outer([1.0, 2.0, 3.0, 4.0], normal(8))[None]
    assert iso.MatrixEntropy().score(line)[0] == pytest.approx(0, abs=1e-9)
    assert iso.MatrixEntropy(definition="released").score(line)[0] == pytest.approx(np.log(2))
    even = np.eye(6)[None]
    assert iso.MatrixEntropy().score(even)[0] == pytest.approx(np.log(6))


def test_independent_words_have_the_variants_two_angles() -> None:
    x = normal(1, 400, 500)
    assert iso.Curvature().score(x)[0] == pytest.approx(2 * np.pi / 3, abs=0.01)
    assert iso.Curvature(definition="released").score(x)[0] == pytest.approx(np.pi / 3, abs=0.01)
    straight = np.arange(5.0)[:, None] * normal(4)
    assert iso.Curvature().score(straight[None])[0] == pytest.approx(0, abs=1e-6)
    back = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])[None]
    assert iso.Curvature().score(back)[0] == pytest.approx(np.pi)
    held = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])[None]  # a word that equals the one before
    assert np.isnan(iso.Curvature().score(held)[0])


def test_first_component_share_and_mean_cosine_are_different_anisotropies() -> None:
    """One direction of much variance about the origin: the first is large, the other 0; a common mean: the reverse."""
    long = normal(4000, 10) * [30, *[1] * 9]
    moved = normal(4000, 10) + 30 * np.eye(10)[0]
    for x, share, cosine in ((long, 900 / 909, 0.0), (moved, 0.1, 0.98)):
        metric = iso.FirstComponent()
        metric._update_block(Block(range(len(x)), x[:, None]))
        values = metric.compute()
        assert values["raw"] == pytest.approx(share, abs=0.02)
        assert values["mean_cosine"] == pytest.approx(cosine, abs=0.02)
        spectrum = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
        assert values["raw"] == pytest.approx(spectrum[0] / spectrum.sum())
        assert values["n"] == 4000


def star_as_printed(x: np.ndarray, target: np.ndarray, zeta: float) -> float:
    """Rudman & Eickhoff 2024, Algorithm 1, step by step."""
    d = x.shape[1]
    shrunk = (1 - zeta) * np.cov(x.T) + zeta * target
    values = np.linalg.eigvalsh(shrunk)
    normalised = np.sqrt(d) * values / np.linalg.norm(values)
    defect = np.linalg.norm(normalised - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    share = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * share - 1) / (d - 1))


def test_isoscore_star_follows_the_printed_algorithm_for_few_rows() -> None:
    x = normal(40, 12) * np.linspace(1, 3, 12)
    target = np.cov(normal(900, 12, seed=1).T)
    assert iso.isoscore_star(x, target, 0.3) == pytest.approx(star_as_printed(x, target, 0.3))
    assert iso.isoscore_star(x, None, 0.0) == pytest.approx(star_as_printed(x, target, 0.0))
    metric = iso.IsoScoreStar(batch=20, zeta=0.75)
    metric.update(Group(0, normal(3000, 60, seed=2)))
    values = metric.compute()
    assert values["isoscore"] < 0.3
    assert values["all_of"] > 0.95
    assert values["raw"] > values["isoscore"] + 0.4
    assert values["n"] == 20
    for arguments in ({"batch": 1}, {"zeta": 1.1}):
        with pytest.raises(MetricError, match="expected 2 rows or more, and 0 to 1"):
            iso.IsoScoreStar(**arguments)  # type: ignore[arg-type]


def test_zipfian_whitening_makes_the_weighted_moments_those_of_a_ball() -> None:
    vectors = normal(300, 8) @ normal(8, 8, seed=1) + 4
    counts = np.floor(1000 / np.arange(1, 301))
    white, p = iso.zipfian_whitening(vectors, counts), counts / counts.sum()
    assert p @ white == pytest.approx(np.zeros(8), abs=1e-9)
    assert white.T @ (p[:, None] * white) == pytest.approx(np.eye(8), abs=1e-9)
    flat = iso.zipfian_whitening(np.hstack([vectors, vectors[:, :2]]), counts)
    assert flat.shape == (300, 8)  # what is linearly dependent is no direction
    for counts_of, words in ((np.ones(3), "counts of shape (3,): expected 300"), (np.zeros(300), "not all 0")):
        with pytest.raises(MetricError) as refused:
            iso.zipfian_whitening(vectors, counts_of)
        assert words in str(refused.value)


def test_whitened_occurrences_are_zipfian_already() -> None:
    """A vector a word, as often as it is met: whitening the rows whitens the words by frequency, up to a rotation."""
    vectors, counts = normal(30, 4) + 2, np.arange(1, 31)
    rows = np.repeat(vectors, counts, axis=0).astype(np.float32)
    by_rows = Whitening().fit(rows).apply(vectors.astype(np.float32))
    by_words = iso.zipfian_whitening(vectors, counts)
    assert by_rows @ by_rows.T == pytest.approx(by_words @ by_words.T, abs=0.02 * float((by_words**2).sum(1).max()))


def test_symmetry_weighs_words_by_frequency_and_names_both_choices() -> None:
    """Frequent words about the origin, rare ones far off: skewed where each counts once, all but even by frequency."""
    x = np.vstack([normal(50, 6), normal(50, 6, seed=1) * [1, 1, 1, 1, 1, 12] + 20])
    counts = np.repeat([400, 1], 50)
    metric = iso.Symmetry()
    for word, (row, n) in enumerate(zip(x, counts.tolist(), strict=True)):
        metric.update(Group(word, np.repeat(row[None], n, axis=0)))
    values = metric.compute()
    assert values["raw"] > values["uniform"] + 0.1
    assert values["first"] > values["uniform_first"] + 0.3
    p = counts / counts.sum()
    mean = p @ x
    assert values["first"] == pytest.approx(1 - np.linalg.norm(mean) / (p @ np.linalg.norm(x, axis=1)))
    eigen = np.linalg.eigvalsh(sum(w * np.outer(r - mean, r - mean) for w, r in zip(p, x, strict=True)))
    share = eigen / eigen.sum()
    assert values["raw"] == pytest.approx(-(share * np.log(share)).sum() / np.log(6))
    tokens = [str(i) for i in range(101)]
    table = EmbeddingTable("in", tokens, np.vstack([x, [900.0] * 6]).astype(np.float32), np.append(counts, 7), (100,))
    of_table = iso.Symmetry()
    of_table.update(Group("in", table.vectors, table=table))
    assert of_table.compute() == pytest.approx(values, rel=1e-5)
    unknown = iso.Symmetry()
    unknown.update(Group("in", table.vectors, table=EmbeddingTable("in", tokens, table.vectors, None)))
    assert np.isnan(unknown.compute()["raw"])
    assert np.isfinite(unknown.compute()["uniform"])


@pytest.mark.parametrize("factory", EACH, ids=IDS)
def test_degenerate_spaces_are_undefined_not_wrong(factory: Callable[[], Metric]) -> None:
    assert np.isnan(factory().compute()["raw"])
    metric = factory()
    for key in range(2):
        metric.update(Group(key, np.zeros((20, 4))))
    assert np.isnan(metric.compute()["raw"])


def test_an_unknown_definition_is_refused() -> None:
    with pytest.raises(MetricError, match="curvature definition='both': expected defined or released"):
        iso.Curvature(definition="both")  # type: ignore[arg-type]
