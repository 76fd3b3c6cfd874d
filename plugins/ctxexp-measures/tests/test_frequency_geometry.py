"""Frequency geometry: the double loop, planted spaces, ranks and their sources, files, the tables of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.frequency import geometry as by_rank
from ctxexp_measures.frequency import projection
from ctxexp_measures.frequency.metric import FrequencyGeometry
from ctxexp_measures.frequency.projection import project
from ctxexp_measures.frequency.ranks import ranks, read_list, vocabulary_list, vocabulary_ranks
from scipy.stats import spearmanr

from ctxexp import Group, Metric
from ctxexp.model import EmbeddingTable
from ctxexp.testing.metrics import numbers
from tests.composed import composed
from tests.measuring_helpers import computed
from tests.metric_tester import Case, MetricTester, Statistics, groups_of, rows

from .test_neighbours import double_loop

BINS = (0, 5, 20, 60)
NEIGHBOURS = ("l2", "dot", "cosine")


class WithoutText(FrequencyGeometry):
    """Ranks from counts need no text, so that its laws can be checked on random groups."""

    bind_text = Metric.bind_text


def geometry(*args: Any, **choices: Any) -> dict[str, float]:
    """The geometry as numbers alone, by the paper's bins unless others are given."""
    return numbers(by_rank.geometry(*args, **choices))


def of_bins(x: np.ndarray, rank: np.ndarray, k: int, *, same: bool) -> dict[str, list[float]]:
    """Means of each bin, from the definitions: norm, l2, dot, cosine."""
    found = {"norm": [], "l2": [], "dot": [], "cosine": []}
    for first, last in pairwise(BINS):
        members = [i for i in range(len(x)) if first <= rank[i] < last]
        among, at = (x[members], slice(None)) if same else (x, members)
        found["norm"].append(float(np.mean([math.hypot(*row) for row in x[members]])))
        for by in NEIGHBOURS:
            found[by].append(float(double_loop(among, by, k)[at].mean()))
    return found


def of_words(groups: Sequence[Group], *, same: bool) -> Statistics:
    """Words by their counts, then by name; each its mean."""
    ordered = sorted(groups, key=lambda group: (-len(group.x), str(group.key)))
    x, rank = np.array([group.x.mean(0) for group in ordered]), np.arange(len(groups))
    found = {}
    for k in (2, 3):
        expected = of_bins(x, rank, k, same=same)
        for i, (first, last) in enumerate(pairwise(BINS)):
            found |= {f"{name}_{k}nn_{first}_{last}": expected[name][i] for name in NEIGHBOURS}
            found |= {f"norm_{first}_{last}": expected["norm"][i], f"n_{first}_{last}": last - first}
    rho = spearmanr(rank[: BINS[-1]], np.linalg.norm(x[: BINS[-1]], axis=1)).statistic
    counts = {"n": BINS[-1], "outside": len(x) - BINS[-1], "unranked": 0, "undefined": 0}
    return {**found, **counts, "spearman_norm": rho}


def case(neighbours: str) -> Case:
    return Case(
        metric=WithoutText, options={"bins": BINS, "k": (2, 3), "neighbours": neighbours, "replicates": 20},
        values=lambda groups: of_words(groups, same=neighbours == "bin"), within=1e-5,
        draw=lambda rng: groups_of("word", [rows(rng, 2 + i % 7, 5) for i in range(66)]),
    )  # fmt: skip


class TestFormulas(MetricTester):
    cases = (case("all"), case("bin"))


def test_intervals_are_percentiles_of_spearman_in_resamples() -> None:
    from ctxexp.maths import resamples

    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3)) * np.linspace(1, 2, 30)[:, None]
    x[10:14] = x[10]  # ties
    got = geometry(x, np.arange(30), bins=(0, 30), k=(1,), replicates=40, seed=3)
    norm, draws = np.linalg.norm(x, axis=1), []
    for counts in np.concatenate(list(resamples([30], 40, np.random.default_rng(3)))).astype(int):
        rows = np.repeat(np.arange(30), counts)
        draws.append(stats.spearmanr(rows, norm[rows]).statistic)
    expected = np.percentile(draws, [2.5, 97.5])
    assert [got["spearman_norm_ci_low"], got["spearman_norm_ci_high"]] == pytest.approx(expected)
    assert math.isnan(geometry(x, np.arange(30), bins=(0, 30), replicates=0)["spearman_norm_ci_low"])


def test_empty_bins_are_nan_and_counted() -> None:
    x = np.random.default_rng(3).normal(size=(12, 4))
    x[4] = np.nan
    x[5] = 0
    got = geometry(x, np.arange(12), bins=(0, 6, 12, 50), k=(2,))
    assert (got["n"], got["undefined"], got["n_12_50"]) == (11, 1, 0)
    late = geometry(x, np.arange(12), bins=(2, 6), k=(2,))
    assert (late["n"], late["outside"], late["unranked"], late["undefined"]) == (3, 8, 0, 1)
    assert math.isnan(got["norm_12_50"])
    others = double_loop(np.delete(x, [4, 5], axis=0), "cosine", 2)
    assert got["cosine_2nn_0_6"] == pytest.approx(others[:4].mean())
    nothing = geometry(np.empty((0, 4)), np.empty(0, np.int64))
    assert math.isnan(nothing["spearman_norm"])
    assert nothing["n"] == 0
    assert set(nothing) == set(geometry(x, np.arange(12)))


def test_ranks_come_from_counts_order_or_list(tmp_path: Path) -> None:
    tokens = ["b", "a", "Ġthe", "##s", "the"]
    counts = np.array([3, 3, 9, 0, 1])
    assert ranks(tokens, counts, "corpus", {}).tolist() == [1, 2, 0, -1, 3]
    assert ranks(tokens, None, "corpus", {}).tolist() == [-1] * 5
    assert ranks(tokens, None, "vocabulary", {}).tolist() == [0, 1, 2, 3, 4]
    listed = tmp_path / "counts.txt"
    listed.write_text("a\t5\nthe\t70\nzebra\t6\n", encoding="utf-8")
    assert read_list(listed) == {"the": 0, "zebra": 1, "a": 2}
    assert ranks(tokens, counts, str(listed), read_list(listed)).tolist() == [-1, -1, 0, -1, -1]
    assert ranks(["a", "##s", "the"], None, str(listed), read_list(listed)).tolist() == [2, -1, 0]  # no marks: words
    spelled = {"Ġthe": 0, "the": 1, "a": 2}  # a list of this very vocabulary's pieces
    assert ranks(tokens, counts, "list", spelled).tolist() == [-1, 2, 0, -1, 1]
    for text, encoding in (("the\n\nof\nthe\n", "utf-8"), ("the\t9\nof\t8\n", "utf-8-sig")):  # as some editors save it
        listed.write_text(text, encoding=encoding)
        assert read_list(listed) == {"the": 0, "of": 1}


def fed(metric: FrequencyGeometry, groups: list[tuple[str, np.ndarray]]) -> FrequencyGeometry:
    for key, x in groups:
        metric.update(Group(key, x))
    return metric


def of_table(metric: FrequencyGeometry, table: EmbeddingTable) -> dict[str, float]:
    metric.update(Group(table.name, table.vectors, table=table))
    return computed(metric)


def test_equal_context_counts_remove_averagings_effect_on_norms() -> None:
    rng = np.random.default_rng(5)
    groups = [(f"w{i:03d}", rng.normal(size=(2 + (299 - i) // 10, 8)) + 0.5) for i in range(300)]
    averaged = computed(fed(FrequencyGeometry(bins=(0, 300)), groups))
    matched = computed(fed(FrequencyGeometry(bins=(0, 300), contexts=2), groups))
    assert averaged["spearman_norm_ci_low"] > 0.2  # by nothing but the number of rows
    assert matched["spearman_norm_ci_low"] < 0 < matched["spearman_norm_ci_high"]
    assert computed(fed(FrequencyGeometry(contexts=5), groups))["n"] == 270
    assert "permutation" not in FrequencyGeometry(contexts=2).invariances


def test_tables_leave_out_special_pieces() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    table = EmbeddingTable("input", [f"t{i}" for i in range(30)], x, np.arange(30), special=(0, 29))
    by_count = of_table(FrequencyGeometry(bins=(0, 5, 50), k=(2,)), table)
    assert by_count == pytest.approx(geometry(x[1:29], np.arange(28)[::-1], bins=(0, 5, 50), k=(2,)))
    by_order = of_table(FrequencyGeometry(bins=(0, 5, 50), k=(2,), frequency="vocabulary"), table)
    assert by_order == pytest.approx(geometry(x[1:29], np.arange(28), bins=(0, 5, 50), k=(2,)))
    assert "from: vocabulary" in FrequencyGeometry(frequency="vocabulary").definition


def test_small_texts_get_bins_of_equal_size_and_large_ones_the_papers() -> None:
    rng = np.random.default_rng(9)
    x, rank = rng.normal(size=(90, 4)), np.append(rng.permutation(400)[:83], [-1] * 7)
    got = geometry(x, rank, bins="auto", k=(2,))
    order = np.argsort(rank[:83])
    parts = [order[:21], order[21:42], order[42:63], order[63:]]  # 83 = 21 + 21 + 21 + 20
    for i, members in enumerate(parts, 1):
        assert (got[f"n_q{i}"], got[f"first_q{i}"], got[f"last_q{i}"]) == (len(members), *rank[members[[0, -1]]])
        assert got[f"norm_q{i}"] == pytest.approx(np.mean([math.hypot(*x[j]) for j in members]))
    assert (got["n"], got["outside"], got["unranked"]) == (83, 0, 7)
    filled, short = np.arange(5030), np.arange(5029)  # 30 and 29 rows in the paper's fourth bin
    assert by_rank.place_in_bins(filled, "auto")[0] == ["0_100", "100_500", "500_5000", "5000_10000"]
    assert np.bincount(by_rank.place_in_bins(filled, "auto")[1]).tolist() == [100, 400, 4500, 30]
    assert by_rank.place_in_bins(short, "auto")[0] == ["q1", "q2", "q3", "q4"]
    assert geometry(np.empty((0, 4)), np.empty(0, np.int64), bins=3)["n_q3"] == 0


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["Ġof", "the", "Ġthe", "##s", "Ġ"], {"of": 0, "the": 2, "": 4}),
        (["▁The", "▁a", "b"], {"The": 0, "a": 1}),
        (["of", "##s", "the"], {"of": 0, "the": 2}),
        (["a", "b", "c"], {}),
    ],
    ids=["byte level", "sentencepiece", "wordpiece", "alphabetical"],
)
def test_words_of_one_token_have_its_rank(tokens: list[str], expected: dict[str, int]) -> None:
    assert vocabulary_list(tokens) == expected
    assert vocabulary_ranks(["the", "THE"], {"of": 0, "the": 2}).tolist() == [2, 2]  # it has no capitals
    assert vocabulary_ranks(["the", "THE"], {"Of": 0, "the": 2}).tolist() == [2, -1]
    assert ranks(["a", "b", "c"], None, "vocabulary", {}).tolist() == [-1] * 3


def test_a_projection_is_the_uncentred_singular_value_decompositions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x = (rng.normal(size=(200, 6)) * [3, 2, 1, 1, 1, 1] - 2).astype(np.float32)
    rank = np.append(np.arange(199), -1)
    got = project(x, [str(i) for i in range(200)], rank)
    _, s, v = np.linalg.svd(x[:199].astype(np.float64), full_matrices=False)
    expected = x[:199] @ v[:2].T
    np.testing.assert_allclose(np.abs(np.column_stack([got.x, got.y])), np.abs(expected), rtol=1e-3, atol=1e-3)
    assert np.mean(got.x) > 0
    assert got.energy == pytest.approx([s[0] ** 2 / (s @ s), (s[:2] @ s[:2]) / (s @ s)])
    assert "199" not in got.words
    monkeypatch.setattr(projection, "POINTS", 50)
    some = project(x, [str(i) for i in range(200)], rank)
    assert (len(some.words), some.n, some.energy) == (50, 199, got.energy)
    assert all(abs(a) == pytest.approx(abs(got.x[int(w)])) for w, a in zip(some.words, some.x, strict=True))
    for nothing in (x[:1], x[:, :1], 0 * x):
        assert project(nothing, ["a"] * len(nothing), np.arange(len(nothing))) is None


def test_the_experiment_measures_layers_and_tables(tmp_path: Path) -> None:
    from ctxexp.command import Experiment

    text = tmp_path / "text.txt"
    text.write_text("the dog saw the cat\nthe cat saw a dog\na bird saw the dog\na cat\n", encoding="utf-8")
    overrides = ["experiment=frequency", "model=bert", "dataset=text", f"dataset.path={text}", "bootstrap=0"]
    overrides += ["metric.degeneration.rows=500", "metric.frequency_geometry.replicates=20"]
    results = Experiment(composed(*overrides, f"cache.folder={tmp_path}/cache")).run(tmp_path)
    assert results.by_name["frequency_geometry/n"].tolist() == [5.0] * results.n_layers  # a, cat, dog, saw, the
    assert results.by_name["degeneration/n"].tolist() == [17.0] * results.n_layers
    assert results.by_name["degeneration.input/n"] == 8192
    assert results.by_name["frequency_geometry.input/n"] == 6  # the words are pieces of their own
    assert results.info.tables["input"].tied
    assert (tmp_path / "frequency_geometry" / "projection.html").is_file()
    assert (tmp_path / "degeneration" / "table_input" / "spectrum.csv").is_file()
