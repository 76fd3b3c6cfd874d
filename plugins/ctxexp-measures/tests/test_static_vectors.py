"""Static vectors: directions against the full SVD, the metric's laws, exports, and the paper's table of a sweep."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.words.directions import first_directions
from ctxexp_measures.words.load import load
from ctxexp_measures.words.metric import StaticVectors
from ctxexp_measures.words.space import WordSpace
from ctxexp_measures.words.suite import evaluate

from ctxexp import Group

SHAPES = [(2, 5), (3, 768), (25, 60), (60, 25), (1500, 30), (2, 1)]


def by_svd(x: np.ndarray, centred: bool) -> np.ndarray:
    """The definition: numpy's SVD of one group, the sign by the mean row."""
    rows = x.astype(np.float64)
    mean = rows.mean(0)
    v = np.linalg.svd(rows - mean if centred else rows, full_matrices=False)[2][0]
    return np.asarray(v if v @ mean >= 0 else -v)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_directions_are_those_of_the_full_svd(n: int, d: int, shift: float, centred: bool) -> None:
    x = (np.random.default_rng(n).normal(size=(3, n, d)) + shift).astype(np.float32)
    got = first_directions(x, centred=centred)
    assert got.shape == (3, d)
    for group, v in zip(x, got, strict=True):
        assert v == pytest.approx(by_svd(group, centred), abs=1e-8)


def test_the_sign_is_the_means_and_settled_without_one() -> None:
    x = np.array([[-3.0, 0.1], [-2.0, 0.0], [-1.0, -0.1]])
    assert first_directions(np.stack([x, -x]))[:, 0].tolist() == pytest.approx([-1, 1], abs=1e-2)
    balanced = np.array([[1.0, -4.0], [-1.0, 4.0]])  # the mean is zero: the largest entry is positive
    assert first_directions(np.stack([balanced, -balanced])).tolist() == [
        pytest.approx([-1 / math.sqrt(17), 4 / math.sqrt(17)])
    ] * 2  # fmt: skip


@pytest.mark.parametrize("n", [3, 30, 100])
def test_no_direction_is_nan_and_leaves_the_others_alone(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(5, n, 40)).astype(np.float32) + 1
    x[1] = 0
    x[2, 0, 0] = np.nan
    x[3, 0, 0] = np.inf
    got = first_directions(x)
    assert np.isnan(got[1:4]).all()
    for i in (0, 4):
        assert got[i] == pytest.approx(by_svd(x[i], False), abs=1e-8)
    same = np.broadcast_to(x[:1, :1], (1, n, 40))
    assert np.isnan(first_directions(same, centred=True)).all()
    assert first_directions(same)[0] == pytest.approx(x[0, 0] / np.linalg.norm(x[0, 0].astype(float)), abs=1e-7)
    assert np.isnan(first_directions(x[:, :1], centred=True)).all()


# The metric, on words of a small benchmark folder.

WORDS = [f"w{i}" for i in range(30)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    folder = tmp_path / "word"
    folder.mkdir()

    def draw(n: int) -> list[str]:
        return [WORDS[i] if i < 30 else "absent" for i in rng.choice(34, n, replace=False)]

    (folder / "rw.txt").write_text("".join(f"{'	'.join(draw(2))}\t{i % 7}\t1\n" for i in range(40)))
    (folder / "questions-words.txt").write_text(": s\n" + "".join(f"{' '.join(draw(4))}\n" for _ in range(60)))
    (folder / "ap.csv").write_text(",category,word\n" + "".join(f"{i},{i % 3},{w}\n" for i, w in enumerate(WORDS)))
    return folder


NAMES = ["rw", "google", "ap"]


def groups() -> list[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        (w, (rng.normal(size=(2 + i % 5, 12)) + rng.normal(size=12)).astype(np.float32)) for i, w in enumerate(WORDS)
    ]


def fed(metric: StaticVectors, given: list[tuple[str, np.ndarray]]) -> StaticVectors:
    for key, x in given:
        metric.update(Group(key, x))
    return metric


@pytest.mark.parametrize("vector", ["first_pc", "first_pc_centred", "mean"])
def test_it_scores_the_vectors_of_the_definition(data: Path, vector: Any) -> None:
    metric = fed(StaticVectors(vector=vector, data=str(data), benchmarks=NAMES), groups())
    by_word = {
        w: x.astype(np.float64).mean(0) if vector == "mean" else by_svd(x, vector == "first_pc_centred")
        for w, x in groups()
    }
    words, vectors = metric.vectors()
    sizes = {w: len(x) for w, x in groups()}
    assert words == sorted(WORDS, key=lambda w: (-sizes[w], w))
    assert vectors == pytest.approx(np.array([by_word[w] for w in words]), abs=1e-6)
    expected = {s.benchmark: s for s in evaluate(WordSpace.of(words, vectors), load(data, NAMES)) if not s.part}
    got = metric.compute()
    for name in NAMES:
        assert got[name] == expected[name].value
        assert got[f"{name}_covered"] == expected[name].share
    assert 0 < got["rw_covered"] < 1
    assert got["ap_covered"] == 1
    assert (got["n"], got["undefined"], got["vocabulary"]) == (30, 0, 30)


def test_words_without_a_vector_are_counted(data: Path) -> None:
    given = [*groups(), ("zero", np.zeros((3, 12), np.float32)), ("W1", np.ones((9, 12), np.float32))]
    got = fed(StaticVectors(data=str(data), benchmarks=NAMES), given).compute()
    assert (got["n"], got["undefined"], got["vocabulary"]) == (31, 1, 30)  # W1 and w1 are one word
    (data / "list").write_text("w1\nw2\n")
    for words, choices in ((31, {"lower": False}), (2, {"shared_vocabulary": str(data / "list")})):
        metric = StaticVectors(data=str(data), benchmarks=NAMES, **choices)  # type: ignore[arg-type]
        assert fed(metric, given).compute()["vocabulary"] == words
    none = fed(StaticVectors(data=str(data), benchmarks=NAMES, vector="first_pc_centred"), [("w1", np.ones((4, 3)))])
    got = none.compute()
    assert (got["n"], got["undefined"], got["rw_covered"]) == (0, 1, 0)
    assert math.isnan(got["rw"])
    assert StaticVectors(data=str(data), benchmarks=NAMES).compute()["n"] == 0
