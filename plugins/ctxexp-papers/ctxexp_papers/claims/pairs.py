"""Pairs of sentences with people's ratings, and offered models' vectors of them.

Where they lie is said in the environment, as everywhere in ctxexp: STS=<folder of STSbenchmark>. Without it claims on
ratings aren't tried.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxexp import Sentence

BATCH = 64


@dataclass(frozen=True)
class RatedPairs:
    """Sentences by twos with their ratings (n,)."""

    first: Sequence[Sentence]
    second: Sequence[Sentence]
    gold: np.ndarray


def sentence_pairs(most: int) -> RatedPairs | None:
    """At most so many pairs of the STS benchmark's test set, evenly spaced; None where STS isn't in the environment."""
    folder = os.environ.get("STS")
    if not folder or not Path(folder).is_dir():
        return None
    from ctxexp.datasets.sts import sts_b

    corpus = sts_b(path=folder)
    pairs = corpus.pairs[:: -(-len(corpus.pairs) // most)]
    sides = [[corpus.sentences[i] for i in side] for side in zip(*((p.first, p.second) for p in pairs), strict=True)]
    return RatedPairs(sides[0], sides[1], np.array([p.gold for p in pairs]))


@dataclass(frozen=True)
class Encodings:
    """A model's vectors of texts: (layers, units, d) each, and the numbers of the layers."""

    by_text: Sequence[np.ndarray]
    layers: tuple[int, ...]

    def means(self, at: int) -> np.ndarray:
        """(texts, d) float64: the mean of a text's units in the layer at this place; NaN of a text without any."""
        return np.array(
            [x[at].mean(axis=0, dtype=np.float64) if x.shape[1] else np.full(x.shape[2], np.nan) for x in self.by_text]
        )


def encode(model: str, texts: Sequence[Sentence]) -> Encodings:
    """The vectors of every word of these texts by a model, as it was typed."""
    from ctxexp.command import Built, configured

    encoder = Built(configured(model)).study.encoder
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # batches of like length
    by_text: list[np.ndarray] = [np.empty(0)] * len(texts)
    for start in range(0, len(order), BATCH):
        which = order[start : start + BATCH]
        for i, one in zip(which, encoder.encode([texts[i] for i in which]), strict=True):
            by_text[i] = one.layers
    return Encodings(by_text, encoder.layer_numbers)


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) cosines of rows (n, d) by twos."""
    sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray(np.vecdot(x, y) / np.maximum(sizes, np.finfo(np.float64).tiny))


def parts_of(n: int, parts: int) -> list[np.ndarray]:
    """Disjoint random parts of n pairs, by a fixed seed."""
    return np.array_split(np.random.default_rng(0).permutation(n), parts)
