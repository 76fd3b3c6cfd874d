"""Static vectors from contextual ones: one vector for each word and layer, scored on benchmarks of static vectors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ctxexp import Block, Group, Metric, Output, Reading
from ctxexp.datasets import user_path
from ctxexp.models import WordVectors
from ctxexp.report import write_csv
from ctxexp_measures.words.directions import first_directions
from ctxexp_measures.words.load import load
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace, word_list
from ctxexp_measures.words.suite import BenchmarkOptions, BenchmarkScore, Clustering, evaluate, table

Export = Literal["word2vec_text"]
Distillation = Literal["first_pc", "first_pc_centred", "mean"]
_DESCRIPTIONS = {
    "first_pc": "first principal direction of each word's rows, uncentred",
    "first_pc_centred": "first principal direction of each word's rows about their mean",
    "mean": "mean of each word's rows",
}


class StaticVectors(Metric):
    """Benchmark scores of one static vector per word, by layer (Ethayarajh 2019, Table 1).

    A direction's sign makes its product with the mean row positive. Statistics: of each benchmark its value (Spearman's
    rho in [-1, 1], accuracy and purity in [0, 1]) and `<benchmark>_covered`, the share of its pairs, questions or words
    whose words all have a vector; `n`: words with a vector; `undefined`: words without one (all rows zero, or equal
    where they are centred); `vocabulary`: distinct forms that the benchmarks see.

    In lower case a word with several cased forms (Apple, apple) has the vector of the form with most measured
    occurrences. Into each layer's folder go `benchmarks.csv` (every benchmark, section and relation with its coverage)
    and, with `export=[word2vec_text]`, the vectors (vectors.txt).

    vector: how it is distilled: first_pc, the first right singular vector of the word's rows as they are (section 3.4);
        first_pc_centred, the same of the rows minus their mean; mean, their mean
    data: the folder of the benchmarks' files (needed unless benchmarks=[])
    benchmarks: null: all nine; or a list of simlex999, men, ws353, rw, google, msr, semeval2012, bless, ap
    oov: skip: leave out items with a missing word; mean: the mean vector stands in
    lower: look words up in lower case
    clustering: kmeans, best (of five, as word-embeddings-benchmarks chooses)
    shared_vocabulary: a file with a word a line: no other words count
    """

    over = "word"
    title = "Static vectors"
    reading = Reading(unit="score")
    invariances = frozenset({"rotation", "scale", "permutation"})

    def __init__(
        self,
        *,
        vector: Distillation = "first_pc",
        data: str | None = None,
        benchmarks: list[str] | None = None,
        oov: OutOfVocabulary = "skip",
        lower: bool = True,
        clustering: Clustering = "kmeans",
        shared_vocabulary: str | None = None,
        export: list[Export] | None = None,
        seed: int = 0,
    ) -> None:
        self.vector: Distillation = vector
        self.variant = {"first_pc": "", "first_pc_centred": "centred", "mean": "mean"}[vector]
        self.choices = BenchmarkOptions(oov, lower, clustering, seed)
        self.benchmarks = load(data, benchmarks)
        self.shared = word_list(user_path(shared_vocabulary)) if shared_vocabulary else None
        self.export = export or []
        self.definition = f"{_DESCRIPTIONS[vector]}; {self.choices.description()}" + (
            f"; {len(self.shared):,} words shared" if self.shared else ""
        )
        self._keys: list[Hashable] = []
        self._counts: list[int] = []
        self._vectors: list[np.ndarray] = []  # (groups of a block, d) float32 each
        self._scores: tuple[list[BenchmarkScore], int] | None = None

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        keys, x = block.keys, block.x
        if self.vector == "mean":
            vectors = x.mean(axis=1, dtype=np.float64)
        else:
            vectors = first_directions(x, centred=self.vector == "first_pc_centred")
        self._keys.extend(keys)
        self._counts.extend([x.shape[1]] * len(keys))
        self._vectors.append(vectors.astype(np.float32))
        self._scores = None

    def vectors(self) -> tuple[list[str], np.ndarray]:
        """Words, the most frequent first (ties by the alphabet), and their vectors (words, d) float32.

        Words without a vector are left out.
        """
        if not self._vectors:
            return [], np.empty((0, 0), np.float32)
        every = np.concatenate(self._vectors)
        usable = np.isfinite(every).all(-1) & every.any(-1)
        order = sorted(np.flatnonzero(usable).tolist(), key=lambda i: (-self._counts[i], str(self._keys[i])))
        return [str(self._keys[i]) for i in order], every[order]

    def scores(self) -> list[BenchmarkScore]:
        """Every benchmark's scores, whole and by parts, with coverage."""
        return self._evaluated()[0]

    def _evaluated(self) -> tuple[list[BenchmarkScore], int]:
        if self._scores is None:
            words, vectors = self.vectors()
            space = WordSpace.of(words, vectors, lower=self.choices.lower, shared=self.shared)
            self._scores = evaluate(space, self.benchmarks, self.choices), len(space)
        return self._scores

    def compute(self) -> dict[str, float]:
        scores, vocabulary = self._evaluated()
        n = len(self.vectors()[0])
        statistics: dict[str, float] = {}
        for score in scores:
            if not score.part:
                statistics[score.benchmark] = score.value
                statistics[f"{score.benchmark}_covered"] = score.share
        return statistics | {
            "n": float(n),
            "undefined": float(len(self._keys) - n),
            "vocabulary": float(vocabulary),
        }

    def outputs(self) -> dict[str, Output]:
        return {"vectors": VectorFiles(self)} if self.benchmarks or self.export else {}


@dataclass(frozen=True)
class VectorFiles(Output):
    """The table of a metric's benchmarks, and its vectors in the formats asked for."""

    metric: StaticVectors

    def write(self, folder: Path) -> None:
        metric = self.metric
        if metric.benchmarks:
            write_csv(table(metric.scores(), metric.choices), folder / "benchmarks.csv")
        if metric.export:
            WordVectors(*metric.vectors()).save(folder)
