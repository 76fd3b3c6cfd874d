"""Geometry of sentence vectors: against its definitions, after transforms, and a sentence of several pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from ctxexp_measures.calibration.sentence_geometry import SentenceGeometry

from ctxexp import Group
from tests import naive
from tests.measuring_helpers import Sides, computed
from tests.metric_tester import Case, MetricTester, Statistics, rows
from tests.shipped import Whitening

RNG = np.random.default_rng(0)
NAN = np.nan


def cloud(n: int) -> np.ndarray:
    """Rows (n, 7) float32 off the origin, of unequal spread."""
    return (RNG.normal(size=(n, 7)) * np.linspace(3, 0.2, 7) + 2).astype(np.float32)


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


def pairs_of(x: np.ndarray) -> Sides:
    """An odd number of sentences: the last stands in two pairs."""
    texts = [(f"sentence {i}", f"sentence {len(x) - 1}") for i in range(len(x) - 1)]
    return Sides(x[:-1], np.repeat(x[-1:], len(x) - 1, axis=0), np.zeros(len(x) - 1), texts)


def geometry(groups: Sequence[Group]) -> Statistics:
    """Each sentence once."""
    texts = [text for group in groups for pair in group.gold_pairs().texts for text in pair]
    vectors = [row for group in groups for pair in group.x for row in pair]
    x = np.array(list(dict(zip(texts, vectors, strict=True)).values()))
    known = {name: getattr(naive, name)(x) for name in ("isoscore", "effective_rank", "participation_ratio")}
    return {**known, "mean_cosine": naive.mean_cosine(x), "n": len(x), "zero_vectors": 0}


def edge(x: np.ndarray, **expected: float) -> tuple[list[Group], Statistics]:
    return [pairs(x).group("a")], expected


ZERO = np.concatenate([np.zeros((1, 7)), rows(np.random.default_rng(3), 5, 7)])
NO_SHAPE = dict.fromkeys(("isoscore", "participation_ratio", "effective_rank"), NAN)


class TestFormula(MetricTester):
    cases = (
        Case(
            metric="sentence_geometry", values=geometry, within=1e-6,
            also=frozenset({"rotation", "scale", "permutation"}),
            draw=lambda rng: [pairs_of(rows(rng, 41, 7)).group("a")],
            edges={
                "no pair": ([], {"mean_cosine": NAN}),
                "a zero vector": edge(ZERO, zero_vectors=1, mean_cosine=naive.mean_cosine(ZERO[1:])),
                "equal vectors": edge(np.full((6, 4), 0.1, np.float32), mean_cosine=1, **NO_SHAPE),
                "zeros": edge(np.zeros((6, 4)), mean_cosine=NAN, isoscore=NAN, zero_vectors=6),
                "one column": edge(np.arange(1.0, 7)[:, None], isoscore=NAN, participation_ratio=1),
            },
        ),
    )  # fmt: skip


def test_a_sentence_of_several_pairs_counts_once() -> None:
    x = cloud(6)
    p = pairs(x)
    texts = [(f"sentence {i}", f"sentence {(i + 1) % 3}") for i in range(3)]
    again = Sides(p.x, p.x[[1, 2, 0]], np.ones(3), texts)
    assert measured(p, again) == measured(p)
    other = Sides(p.x, p.y, p.gold, [("new " + a, "new " + b) for a, b in p.texts])  # equal vectors, other sentences
    assert measured(p, other)["n"] == 12


def test_columns_that_a_transform_left_empty_are_no_dimensions() -> None:
    x = cloud(80)
    kept = np.zeros_like(x)
    kept[:, :3] = Whitening(k=3).fit(x).apply(x)
    assert measured(pairs(kept)) == pytest.approx(measured(pairs(kept[:, :3].copy())), rel=1e-9)
    assert measured(pairs(kept))["isoscore"] == pytest.approx(1, abs=1e-6)
