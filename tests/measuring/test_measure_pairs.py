"""Pair metrics get each layer's transformed sentence vectors: the same numbers as a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, Estimate, Group, Metric, Pair, Reading, Results, Sentence
from ctxexp.results import Key
from ctxexp.vectors.stores import layer_mixes
from tests.measuring_helpers import TextFile, measure_pairs
from tests.sample_results import run_info
from tests.shipped import Standardize

N_LAYERS, N, DIM = 4, 30, 6
MIXES = layer_mixes(["last2", [0, 2]], N_LAYERS)


class Vectors:
    def __init__(self, seed: int, n: int = N) -> None:
        rng = np.random.default_rng(seed)
        self.stack = (rng.standard_normal((N_LAYERS, n, DIM)) * rng.random(DIM) + 1).astype(np.float32)
        self.n_layers, self.layer_numbers, self.dim = N_LAYERS, range(N_LAYERS), DIM

    def layer(self, i: int) -> np.ndarray:
        return self.stack[i].copy()


class Dot(Metric):
    """The mean product of a pair's vectors by sub-set, and over all pairs the covariance with gold."""

    over = "pair"
    definition = "mean product"
    reading = Reading(unit="product", main="all")

    def __init__(self) -> None:
        self.seen = {}

    def update(self, group: Group) -> None:
        pairs = group.gold_pairs()
        assert group.key not in self.seen
        assert len(pairs.texts) == len(pairs) == len(group.x)
        self.seen[str(group.key)] = (group.x[:, 0].astype(float) * group.x[:, 1]).sum(1), pairs.gold

    def compute(self) -> dict[str, float]:
        every = np.concatenate([dots * gold for dots, gold in self.seen.values()])
        return {"all": every.mean(), "draw": self.resampling[0].random(), "replicates": self.resampling[1]} | {
            f"{name}/mean": dots.mean() for name, (dots, _) in self.seen.items()
        }

    def outputs(self) -> dict[str, Any]:
        rows = [{"subset": name, "n": len(gold)} for name, (_, gold) in self.seen.items()]
        return {"table": rows, "seen": TextFile("seen.txt", " ".join(self.seen))}


def place() -> tuple[Corpus, Vectors]:
    rng = np.random.default_rng(5)
    sentences = tuple(Sentence.of(["word", str(i)]) for i in range(N))
    pairs = [Pair(int(a), int(b), float(rng.random()), ["A/x", "A/y", "B"][k % 3])
             for k, (a, b) in enumerate(rng.integers(0, N, (50, 2)))]  # fmt: skip
    return Corpus("gold", sentences, tuple(pairs)), Vectors(1)


def by_loop(corpus: Corpus, layer: np.ndarray) -> dict[str, float]:
    """The metric's values, a pair at a time."""
    found = {}
    weighted = []
    for pair in corpus.pairs:
        dot = float(layer[pair.first].astype(float) @ layer[pair.second])
        if np.isfinite(dot):
            found.setdefault(pair.subset, []).append(dot)
            weighted.append(dot * pair.gold)
    return {"all": float(np.mean(weighted)), **{f"{name}/mean": float(np.mean(v)) for name, v in found.items()}}


def run(corpus: Corpus, vectors: Vectors, metric: Callable[[], Metric] = Dot, **more: Any) -> Results:
    return measure_pairs(vectors, corpus, {"dot": metric}, mixes=MIXES, bootstrap=7, **more)


def check(results: Results, corpus: Corpus, layers: list[np.ndarray], mixes: list[np.ndarray]) -> None:
    for i, layer in enumerate(layers):
        for statistic, value in by_loop(corpus, layer).items():
            assert results.by_name[f"dot/{statistic}"][i] == pytest.approx(value, rel=1e-5)
    for mix, layer in zip(MIXES, mixes, strict=True):
        for statistic, value in by_loop(corpus, layer).items():
            assert results.by_name[f"dot.{mix.name}/{statistic}"] == pytest.approx(value, rel=1e-5)


def averaged(vectors: Vectors) -> list[np.ndarray]:
    return [vectors.stack[[2, 3]].mean(0), vectors.stack[[0, 2]].mean(0)]


class Resampled(Dot):
    """It has replicates where the mean product is small."""

    def compute(self) -> dict[str, Any]:
        value = super().compute()["all"]
        return {"all": Estimate(value, value - 1, value + 1, np.full(7, value)) if value < 1000 else value}


def test_replicates_are_kept_by_layer_and_by_mix() -> None:
    corpus, vectors = place()
    vectors.stack[1] *= 100
    results = run(corpus, vectors, Resampled)
    key, mix = Key("dot", "all"), Key("dot", "all", place="last2")
    value, replicates = results.by_key[key].value, results.replicates[key]
    known = value < 1000
    assert known.tolist() == [True, False, True, True]
    np.testing.assert_allclose(replicates[known], np.repeat(value[known, None], 7, axis=1), rtol=1e-6)
    assert np.isnan(replicates[~known]).all()
    np.testing.assert_allclose(results.replicates[mix], np.repeat(results.by_key[mix].value, 7), rtol=1e-6)


def test_curves_mixes_and_table_are_those_of_a_loop(tmp_path: Path) -> None:
    corpus, vectors = place()
    results = run(corpus, vectors, folder=tmp_path)
    check(results, corpus, list(vectors.stack), averaged(vectors))
    assert len(set(results.by_name["dot/draw"])) == 1  # the same resamples in every layer
    assert results.by_name["dot.last2/draw"] == results.by_name["dot/draw"][0]
    assert results.by_name["dot/replicates"].tolist() == [7] * N_LAYERS
    assert results.by_name["dot/undefined"].tolist() == [0] * N_LAYERS
    table = results.tables["dot"]
    assert list(table) == ["layer", "subset", "n"]
    assert list(dict.fromkeys(table["layer"])) == [0, 1, 2, 3, "last2", "layers_0_2"]
    assert list(table["subset"][:3]) == ["A/x", "A/y", "B"]
    assert sum(table["n"][:3]) == 50
    places = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("seen.txt")}
    assert places == {
        f"dot/{p}/seen.txt" for p in ("layer_00", "layer_01", "layer_02", "layer_03", "last2", "layers_0_2")
    }
    stated = results.info.measures["dot"]
    given = {"name": "dot", "definition": "mean product", "unit": "product", "over": "pair", "main": "all"}
    assert stated == run_info(measures={"m": {**given, "variant": ""}}).measures["m"]


@pytest.mark.parametrize("other", [False, True])
def test_the_transform_is_fitted_on_distinct_sentences_or_on_another_text(other: bool) -> None:
    corpus, vectors = place()
    again = Corpus("gold", (*corpus.sentences, *corpus.sentences[:9]), corpus.pairs)  # repeated ones count once
    vectors.stack = np.concatenate([vectors.stack, vectors.stack[:, :9]], axis=1)
    text = Vectors(9, 17)
    fit = np.delete(text.stack, 3, axis=1) if other else vectors.stack[:, :N]
    text.stack[:, 3] = np.nan  # one of its sentences has no vector
    results = run(again, vectors, transform=Standardize, text=text if other else None)
    spaces = [*vectors.stack, *averaged(vectors)], [*fit, fit[[2, 3]].mean(0), fit[[0, 2]].mean(0)]
    fitted = [Standardize().fit(f).apply(x) for x, f in zip(*spaces, strict=True)]
    check(results, again, fitted[:N_LAYERS], fitted[N_LAYERS:])


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_sentence_without_vector_removes_and_counts_its_pairs(calibrated: bool) -> None:
    corpus, vectors = place()
    vectors.stack[:, [4, 11]] = np.nan
    touched = sum(bool({p.first, p.second} & {4, 11}) for p in corpus.pairs)
    assert touched
    results = run(corpus, vectors, transform=Standardize if calibrated else None)
    layers = list(vectors.stack)
    if calibrated:
        has = np.isfinite(vectors.stack[0, :, 0])
        for layer in layers:
            layer[has] = Standardize().fit(layer[has]).apply(layer[has])
        assert results.by_name["dot/all"] == pytest.approx([by_loop(corpus, x)["all"] for x in layers], rel=1e-4)
    else:
        check(results, corpus, layers, averaged(vectors))
    assert results.by_name["dot/undefined"].tolist() == [touched] * N_LAYERS
    assert results.by_name["dot.last2/undefined"] == touched


def test_a_layer_without_vectors_is_nan() -> None:
    corpus, vectors = place()
    vectors.stack[:3] = np.nan  # as a pooler's lower layers
    results = run(corpus, vectors)
    assert np.isnan(results.by_name["dot/all"]).tolist() == [True, True, True, False]
    assert results.by_name["dot/undefined"].tolist() == [50, 50, 50, 0]
    assert np.isnan(results.by_name["dot.last2/all"])
    assert set(results.tables["dot"]["layer"]) == {3}
