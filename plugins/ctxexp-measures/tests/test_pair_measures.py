"""Edit distance and QNLI against the textbook recurrence, SciPy and scikit-learn; QNLI's file; their laws."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.calibration.edit_distance import EditDistance, Units
from ctxexp_measures.calibration.qnli import qnli, resampled_auc
from scipy import stats
from sklearn.metrics import roc_auc_score

from ctxexp import Group, Pairs
from ctxexp.maths import resamples
from tests import naive
from tests.gold_pairs import measured, pairs
from tests.measuring_helpers import Sides
from tests.metric_tester import Case, MetricTester, Statistics

# Edit distance.


def levenshtein(a: Sequence[str], b: Sequence[str]) -> int:
    """The textbook recurrence."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def compared(units: Units, threshold: int, split: Callable[[str], Sequence[str]]) -> Case:
    def values(groups: Sequence[Group]) -> Statistics:
        s = np.array([naive.cosine(x, y) for group in groups for x, y in group.x])
        g = np.concatenate([group.gold_pairs().gold for group in groups])
        d = np.array([levenshtein(split(a), split(b)) for group in groups for a, b in group.gold_pairs().texts])
        near = d <= threshold
        assert 10 < near.sum() < 100
        found = {"near_n": near.sum()}
        for prefix, at in (("", slice(None)), ("near_", near)):
            for name, (x, y) in {
                "similarity_distance": (s, d),
                "gold_distance": (g, d),
                "similarity_gold": (s, g),
            }.items():
                found[f"{prefix}{name}"] = 100 * stats.spearmanr(x[at], y[at]).statistic
        ranks = [stats.rankdata(c) - np.mean(stats.rankdata(c)) for c in (s, g, d)]
        left = [r - ranks[2] * (r @ ranks[2]) / (ranks[2] @ ranks[2]) for r in ranks[:2]]
        return {**found, "partial": 100 * stats.pearsonr(*left).statistic}

    return Case(
        metric="edit_distance", options={"units": units, "threshold": threshold}, values=values, draw=drawn,
        also=COSINE, within=1e-8,
    )  # fmt: skip


def drawn(rng: np.random.Generator, *, grades: int = 6) -> list[Group]:
    seed = int(rng.integers(99))
    return [pairs(seed + n, n, grades=grades).group(f"T/{n}") for n in (60, 50)]


def area(groups: Sequence[Group]) -> Statistics:
    gold = np.concatenate([group.gold_pairs().gold for group in groups])
    cosines = [naive.cosine(x, y) for group in groups for x, y in group.x]
    return {"auc": 100 * roc_auc_score(gold, cosines), "n": len(gold), "entailed": gold.sum()}


ONE_GOLD = Sides(*np.random.default_rng(0).normal(size=(2, 9, 4)), np.ones(9), [("a", "b")] * 9)
COSINE = frozenset({"rotation", "scale", "row_scale"})


class TestFormulas(MetricTester):
    cases = (
        compared("characters", 7, list),
        compared("words", 3, str.split),
        Case(
            metric="qnli", values=area, draw=lambda rng: drawn(rng, grades=2), also=COSINE,
            edges={"one gold value": ([ONE_GOLD.group("QNLI")], {"auc": np.nan})},
        ),
    )  # fmt: skip


def test_edit_distance_has_intervals_and_a_table() -> None:
    metric = EditDistance(units="characters", threshold=7)
    got = measured(metric, {"T/a": pairs(1, 60), "T/b": pairs(2, 50)}, 300)
    assert metric.definition.endswith("Levenshtein distance in characters")
    for name in ("similarity_distance", "similarity_gold", "partial", "near_similarity_gold"):
        assert got[f"{name}_ci_low"] < got[name] < got[f"{name}_ci_high"]
    rows = metric.outputs()["table"]
    assert sum(r["n"] for r in rows) == 110
    assert rows[0]["n"] == got["near_n"]
    assert [(r["distance_from"], r["distance_to"]) for r in rows[:2]] == [(0, 7), (8, 14)]
    assert rows[0]["gold_mean"] > rows[-1]["gold_mean"]


def test_words_are_lower_cased_and_marks_are_words() -> None:
    p = pairs(12, n=4)
    texts = [("A cat, asleep.", "a CAT asleep"), ("Don't go", "do n't go"), ("one", "two"), ("a b c d", "d c b a")]
    assert sum(levenshtein(a, b) for a, b in texts) == 15  # characters
    columns = EditDistance().columns("T", Pairs(p.gold, texts))
    assert columns["distance"].tolist() == [2, 0, 1, 4]


# QNLI.


GLUE = (
    "index\tquestion\tsentence\tlabel\n"
    '0\tWho wrote "Emma?\tJane Austen wrote it in 1815.\tentailment\n'
    "1\tWhere is it?\tNobody knows.\tnot_entailment\r\n"
    "2\tWhere is it?\tIn Bath .\tentailment\n"
)


@pytest.mark.parametrize("ties", [False, True])
def test_resampled_areas_are_those_of_the_drawn_pairs(ties: bool) -> None:
    x, y = np.random.default_rng(7).normal(size=(2, 25))
    x = np.round(x) if ties else x
    (counts,) = resamples([10, 15], 40, np.random.default_rng(8))
    for row, got in zip(counts.astype(int), resampled_auc(x, x + y > 0, counts), strict=True):
        assert got == pytest.approx(roc_auc_score(np.repeat(x + y > 0, row), np.repeat(x, row)), abs=1e-12)


def test_qnli_reads_glues_file(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text(GLUE, encoding="utf-8", newline="")
    corpus = qnli(path=str(tmp_path))
    assert [p.gold for p in corpus.pairs] == [1, 0, 1]
    assert {p.subset for p in corpus.pairs} == {"QNLI"}
    assert [s.text for s in corpus.sentences[:2]] == ['Who wrote "Emma?', "Jane Austen wrote it in 1815."]
    assert len(qnli(path=str(tmp_path / "dev.tsv"), limit=2).pairs) == 2
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(GLUE.encode()))
    assert qnli(path=str(tmp_path / "packed.tsv.gz")).fingerprint == corpus.fingerprint
