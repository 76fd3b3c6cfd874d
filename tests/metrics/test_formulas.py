"""The shipped metrics as formulas: a case each; their variants and settings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ctxexp import Group, GroupMean
from ctxexp.errors import MetricError
from tests import naive
from tests.metric_tester import Case, MetricTester, Statistics, all_rows, mean_over_groups
from tests.shipped import IntraSentenceSimilarity, MaxExplainableVariance, SelfSimilarity

LONG = np.diag([1000.0, 1, 1, 1])  # of paper's sentences the long word rules the mean


def intra(*, unit_norm: bool, edge: float) -> Case:
    score = mean_over_groups(lambda x: naive.cosine_to_mean(x, unit_norm=unit_norm))
    return Case(
        metric="intra_sentence_similarity", options={"unit_norm": unit_norm}, values=score, within=1e-6,
        baseline=naive.mean_cosine, edges={"a long word": (LONG, edge), "equal rows": (np.ones((3, 4)), 1)},
    )  # fmt: skip


def explained(definition: str, one_line: float) -> Case:
    def score(x: np.ndarray) -> float:
        return naive.explained(x, definition) if len(x) > 1 else math.nan

    return Case(
        metric="max_explainable_variance", options={"definition": definition}, values=mean_over_groups(score),
        baseline=score, within=1e-6,
        edges={"a line through the origin": (np.outer([1.0, 2, 4], [3.0, 4]), one_line)},
        refused={"sample=0: expected a positive": {"sample": 0}},
    )  # fmt: skip


def lengths(x: np.ndarray) -> Statistics:
    each = [math.sqrt(sum(v * v for v in row)) for row in x]
    return {"raw": np.mean(each), "median": np.median(each), "sd": np.std(each, ddof=1)}


def anisotropy(groups: Sequence[Group]) -> Statistics:
    """Of the first sample, whenever it comes."""
    x = groups[0].x
    positive = np.mean(np.array(naive.cosines(x)) > 0)
    return {"mean_cosine": naive.mean_cosine(x), "positive_pairs": positive, "n": len(x)}


class TestFormulas(MetricTester):
    cases = (
        Case(
            metric="self_similarity", values=mean_over_groups(naive.mean_cosine), baseline=naive.mean_cosine,
            within=1e-6,
            edges={"equal rows": (np.ones((4, 3)), 1), "opposite rows": (np.array([[1.0, 2], [-1, -2]]), -1)},
            refused={"baselines=(): expected names": {"baselines": ()}},
        ),
        intra(unit_norm=False, edge=1003 / 4 / math.sqrt(1000**2 + 3)),
        intra(unit_norm=True, edge=0.5),
        explained("uncentred", 1),
        explained("centred", 1),
        explained("released", 1),
        Case(
            metric="anisotropy", values=anisotropy, baseline=naive.mean_cosine, within=1e-6,
            edges={"one row": (np.ones((1, 3)), {"mean_cosine": math.nan, "positive_pairs": math.nan, "n": 1})},
        ),
        Case(metric="word_norm", values=all_rows(lengths), within=1e-6, edges={"a zero row": (np.zeros((1, 3)), 0)}),
    )  # fmt: skip


def test_options_tell_variants_apart() -> None:
    variants = {IntraSentenceSimilarity(unit_norm=True): "unit_norm", IntraSentenceSimilarity(): ""}
    variants |= {MaxExplainableVariance(definition=of): of for of in ("centred", "released")}
    for metric, variant in {**variants, MaxExplainableVariance(): "", SelfSimilarity(): ""}.items():
        assert metric.variant == variant
        assert ("scaled to norm 1" in metric.definition) == (variant == "unit_norm")
    assert MaxExplainableVariance().baselines == ("size_matched",)


@pytest.mark.parametrize(("name", "expected"), [("unit", "reading = Reading"), ("row_influence", "_row_influence")])
def test_what_nothing_would_read_is_refused(name: str, expected: str) -> None:
    with pytest.raises(MetricError, match=rf"Mine\.{name}: expected {expected}"):
        type("Mine", (GroupMean,), {name: 0.05})
