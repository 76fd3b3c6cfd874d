"""RelationalSimilarity similarity (SemEval-2012 Task 2): degree to which pairs of words show a relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.maths import spearman
from ctxexp_measures.words.score import BenchmarkScore, cosines
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace

Pair = tuple[str, str]


@dataclass(frozen=True)
class Relation:
    """A relation: the prototype pairs that define it, and pairs rated by how well they show it."""

    name: str
    prototypes: tuple[Pair, ...]
    pairs: tuple[Pair, ...]
    gold: tuple[float, ...]


@dataclass(frozen=True)
class RelationalSimilarity:
    """A benchmark of relational similarity: relations with their rated pairs."""

    name: str
    relations: tuple[Relation, ...]

    def words(self) -> set[str]:
        """All words of the benchmark's pairs."""
        return {word for r in self.relations for pair in (*r.prototypes, *r.pairs) for word in pair}


def score_relational(
    space: WordSpace, benchmark: RelationalSimilarity, *, oov: OutOfVocabulary = "skip"
) -> list[BenchmarkScore]:
    """Mean over relations of Spearman's correlation of a pair's similarity to the prototypes with its rating, in
    [-1, 1]; then each relation's own score.

    A pair's similarity is the cosine of its offset b - a (of unit-norm vectors) to the mean offset of the prototypes;
    it is 0 for an offset of zero. Relations without a defined correlation (no prototype covered, fewer than 3 pairs,
    all pairs equally similar) are left out of the mean, whose `n` counts the pairs of the others alone, and have NaN as
    their own score. With `oov="mean"` the mean direction stands for a missing word, in prototypes too.
    """
    scores = [_relation(space, benchmark.name, relation, oov) for relation in benchmark.relations]
    defined = [s for s in scores if np.isfinite(s.value)]
    value = float(np.mean([s.value for s in defined])) if defined else float("nan")
    n, covered, total = sum(s.n for s in defined), sum(s.covered for s in scores), sum(s.total for s in scores)
    return [BenchmarkScore(benchmark.name, "", value, n, covered, total), *scores]


def _relation(space: WordSpace, name: str, relation: Relation, oov: OutOfVocabulary) -> BenchmarkScore:
    prototypes, has_prototype = _offsets(space, relation.prototypes)
    offsets, is_covered = _offsets(space, relation.pairs)
    is_scored = is_covered if oov == "skip" else np.ones(len(is_covered), bool)
    prototypes = prototypes[has_prototype] if oov == "skip" else prototypes
    value = float("nan")
    if len(prototypes):
        target = np.broadcast_to(prototypes.mean(0), offsets[is_scored].shape)
        value = spearman(cosines(offsets[is_scored], target), np.array(relation.gold)[is_scored])
    return BenchmarkScore(name, relation.name, value, int(is_scored.sum()), int(is_covered.sum()), len(is_covered))


def _offsets(space: WordSpace, pairs: tuple[Pair, ...]) -> tuple[np.ndarray, np.ndarray]:
    """b - a of unit-norm vectors (n, dim), and (n,) whether both words of a pair have a vector."""
    a, b = space.rows(a for a, _ in pairs), space.rows(b for _, b in pairs)
    return space.normalized(b) - space.normalized(a), (a >= 0) & (b >= 0)
