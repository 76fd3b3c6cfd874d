"""All benchmarks over one space of word vectors, with one set of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from ctxexp.errors import ConfigError, UnknownName
from ctxexp_measures.words.analogy import Analogy, Candidates, score_analogy
from ctxexp_measures.words.categorisation import Clustering, score_categorisation
from ctxexp_measures.words.load import Benchmark
from ctxexp_measures.words.relational import RelationalSimilarity, score_relational
from ctxexp_measures.words.score import BenchmarkScore
from ctxexp_measures.words.similarity import Similarity, score_similarity
from ctxexp_measures.words.space import Case, OutOfVocabulary, WordSpace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of the benchmarks, which decide their values beside the vectors. Raises ConfigError for unknown ones.

    `oov`: items with a word that has no vector are left out (skip), or the mean vector stands in (mean). `lower`: words
    are looked up in lower case; `case`: the vector of a word with several cased forms, its most frequent form's or the
    average. `candidates`: the possible answers to analogies. `clustering`, `seed`: of categorisation.
    """

    oov: OutOfVocabulary = "skip"
    lower: bool = True
    case: Case = "frequent"
    candidates: Candidates | int = "vocabulary"
    clustering: Clustering = "kmeans"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("oov", OutOfVocabulary), ("case", Case), ("clustering", Clustering)):
            if getattr(self, name) not in get_args(choices):
                raise UnknownName(name, str(getattr(self, name)), get_args(choices))
        if isinstance(self.candidates, str):
            if self.candidates not in get_args(Candidates):
                raise UnknownName("candidates", self.candidates, [*get_args(Candidates), "a number of words"])
        elif self.candidates < 1:
            raise ConfigError(f"candidates={self.candidates}: expected at least 1 word")

    def description(self) -> str:
        """The options in one line, for definitions and captions."""
        parts = [
            {"skip": "items with a missing word left out", "mean": "the mean vector stands for missing words"}[self.oov]
        ]
        if self.lower:
            parts.append("lower-cased, " + {"frequent": "most frequent form", "average": "forms averaged"}[self.case])
        pool = f"{self.candidates:,} words" if isinstance(self.candidates, int) else self.candidates
        parts += [f"3CosAdd candidates: {pool}", f"clustering: {self.clustering}"]
        return ", ".join(parts)


def evaluate(
    space: WordSpace, benchmarks: Sequence[Benchmark], choices: BenchmarkOptions | None = None
) -> list[BenchmarkScore]:
    """The scores of every benchmark, each whole (part ""), then by its parts (sections, relations)."""
    choices = choices or BenchmarkOptions()
    scores: list[BenchmarkScore] = []
    for benchmark in benchmarks:
        if isinstance(benchmark, Similarity):
            scores += score_similarity(space, benchmark, oov=choices.oov)
        elif isinstance(benchmark, Analogy):
            scores += score_analogy(space, benchmark, oov=choices.oov, candidates=choices.candidates)
        elif isinstance(benchmark, RelationalSimilarity):
            scores += score_relational(space, benchmark, oov=choices.oov)
        else:
            scores += score_categorisation(
                space, benchmark, oov=choices.oov, clustering=choices.clustering, seed=choices.seed
            )
    return scores


def table(scores: Sequence[BenchmarkScore], choices: BenchmarkOptions) -> pd.DataFrame:
    """Table with a row for each score: benchmark, part, value, numbers of items (used, covered, total), the options."""
    import pandas as pd

    return pd.DataFrame(
        {
            "benchmark": [s.benchmark for s in scores],
            "part": [s.part for s in scores],
            "value": [s.value for s in scores],
            "n": [s.n for s in scores],
            "covered": [s.covered for s in scores],
            "total": [s.total for s in scores],
            "covered_share": [s.share for s in scores],
            "missing_words": [{"skip": "left out", "mean": "mean vector"}[choices.oov]] * len(scores),
        }
    )
