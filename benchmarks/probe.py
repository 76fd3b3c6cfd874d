"""Coverage of the intervals of `metric=probe`'s selectivity: texts and control tasks are drawn anew of a planted world.

    python -m benchmarks.probe [worlds=200] [seed=0] [out=docs/measures/probe.md]

The truth is the mean over all worlds. With out= the table is written between the page's marks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from ctxexp_measures.senses.probe.metric import Probe

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Sentence
from ctxexp.results import Key
from docs.numbers.marked import write_marked
from docs.numbers.part import markdown

LABELS = ("A", "B", "C")


def vector(text: str, dim: int = 48) -> np.ndarray:
    return np.random.default_rng(list(text.encode())).normal(size=dim)


class Planted(Encoder):
    """Layer 0 knows the word alone, layer 1 the label alone, layer 2 nothing."""

    name, n_layers, dim = "planted", 3, 48

    def __init__(self, noise: float = 0.1) -> None:
        self.noise = noise  # of layer 0

    def encode(self, batch: Sequence[Sentence]) -> list[EncodedSentence]:
        found = []
        for sentence in batch:
            at = list(enumerate(sentence.words))
            noise = np.stack([vector(f"{sentence.text} {i}") for i, _ in at])
            word = np.stack([vector(word) for word in sentence.words])
            label = np.stack([vector(f"label {self.label_of(sentence, i)}") for i, _ in at])
            layers = np.stack([word + self.noise * noise, 1.5 * label + noise, noise])
            found.append(EncodedSentence(sentence.words, layers.astype(np.float32)))
        return found

    def label_of(self, sentence: Sentence, i: int) -> str:
        return LABELS[int(sentence.words[i][1:]) % 3]


def planted_corpus(n_sentences: int = 200, n_words: int = 60, seed: int = 0) -> Corpus:
    """Sentences of eight words w0 .. w59; the tag of a word is its number's rest by 3."""
    rng = np.random.default_rng(seed)
    rows = [[f"w{i}" for i in rng.choice(n_words, 8, replace=False)] for _ in range(n_sentences)]
    corpus = Corpus.of("planted", rows)
    return replace(corpus, tags={"pos": tuple(tuple(LABELS[int(w[1:]) % 3] for w in row) for row in rows)})


class Coverage(NamedTuple):
    """One layer's share of intervals that hold the truth, spread of the estimates, and mean half width."""

    layer: str
    covers: float
    spread: float
    half: float


def coverage(worlds: int, rng: np.random.Generator, folder: Path) -> list[Coverage]:
    """The coverage of selectivity in each of the planted layers."""
    values, low, high = (np.empty((worlds, 3)) for _ in range(3))
    for world in range(worlds):
        seed = int(rng.integers(1 << 31))
        results = ctxexp.measure(
            Planted(2.0), planted_corpus(60, 40, seed), min_contexts=2, bootstrap=200,
            metrics={"probe": partial(Probe, classifier="ridge", seed=seed)}, folder=folder / str(world),
            options=[f"cache.folder={folder}"], progress=False,
        )  # fmt: skip
        values[world], low[world], high[world] = results.by_key[Key("probe", "adjusted")]
    covers = ((low <= values.mean(axis=0)) & (values.mean(axis=0) <= high)).mean(axis=0)
    names = ("the word alone", "the label alone", "nothing")
    columns = covers, values.std(axis=0, ddof=1), (high - low).mean(axis=0) / 2
    return [Coverage(name, *row) for name, *row in zip(names, *(c.tolist() for c in columns), strict=True)]


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    worlds = int(given.get("worlds", 200))
    with TemporaryDirectory() as folder:
        found = coverage(worlds, np.random.default_rng(int(given.get("seed", 0))), Path(folder))
    rows = [(one.layer, f"{one.covers:.2f} of {worlds}", f"{one.spread:.3f}", f"{one.half:.3f}") for one in found]
    table = markdown(["a layer that knows", "intervals that cover", "spread", "half an interval"], rows)
    print(table)
    if "out" in given:
        write_marked(Path(given["out"]), "probe coverage", table)


if __name__ == "__main__":
    main(sys.argv[1:])
