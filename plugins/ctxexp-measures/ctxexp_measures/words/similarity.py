"""Word similarity: SimLex-999, MEN, WordSim-353, Rare Words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.maths import spearman
from ctxexp_measures.words.score import BenchmarkScore, cosines
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace


@dataclass(frozen=True)
class Similarity:
    """Pairs of words with people's rating of how similar or related they are."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    gold: tuple[float, ...]

    def words(self) -> set[str]:
        return {word for pair in self.pairs for word in pair}


def score_similarity(space: WordSpace, benchmark: Similarity, *, oov: OutOfVocabulary = "skip") -> list[BenchmarkScore]:
    """Spearman's correlation of the cosines with the ratings, in [-1, 1] (not times 100)."""
    left = space.rows(a for a, _ in benchmark.pairs)
    right = space.rows(b for _, b in benchmark.pairs)
    is_covered = (left >= 0) & (right >= 0)
    counts = is_covered if oov == "skip" else np.ones(len(is_covered), bool)
    value = spearman(
        cosines(space.normalized(left[counts]), space.normalized(right[counts])), np.array(benchmark.gold)[counts]
    )
    return [BenchmarkScore(benchmark.name, "", value, int(counts.sum()), int(is_covered.sum()), len(is_covered))]
