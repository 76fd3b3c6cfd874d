"""Metrics of gold pairs against scipy, scikit-learn and hand-made aggregates; what of them is shown; their laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from ctxexp import Estimate, Group
from ctxexp.errors import MetricError
from ctxexp.maths import resampled_spearman, resamples
from ctxexp.metrics.annotated import similarities
from tests import naive
from tests.gold_pairs import cosines, measured, pairs
from tests.measuring_helpers import Sides
from tests.metric_tester import Case, MetricTester, Statistics
from tests.shipped import STS

# Similarities.


def test_equal_vectors_tie_at_one_and_zero_is_undefined() -> None:
    x = np.random.default_rng(2).normal(size=(5000, 384)).astype(np.float32)
    assert (similarities(x, x.copy()) == 1).all()
    x[7] = 0
    x[8, 0] = np.inf
    assert np.flatnonzero(np.isnan(similarities(x, x))).tolist() == [7, 8]
    assert np.flatnonzero(np.isnan(similarities(x, x, "dot"))).tolist() == [8]
    assert similarities(x, x, "euclidean")[7] == 0


# STS.


def sts(similarity: Callable[[np.ndarray, np.ndarray], float], /, *also: str, **options: str) -> Case:
    """All pairs together, and each sub-set alone, by both correlations."""

    def values(groups: Sequence[Group]) -> Statistics:
        parts = [(np.array([similarity(x, y) for x, y in group.x]), group.gold_pairs().gold) for group in groups]
        found = {"n": sum(len(gold) for _, gold in parts), "undefined": 0}
        for prefix, oracle in (("", stats.spearmanr), ("pearson_", stats.pearsonr)):
            each = [100 * oracle(*part).statistic for part in parts]
            found[f"{prefix}all"] = 100 * oracle(*map(np.concatenate, zip(*parts, strict=True))).statistic
            found[f"{prefix}mean"] = sum(each) / len(each)
            found[f"{prefix}wmean"] = np.average(each, weights=[len(gold) for _, gold in parts])
        return found

    def draw(rng: np.random.Generator) -> list[Group]:
        shapes = {"a": (30, 6), "b": (80, 3), "c": (50, 6)}
        seed = int(rng.integers(99))
        return [pairs(seed + n, n, grades=grades).group(f"T/{part}") for part, (n, grades) in shapes.items()]

    return Case(metric="sts", options=options, values=values, draw=draw, also=frozenset(also), within=1e-8)


class TestFormula(MetricTester):
    cases = (
        sts(naive.cosine, "rotation", "scale", "row_scale"),
        sts(lambda x, y: float(x @ y), "rotation", "scale", similarity="dot"),
        sts(lambda x, y: -math.dist(x, y), "rotation", "scale", "shift", similarity="euclidean"),
    )


def test_the_mean_over_tasks_has_the_mean_of_their_replicates() -> None:
    metric = STS()
    for task in ("STS12", "STS-B", "SICK"):
        metric.update(pairs(len(task), 20).group(task))
    metric.resampling = np.random.default_rng(0), 30
    of = {name: value.replicates for name, value in metric.compute().items() if isinstance(value, Estimate)}
    tasks = [of[f"{task}/all"] for task in ("STS12", "STS-B", "SICK")]
    np.testing.assert_allclose(of["avg/all"], np.mean(tasks, axis=0))  # type: ignore[arg-type]


def test_several_tasks_are_named_and_averaged() -> None:
    parts = {"STS12/a": pairs(1), "STS-B": pairs(2), "STS12/b": pairs(3)}
    got = measured(STS(), parts, 200)
    alone = measured(STS(), {k: v for k, v in parts.items() if k != "STS-B"})
    assert {key.split("/")[0] for key in got} == {"STS12", "STS-B", "avg"}
    for name in ("all", "mean", "wmean", "pearson_all", "n"):
        assert got[f"STS12/{name}"] == alone[name]
    assert got["avg/all"] == pytest.approx((got["STS12/all"] + got["STS-B/all"]) / 2)
    assert got["avg/n"] == 120
    widths = {task: got[f"{task}/all_ci_high"] - got[f"{task}/all_ci_low"] for task in ("STS12", "STS-B", "avg")}
    assert 0 < widths["avg"] < max(widths.values())


def test_intervals_equal_a_plain_loop_over_the_draws() -> None:
    """Draws are made within each sub-set; ranks anew in each resample."""
    parts = {"T/a": pairs(5, 20), "T/b": pairs(6, 31)}
    got = measured(STS(), parts, 60)
    rng = np.random.default_rng(0)  # as in correlation.resamples: one block of draws a sub-set
    drawn = [rng.integers(0, n, (60, n)) for n in (20, 31)]
    found = []
    for which in zip(*drawn, strict=True):
        taken = [(cosines(p)[i], p.gold[i]) for p, i in zip(parts.values(), which, strict=True)]
        each = [stats.spearmanr(*t).statistic for t in taken]
        whole = stats.spearmanr(*(np.concatenate(c) for c in zip(*taken, strict=True))).statistic
        found.append([whole, np.mean(each), np.average(each, weights=[20, 31])])
    low, high = np.percentile(100 * np.array(found), [2.5, 97.5], axis=0)
    for i, name in enumerate(("all", "mean", "wmean")):
        assert got[f"{name}_ci_low"] == pytest.approx(low[i], abs=1e-9)
        assert got[f"{name}_ci_high"] == pytest.approx(high[i], abs=1e-9)


def test_pairs_of_the_same_sentences_are_drawn_together() -> None:
    p = pairs(5, 20)
    twice = Sides(*(np.concatenate([v, v]) for v in (p.x, p.y, p.gold)), [*p.texts, *p.texts],
                  np.tile(np.arange(40).reshape(20, 2), (2, 1)))  # fmt: skip
    got = measured(STS(), {"T": twice}, 60)
    (counts,) = resamples([20], 60, np.random.default_rng(0))
    once = 100 * resampled_spearman([cosines(p), p.gold], counts)[:, 0, 1]
    assert (got["all_ci_low"], got["all_ci_high"]) == pytest.approx(tuple(np.percentile(once, [2.5, 97.5])), abs=1e-9)


def test_pairs_without_a_similarity_are_left_out_and_counted() -> None:
    p = pairs(7)
    x = p.x.copy()
    x[[3, 9]] = 0
    kept = np.delete(np.arange(40), [3, 9])
    got = measured(STS(), {"T": Sides(x, p.y, p.gold, p.texts)}, 100)
    assert got["all"] == pytest.approx(100 * stats.spearmanr(cosines(p)[kept], p.gold[kept]).statistic, abs=1e-10)
    assert (got["n"], got["undefined"]) == (38, 2)
    assert got["all_ci_low"] < got["all"] < got["all_ci_high"]


def test_constant_similarities_are_nan_not_zero() -> None:
    """The same vector for every sentence, as a [CLS] token at the input layer has."""
    p = pairs(8, n=300, d=384)
    same = np.repeat(p.x[:1], 300, axis=0)
    for y in (same, np.repeat(p.y[:1], 300, axis=0)):
        got = measured(STS(), {"T/a": Sides(same, y, p.gold, p.texts), "T/b": p}, 20)
        assert np.isnan(got["mean"])
        assert np.isnan(got["wmean"])
        assert np.isfinite(got["all"])
        alone = measured(STS(), {"T": Sides(same, y, p.gold, p.texts)}, 20)
        assert all(np.isnan(v) for k, v in alone.items() if k not in ("n", "undefined"))
    assert np.isnan(measured(STS(), {"T": Sides(0 * same, p.y, p.gold, p.texts)}, 20)["all"])


def test_the_table_has_a_row_a_sub_set() -> None:
    metric = STS()
    parts = {"T/a": pairs(1), "U": pairs(2)}
    measured(metric, parts, 50)
    rows = metric.outputs()["table"]
    assert [r["subset"] for r in rows] == ["T/a", "U"]
    for row, p in zip(rows, parts.values(), strict=True):
        assert row["pearson"] == pytest.approx(100 * stats.pearsonr(cosines(p), p.gold).statistic, abs=1e-10)
        assert row["spearman"] == pytest.approx(100 * stats.spearmanr(cosines(p), p.gold).statistic, abs=1e-10)
        assert row["spearman_ci_low"] < row["spearman"] < row["spearman_ci_high"]
        assert row["n"] == 40


def test_misuse_of_the_metrics_is_named() -> None:
    p = pairs(14)
    with pytest.raises(MetricError, match="no gold pairs: choose a data set that has them, such as sts_b"):
        STS().compute()
    fed = STS()
    fed.update(p.group("T"))
    with pytest.raises(MetricError, match="sub-set 'T' came twice"):
        fed.update(p.group("T"))
    with pytest.raises(MetricError, match=r"^sub-set 'T': vectors of shape \(40, 2, 6\) and 39 gold values, 40 texts"):
        STS().update(Sides(p.x, p.y, p.gold[1:], p.texts).group("T"))
