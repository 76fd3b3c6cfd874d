"""The sentences on which an encoder's laws are checked, and their vectors, encoded one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.datasets.checks import tokenizer
from ctxexp.model import EncodedSentence, Encoder
from ctxexp.testing.report import Breach

TOLERANCE = {"float32": 2e-3, "float16": 6e-2}  # share of a layer's root mean square that rounding may move a number by
PLAIN = [
    "The bank closed its doors early today .",
    "today the bank closed its doors early .",  # nearly the first one's words, and so of its length in pieces too
    "Internationalisation bewildered the unbelievably underprepared committee .",
    "the bank the bank the the",
    "It rained .",
    "Yes",
]
ODD = [
    "naïve café owners — “quite” e\u0301te\u0301 ﬁn",
    "👩‍👩‍👧 🙂 costs 3.50 € !",
    "漢字 かな 한국어 кириллица عربى",
    "  two   spaced\twords ",
    "x" * 300 + " is long",
]


class Probes:
    """An encoder with its vectors of the probe sentences, each encoded alone."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        split = tokenizer("english")
        self.plain = [split(text) for text in PLAIN]
        self.long = Sentence.of(("the bank by the river " * 150).split())
        self.empty = [Sentence("", (), ()), Sentence("  ", (), ())]
        self.odd = [*map(split, ODD), *self.empty, self.long]
        self.vectors: dict[Sentence, EncodedSentence] = {}
        self.refuses = ""  # what it says of what is long, if it refuses that

    def alone(self, sentence: Sentence) -> EncodedSentence:
        if sentence not in self.vectors:
            (self.vectors[sentence],) = self.run([sentence])
        return self.vectors[sentence]

    def run(self, batch: Sequence[Sentence]) -> list[EncodedSentence]:
        results = list(self.encoder.encode(batch))
        if len(results) != len(batch):
            raise Breach(f"encode gave {len(results)} results for {len(batch)} sentences; expected one each, in order")
        return results

    def rows(self, words: Sequence[str]) -> np.ndarray | None:
        """(n_layers, len(words), dim), or None where a word has no row."""
        vectors = self.alone(Sentence.of(words))
        return vectors.layers if vectors.units == tuple(words) else None

    def deviation(self, a: np.ndarray, b: np.ndarray, *, over: np.ndarray | None = None) -> float:
        """The largest difference of a and b, in multiples of the rounding tolerance of its layer: above 1 they
        differ."""
        if a.shape != b.shape:
            return np.inf
        if not a.size:
            return 0.0
        wide = np.asarray(b if over is None else over, np.float64)
        scale = np.sqrt((wide**2).mean(axis=tuple(range(1, wide.ndim)), keepdims=True)) + 1e-12
        gap = np.abs(np.asarray(a, np.float64) - b) / scale
        half = a.dtype == np.float16 or "float16" in str(self.encoder.details.get("dtype"))  # bfloat16 too
        return float(gap.max() / TOLERANCE["float16" if half else "float32"])
