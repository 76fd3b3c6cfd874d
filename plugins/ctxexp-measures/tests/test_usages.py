"""Metrics of usages and of classes of words: against plain loops, on planted usages and on noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ctxexp_measures.senses.corpora.usages import USAGE, Compared, Usages
from ctxexp_measures.senses.wic import Wic, threshold

from ctxexp import Sentence
from tests.planted import PlantedEncoder, measured_in, vector_of


class Planted(PlantedEncoder):
    """A word's vector is its effect, plus that of its sentence's first word (its topic) in layer 1."""

    name, n_layers, dim = "planted", 2, 24

    def layers_of(self, sentence: Sentence) -> list[np.ndarray]:
        words = np.stack([vector_of(word, 24) for word in sentence.words])
        noise = np.stack([vector_of(sentence.text + word, 24) for word in sentence.words])
        return [words, words + vector_of(sentence.words[0], 24) + 0.3 * noise]


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
    found = measured_in(tmp_path, Planted(), pairs(), metrics={"wic": Wic}, min_contexts=2)
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
