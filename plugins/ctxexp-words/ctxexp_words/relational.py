"""Relational similarity (SemEval-2012 Task 2): degree to which pairs of words show a relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.maths.correlation import spearman
from ctxexp_words.score import BenchmarkScore, cosines
from ctxexp_words.space import OutOfVocabulary, WordSpace

Pair = tuple[str, str]


@dataclass(frozen=True)
class Relation:
    """A relation: the prototype pairs that define it, and pairs rated by how well they show it."""

    name: str
    prototypes: tuple[Pair, ...]
    pairs: tuple[Pair, ...]
    gold: tuple[float, ...]


@dataclass(frozen=True)
class Relational:
    """Relations with their ratings."""

    name: str
    relations: tuple[Relation, ...]

    def words(self) -> set[str]:
        return {word for r in self.relations for pair in (*r.prototypes, *r.pairs) for word in pair}


def score_relational(space: WordSpace, benchmark: Relational, *, oov: OutOfVocabulary = "skip") -> list[BenchmarkScore]:
    """Mean over relations of Spearman's correlation of a pair's likeness to the prototypes with its rating, in [-1, 1].

    A pair's likeness is the cosine of its offset b - a (of unit-norm vectors) to the mean offset of the prototypes;
    an offset of zero, which points nowhere, is 0. Relations without a defined correlation (no prototype covered, fewer
    than 3 pairs, all alike) are left out of the mean and show in their own lines as NaN. With `oov="mean"` the mean
    vector stands for a missing word, in prototypes too.
    """
    scores = [_relation(space, benchmark.name, relation, oov) for relation in benchmark.relations]
    defined = [s for s in scores if np.isfinite(s.value)]
    value = float(np.mean([s.value for s in defined])) if defined else float("nan")
    n, covered, total = sum(s.n for s in defined), sum(s.covered for s in scores), sum(s.total for s in scores)
    return [BenchmarkScore(benchmark.name, "", value, n, covered, total), *scores]


def _relation(space: WordSpace, name: str, relation: Relation, oov: OutOfVocabulary) -> BenchmarkScore:
    prototypes, known_prototypes = _offsets(space, relation.prototypes)
    offsets, is_covered = _offsets(space, relation.pairs)
    counts = is_covered if oov == "skip" else np.ones(len(is_covered), bool)
    prototypes = prototypes[known_prototypes] if oov == "skip" else prototypes
    value = float("nan")
    if len(prototypes):
        target = np.broadcast_to(prototypes.mean(0), offsets[counts].shape)
        value = spearman(cosines(offsets[counts], target), np.array(relation.gold)[counts])
    return BenchmarkScore(name, relation.name, value, int(counts.sum()), int(is_covered.sum()), len(is_covered))


def _offsets(space: WordSpace, pairs: tuple[Pair, ...]) -> tuple[np.ndarray, np.ndarray]:
    """b - a of unit-norm vectors (n, dim), and (n,) whether both words have one."""
    a, b = space.rows(a for a, _ in pairs), space.rows(b for _, b in pairs)
    return space.unit(b) - space.unit(a), (a >= 0) & (b >= 0)
