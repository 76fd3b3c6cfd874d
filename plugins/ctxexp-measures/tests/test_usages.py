"""Metrics of usages and of classes of words: against plain loops, on planted usages and on noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctxexp_measures.senses.corpora.usages import PERIOD, USAGE, WORD, Compared, Usages
from ctxexp_measures.senses.usages.change import SemanticChange, cluster_labels, divergence, measures
from ctxexp_measures.senses.usages.wic import Wic, threshold
from scipy.spatial.distance import cdist, jensenshannon

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Group, Results, Sentence
from ctxexp.errors import DataError, MetricError


class Planted(Encoder):
    """A word's vector is its effect, plus that of its sentence's first word (its topic) in layer 1."""

    name, n_layers, dim = "planted", 2, 24

    def encode(self, batch: list[Sentence]) -> list[EncodedSentence]:  # type: ignore[override]
        def of(text: str) -> np.ndarray:
            return np.random.default_rng(list(text.encode())).normal(size=self.dim)

        found = []
        for sentence in batch:
            words = np.stack([of(word) for word in sentence.words])
            noise = np.stack([of(sentence.text + word) for word in sentence.words])
            mixed = words + of(sentence.words[0]) + 0.3 * noise
            found.append(EncodedSentence(sentence.words, np.stack([words, mixed]).astype(np.float32)))
        return found


def run(corpus: Corpus, tmp_path: Path, *, min_contexts: int = 2, **metrics: type) -> Results:
    return ctxexp.measure(
        Planted(), corpus, metrics=metrics, min_contexts=min_contexts, folder=tmp_path,
        options=[f"cache.folder={tmp_path}"], progress=False,
    )  # fmt: skip


def pairs(n: int = 200, seed: int = 0) -> Usages:
    """Pairs of one word, in sentences of one topic (gold 1) or two; half of the first kind in another case."""
    rng = np.random.default_rng(seed)
    sentences, compared, usages = [], [], []
    for i in range(n):
        gold = int(rng.random() < 0.5)
        topics = ("red", "red") if gold else ("red", "blue")
        for k, topic in enumerate(topics):
            sentences.append(Sentence.of([topic, *["filler"] * int(rng.integers(1, 5)), f"u{i}x{k}", f"w{i % 20}"]))
            usages.append(("",) * (len(sentences[-1]) - 1) + (f"{i}.{k}",))
        compared.append(Compared(f"{i}.0", f"{i}.1", float(gold), ("train", "dev", "test")[i % 3]))
    return Usages("pairs", tuple(sentences), tags={USAGE: tuple(usages)}, compared=tuple(compared))


def test_wic_finds_senses_where_they_are(tmp_path: Path) -> None:
    found = run(pairs(), tmp_path, wic=Wic)
    for part in ("train", "dev", "test"):
        first, second = found.by_name[f"wic/{part}/accuracy"]
        assert second > 0.95
        assert 0.3 < first < 0.7  # layer 0 has one vector a word
        assert found.by_name[f"wic/{part}/form"][1] < 0.65
        assert found.by_name[f"wic/{part}/position"][1] < 0.7
    assert 0 < found.by_name["wic/test/accuracy_ci_high"][0] - found.by_name["wic/test/accuracy_ci_low"][0] < 0.3
    assert found.by_name["wic/test/n"].tolist() == [66, 66]


def test_the_threshold_has_the_most_right_answers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        score, gold = rng.integers(0, 5, n) / 4, rng.random(n) < 0.5
        right = {t: ((score >= t) == gold).sum() for t in [*np.unique(score), np.inf]}
        best = threshold(score, gold)
        assert right[best] == max(right.values())
        assert best == min(t for t, value in right.items() if value == right[best])
    assert np.isnan(threshold(np.empty(0), np.empty(0, bool)))


def test_usages_that_are_not_there_are_said(tmp_path: Path) -> None:
    plain = Corpus.of("plain", [["a", "b"]])
    with pytest.raises(DataError, match=r"metric wic compares usages in pairs .*'plain' has none; .* as dataset=wic"):
        run(plain, tmp_path, wic=Wic)
    with pytest.raises(DataError, match="corpus 'pairs' has none to train on and to test; use dataset=wic"):
        run(replace(pairs(), compared=()), tmp_path, wic=Wic)
    with pytest.raises(DataError, match=r"corpus 'pairs' has usages of 0 \(\); expected two, as of dataset=dwug"):
        run(pairs(), tmp_path, change=SemanticChange)
    with pytest.raises(MetricError, match="rows alone don't say which words they are; measure a corpus"):
        Wic().update(Group(0, np.zeros((1, 2))))


def test_measures_of_change_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(20, 6)) + [2, 0, 0, 0, 0, 0] + 4 * rng.integers(0, 2, (20, 1)) * [0, 1, 0, 0, 0, 0]).astype(
        "f4"
    )
    periods = rng.integers(0, 2, (7, 20))
    clusters = cluster_labels(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert 1 < len(set(clusters.tolist())) < 20
    for labels, (apd, prt, distance, jsd) in zip(periods, measures(x, periods), strict=True):
        a, b = x[labels == 0], x[labels == 1]
        assert apd == pytest.approx(cdist(a, b, "cosine").mean(), abs=1e-6)
        cosine = float(a.mean(0) @ b.mean(0) / np.linalg.norm(a.mean(0)) / np.linalg.norm(b.mean(0)))
        assert prt == pytest.approx(1 / cosine, abs=1e-5)
        assert distance == pytest.approx(1 - cosine, abs=1e-6)
        p, q = (np.bincount(clusters[labels == i], minlength=clusters.max() + 1) for i in (0, 1))
        assert jsd == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-9)
    assert divergence(np.array([1.0, 0]), np.array([0, 1.0])) == 1
    assert cluster_labels(np.ones((4, 3))).tolist() == [0, 0, 0, 0]


def periods(seed: int, *, changed: bool) -> Usages:
    """24 usages each of 30 words in two periods; the share of a second topic grows with the word if `changed`."""
    rng = np.random.default_rng(seed)
    sentences, marks, change = [], [], {}
    for w in range(30):
        change[f"w{w}"] = w / 30
        for period in ("old", "new"):
            for i in range(12):
                blue = changed and period == "new" and rng.random() < w / 30
                sentences.append(Sentence.of(["blue" if blue else "red", f"{period}{i}x{rng.integers(99)}", f"w{w}"]))
                marks.append((f"{w}{period}{i}", f"w{w}", period))
    kinds = {kind: tuple(("", "", mark[k]) for mark in marks) for k, kind in enumerate((USAGE, WORD, PERIOD))}
    return Usages("made", tuple(sentences), tags=kinds, change=change)


def test_planted_change_is_found_and_none_is_none(tmp_path: Path) -> None:
    found = run(periods(0, changed=True), tmp_path, change=SemanticChange)
    for name in ("apd", "prt", "prt_distance", "jsd"):
        assert found.by_name[f"change/{name}_spearman"][1] > 0.6
        assert found.by_name[f"change/{name}_changed"][1] > 0.4
    low, high = (found.by_name[f"change/apd_spearman_ci_{end}"] for end in ("low", "high"))
    assert 0.5 < low[1] < high[1] <= 1
    table = found.tables["change"]
    assert table.columns[:5].tolist() == ["layer", "word", "earlier", "later", "change"]
    assert len(table) == 60
    still = run(periods(1, changed=False), tmp_path, change=SemanticChange)
    for name in ("apd", "prt", "prt_distance", "jsd"):
        assert still.by_name[f"change/{name}_changed"][1] < 0.2
        expected = still.by_name[f"change/{name}_changed_null"][1]
        assert 0.04 < expected <= 0.05 if name != "jsd" else expected <= 0.05  # clusters' shares tie
        scale = still.by_name[f"change/{name}_null"][1] - (name == "prt")
        assert scale > 0  # without any change
        assert abs(still.by_name[f"change/{name}_adjusted"][1]) < 0.3 * scale
