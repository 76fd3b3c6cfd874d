"""The closed forms against the papers' own steps, planted spaces with known answers, and the laws of a metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import ctxexp_measures.isotropy as iso
import numpy as np
import pytest

from ctxexp import Block, Group, Metric
from ctxexp.command import Built, configured
from ctxexp.testing import check
from tests.composed import registry_of

EACH: list[Callable[[], Metric]] = [
    iso.IsoScore, iso.EffectiveRank, partial(iso.EffectiveRank, centred=False), iso.PartitionIsotropy,
    partial(iso.PartitionIsotropy, unit_norm=True, redraws=3),
]  # fmt: skip


def space(n: int = 400, d: int = 12, seed: int = 0) -> np.ndarray:
    """Correlated vectors of unequal variances, off the origin."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / 4 + rng.normal(size=d)).astype(np.float32)


def value(metric: Metric, x: np.ndarray) -> dict[str, float]:
    """What the metric makes of all rows, fed as the framework feeds it."""
    if metric.over == "sample":
        metric.update(Group(0, x))
    else:
        for at in range(0, len(x), 97):
            metric._update_block(Block(range(at, min(at + 97, len(x))), x[at : at + 97, None]))
    return metric.compute()


def rotation(d: int) -> np.ndarray:
    q, r = np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def isoscore_as_printed(x: np.ndarray) -> float:
    """Rudman et al. 2022, Algorithm 1, step by step."""
    x = x.astype(np.float64)
    d = x.shape[1]
    _, _, components = np.linalg.svd(x - x.mean(0), full_matrices=False)
    variances = np.diag(np.cov((x @ components.T).T))  # 1-3: reorient, covariance, its diagonal
    normalised = np.sqrt(d) * variances / np.linalg.norm(variances)  # 4
    defect = np.linalg.norm(normalised - np.ones(d)) / np.sqrt(2 * (d - np.sqrt(d)))  # 5
    share = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2  # 6
    return float((d * share - 1) / (d - 1))  # 7


def partition_as_printed(x: np.ndarray) -> float:
    """Mu & Viswanath 2018: Z(c) by loops, over each eigenvector in both signs."""
    x = x.astype(np.float64)
    _, _, rows = np.linalg.svd(x, full_matrices=True)  # right singular vectors, here as rows: eigenvectors of x^T x
    z = [sum(np.exp(sign * float(c @ w)) for w in x) for c in rows for sign in (1, -1)]
    return float(min(z) / max(z))


def test_isoscore_is_the_papers_algorithm() -> None:
    for seed in range(4):
        x = space(seed=seed)
        assert value(iso.IsoScore(), x)["raw"] == pytest.approx(isoscore_as_printed(x), rel=1e-9)


def test_effective_rank_is_the_entropy_of_the_singular_values() -> None:
    x = space()
    for centred in (True, False):
        s = np.linalg.svd(x.astype(np.float64) - centred * x.mean(0, dtype=np.float64), compute_uv=False)
        p = s / s.sum()
        expected = np.exp(-(p * np.log(p)).sum())
        assert value(iso.EffectiveRank(centred=centred), x)["raw"] == pytest.approx(expected, rel=1e-9)


def test_partition_isotropy_is_the_ratio_over_eigenvectors() -> None:
    x = space(60, 5)
    got = value(iso.PartitionIsotropy(), x)
    assert got["raw"] == pytest.approx(partition_as_printed(x), rel=1e-9)
    assert got["log"] == pytest.approx(np.log(partition_as_printed(x)), rel=1e-9)
    # The rows of eigh's second result are no eigenvectors: taking them would give another number.
    _, wrong = np.linalg.eigh(x.T.astype(np.float64) @ x)
    along = x @ wrong.T
    z = np.concatenate([np.exp(along).sum(0), np.exp(-along).sum(0)])
    assert abs(got["raw"] - z.min() / z.max()) > 0.01


def test_an_even_space_scores_one() -> None:
    d = 8
    exact = np.concatenate([np.eye(d), -np.eye(d)]).astype(np.float32)
    assert value(iso.IsoScore(), exact) == pytest.approx({"raw": 1, "dimensions": d, "n": 2 * d})
    assert value(iso.EffectiveRank(), exact)["raw"] == pytest.approx(d)
    assert value(iso.PartitionIsotropy(), exact)["raw"] == pytest.approx(1)
    gaussian = np.random.default_rng(1).normal(size=(40_000, d)).astype(np.float32)
    assert value(iso.IsoScore(), gaussian)["raw"] > 0.998
    assert value(iso.EffectiveRank(), gaussian)["raw"] > 0.998 * d
    assert value(iso.PartitionIsotropy(), gaussian)["raw"] > 0.9
    few = np.random.default_rng(2).normal(size=(300, 100))  # the bias that the README states: d n / (d + n)
    assert value(iso.IsoScore(), few)["dimensions"] == pytest.approx(75, rel=0.02)


def test_a_space_of_one_direction_scores_the_minimum() -> None:
    direction = rotation(6)[0]
    line = np.outer(np.random.default_rng(3).normal(size=50), direction)
    assert value(iso.IsoScore(), line) == pytest.approx({"raw": 0, "dimensions": 1, "n": 50}, abs=1e-9)
    assert value(iso.EffectiveRank(), line)["raw"] == pytest.approx(1, abs=1e-6)
    assert value(iso.EffectiveRank(centred=False), line)["raw"] == pytest.approx(1, abs=1e-6)
    same = np.tile(3 * direction, (7, 1))  # Z is n e^3 along it, n e^-3 against it, n across
    assert value(iso.PartitionIsotropy(), same)["log"] == pytest.approx(-6)


def test_k_even_directions_of_d_score_k() -> None:
    for k in (2, 3, 5):
        x = np.zeros((2 * k, 9))
        x[:, :k] = np.concatenate([np.eye(k), -np.eye(k)])
        assert value(iso.IsoScore(), x @ rotation(9))["raw"] == pytest.approx((k - 1) / 8)
        assert value(iso.EffectiveRank(), x @ rotation(9))["raw"] == pytest.approx(k)


@pytest.mark.parametrize("factory", EACH)
def test_each_keeps_a_metrics_laws_and_declared_invariances(factory: Callable[[], Metric]) -> None:
    assert "rotation" in factory().invariances
    check("metric", factory)


@pytest.mark.parametrize("factory", EACH)
def test_rotating_a_large_space_changes_nothing(factory: Callable[[], Metric]) -> None:
    x = space().astype(np.float64)
    assert value(factory(), x @ rotation(12)) == pytest.approx(value(factory(), x), rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("factory", EACH)
def test_the_order_of_parts_hardly_shows(factory: Callable[[], Metric]) -> None:
    forth, back = factory(), factory()
    parts = [space(n, seed=n) for n in (3, 70, 1100)]
    for key, x in enumerate(parts):
        forth.update(Group(key, x))
    for key, x in reversed(list(enumerate(parts))):
        back.update(Group(key, x))
    assert back.compute() == pytest.approx(forth.compute(), rel=1e-10, nan_ok=True)


def test_samples_may_be_far_away_and_very_long() -> None:
    x = space().astype(np.float64)
    assert value(iso.IsoScore(), x + 1e6)["raw"] == pytest.approx(value(iso.IsoScore(), x)["raw"], rel=1e-6)
    long = value(iso.PartitionIsotropy(), 1e4 * x)
    assert long["raw"] == 0
    assert np.isfinite(long["log"])
    assert value(iso.PartitionIsotropy(unit_norm=True), 1e4 * x)["raw"] > 1e-3


def test_the_spread_is_that_of_the_redraws() -> None:
    metric = iso.PartitionIsotropy(redraws=2)
    samples = [space(50, seed=s) / 4 for s in range(4)]
    for key, x in enumerate(samples):
        metric.update(Group(key, x))
    each = [value(iso.PartitionIsotropy(), x)["raw"] for x in samples]
    assert metric.compute() == pytest.approx(
        {"raw": each[0], "log": np.log(each[0]), "sd": np.std(each[1:3], ddof=1), "n": 50}
    )


@pytest.mark.parametrize("factory", EACH)
def test_degenerate_spaces_are_undefined_not_wrong(factory: Callable[[], Metric]) -> None:
    assert np.isnan(factory().compute()["raw"])
    if factory().over == "occurrence":
        zero = value(factory(), np.zeros((20, 4), np.float32))
        assert np.isnan(zero["raw"])
        assert zero["n"] == 20
    equal = np.tile(np.float32([0.1, 0.7, 1e3]), (500, 1))
    if factory is iso.IsoScore or factory is iso.EffectiveRank:
        assert np.isnan(value(factory(), equal)["raw"])
    assert np.isnan(value(iso.IsoScore(), np.arange(5.0)[:, None])["raw"])  # one dimension
    assert np.isnan(value(iso.PartitionIsotropy(unit_norm=True), np.zeros((3, 2)))["raw"])


def test_redraws_are_not_negative() -> None:
    with pytest.raises(Exception, match="partition_isotropy redraws=-1: expected 0 or more"):
        iso.PartitionIsotropy(redraws=-1)


def test_registered_without_a_config_file() -> None:
    registry = registry_of([("isotropy", iso)])
    assert {"isoscore", "effective_rank", "partition_isotropy"} <= set(registry.names("metric"))
    assert registry.find("metric", "effective_rank").factory(centred=False).centred is False
    assert registry.broken == []


def test_sums_of_one_pass_are_kept_for_the_next_run(tmp_path: Path) -> None:
    options = ["one_pass.shards=2", "bootstrap=0", "min_contexts=2", f"cache.folder={tmp_path}"]
    text = ["The bank was wet.", "The bank lent us money.", "We sat on the bank."]
    metrics = ["isoscore", "effective_rank", "participation_ratio", "first_component"]
    first, again = (Built(configured("gpt2", text, options, metrics=metrics)).run(tmp_path) for _ in range(2))
    assert (first.info.encoded, again.info.encoded) == (3, 0)
    np.testing.assert_array_equal(first.frame.value, again.frame.value)
