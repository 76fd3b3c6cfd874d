"""Benchmarks of word vectors: similarity, analogies, relations, categories; all of them with one set of options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp.maths import kmeans, spearman
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace

if TYPE_CHECKING:
    import pandas as pd


Clustering = Literal["kmeans", "best"]


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of the benchmarks, which decide their values beside the vectors.

    `oov`: items with a word that has no vector are left out (skip), or the mean vector stands in (mean). `lower`: words
    are looked up in lower case. `clustering`, `seed`: of categorisation.
    """

    oov: OutOfVocabulary = "skip"
    lower: bool = True
    clustering: Clustering = "kmeans"
    seed: int = 0

    def description(self) -> str:
        """The options in one line, for definitions and captions."""
        missing = {"skip": "items with a missing word left out", "mean": "the mean vector stands for missing words"}
        lower = ", lower-cased, most frequent form" if self.lower else ""
        return f"{missing[self.oov]}{lower}, clustering: {self.clustering}"


@dataclass(frozen=True)
class BenchmarkScore:
    """Value of one benchmark or of one of its parts.

    `covered` of `total` items (pairs, questions or words) have vectors for all their words; the value is over `n`
    items: the covered ones, or with stand-ins for missing words all of them.
    """

    benchmark: str
    part: str  # empty: the whole benchmark
    value: float
    n: int
    covered: int
    total: int

    @property
    def share(self) -> float:
        """Share of the items that is covered, in [0, 1]."""
        return self.covered / self.total if self.total else float("nan")


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) cosines of the rows of a and b, in [-1, 1]; 0 where either is a zero vector, which points nowhere."""
    scale = np.sqrt(np.square(a).sum(-1) * np.square(b).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(np.where(scale > 0, (a * b).sum(-1) / scale, 0.0), -1.0, 1.0))


@dataclass(frozen=True)
class Similarity:
    """Pairs of words with people's rating of how similar or related they are."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    gold: tuple[float, ...]

    def words(self) -> set[str]:
        return {word for pair in self.pairs for word in pair}


def score_similarity(space: WordSpace, benchmark: Similarity, options: BenchmarkOptions) -> list[BenchmarkScore]:
    """Spearman's correlation of the cosines with the ratings, in [-1, 1] (not times 100)."""
    left = space.rows(a for a, _ in benchmark.pairs)
    right = space.rows(b for _, b in benchmark.pairs)
    is_covered = (left >= 0) & (right >= 0)
    counts = is_covered if options.oov == "skip" else np.ones(len(is_covered), bool)
    value = spearman(
        cosines(space.normalized(left[counts]), space.normalized(right[counts])), np.array(benchmark.gold)[counts]
    )
    return [BenchmarkScore(benchmark.name, "", value, int(counts.sum()), int(is_covered.sum()), len(is_covered))]


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
    space: WordSpace, benchmark: RelationalSimilarity, options: BenchmarkOptions
) -> list[BenchmarkScore]:
    """Mean over relations of Spearman's correlation of a pair's similarity to the prototypes with its rating, in
    [-1, 1]; then each relation's own score.

    A pair's similarity is the cosine of its offset b - a (of unit-norm vectors) to the mean offset of the prototypes;
    it is 0 for an offset of zero. Relations without a defined correlation (no prototype covered, fewer than 3 pairs,
    all pairs equally similar) are left out of the mean, whose `n` counts the pairs of the others alone, and have NaN as
    their own score. With `oov="mean"` the mean direction stands for a missing word, in prototypes too.
    """
    scores = [_relation(space, benchmark.name, relation, options.oov) for relation in benchmark.relations]
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


STARTS = 10  # seeded beginnings of k-means; the one with the least inertia is taken
LINKAGES = (("average", "cosine"), ("ward", "euclidean"), ("complete", "cosine"), ("average", "euclidean"))


@dataclass(frozen=True)
class Categorisation:
    """Words, each of one class."""

    name: str
    members: tuple[str, ...]
    classes: tuple[str, ...]  # one a word

    def words(self) -> set[str]:
        return set(self.members)


def score_categorisation(
    space: WordSpace, benchmark: Categorisation, options: BenchmarkOptions
) -> list[BenchmarkScore]:
    """Purity, in (0, 1]: the share of words that are of their cluster's commonest class. More is better.

    As many clusters as the clustered words have classes, of unit-norm vectors. `kmeans`: of 10 seeded beginnings
    (k-means++) the one with the least inertia. `best`: the highest purity of that and of average, Ward's, complete and
    Euclidean average linkage, as the word-embeddings-benchmarks package chooses; picked by looking at the classes, so
    it flatters. With `oov="mean"` missing words share the mean vector.
    """
    rows = space.rows(benchmark.members)
    is_covered = rows >= 0
    counts = is_covered if options.oov == "skip" else np.ones(len(rows), bool)
    value = float("nan")
    if counts.any():
        classes = np.unique(np.array(benchmark.classes)[counts], return_inverse=True)[1]
        x = space.normalized(rows[counts])
        found = _clusterings(x, int(classes.max()) + 1, options.clustering, options.seed)
        value = max(purity(labels, classes) for labels in found)
    return [BenchmarkScore(benchmark.name, "", value, int(counts.sum()), int(is_covered.sum()), len(rows))]


def purity(clusters: np.ndarray, classes: np.ndarray) -> float:
    """Share of items that are of their cluster's commonest class, for cluster and class numbers (n,) from 0."""
    table = np.zeros((int(clusters.max()) + 1, int(classes.max()) + 1), np.int64)
    np.add.at(table, (clusters, classes), 1)
    return float(table.max(axis=1).sum() / len(classes))


def _clusterings(x: np.ndarray, k: int, clustering: Clustering, seed: int) -> list[np.ndarray]:
    linkages = LINKAGES if clustering == "best" else ()
    return [kmeans(x, k, seed=seed, starts=STARTS)[0], *(_agglomerative(x, k, *linkage) for linkage in linkages)]


def _agglomerative(x: np.ndarray, k: int, method: str, metric: str) -> np.ndarray:
    """(n,) cluster numbers of hierarchical clustering, cut at k clusters."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import pdist

    if len(x) <= k:
        return np.arange(len(x))
    tree = linkage(np.maximum(np.nan_to_num(pdist(x, metric), nan=1.0), 0.0), method)  # a zero vector is at 1 from all
    return np.asarray(cut_tree(tree, n_clusters=k)[:, 0], np.int64)


CHUNK = 8_000_000  # numbers of a table of similarities: 64 MB


@dataclass(frozen=True)
class Analogy:
    """Questions (a, b, c, answer) in sections."""

    name: str
    questions: tuple[tuple[str, str, str, str], ...]
    sections: tuple[str, ...]  # one a question

    def words(self) -> set[str]:
        return {word for question in self.questions for word in question}


def score_analogy(space: WordSpace, benchmark: Analogy, options: BenchmarkOptions) -> list[BenchmarkScore]:
    """Accuracy of 3CosAdd (Mikolov et al. 2013; Levy and Goldberg 2014), in [0, 1]: whole, then by section.

    The answer is the candidate with the largest cosine to b - a + c, of unit-norm vectors; a, b and c themselves are no
    candidates. Every word that has a vector is one. Questions are covered if all four words have a vector. With
    `oov="mean"` the mean vector stands for a missing a, b or c, and a missing answer counts as wrong.
    """
    rows = space.rows(word for question in benchmark.questions for word in question).reshape(-1, 4)
    is_covered = np.asarray((rows >= 0).all(axis=1))
    counts: np.ndarray = is_covered if options.oov == "skip" else np.ones(len(rows), bool)
    right = np.zeros(len(rows), bool)
    to_answer = np.flatnonzero(counts & (rows[:, 3] >= 0))
    right[to_answer] = answers(space, rows[to_answer, :3]) == rows[to_answer, 3]
    scores = [_score(benchmark.name, "", right, counts, is_covered, np.ones(len(rows), bool))]
    sections = np.array(benchmark.sections)
    for section in dict.fromkeys(benchmark.sections):
        scores.append(_score(benchmark.name, section, right, counts, is_covered, sections == section))
    return scores


def answers(space: WordSpace, questions: np.ndarray, *, chunk: int = CHUNK) -> np.ndarray:
    """(n,) the rows nearest b - a + c but for these themselves, for questions (n, 3) of rows a, b, c (-1: the mean's
    direction); -1 in an empty space.

    cos(x, b - a + c) is x.b - x.a + x.c up to a factor of the question's: the products of each distinct word with all
    words are taken once, block by block, and questions only add them up. The first of equals wins. No table has many
    more than `chunk` numbers.
    """
    best = np.full(len(questions), -np.inf)
    answer = np.full(len(questions), -1, np.int64)
    if not len(questions) or not len(space):
        return answer
    words, code = np.unique(questions, return_inverse=True)
    a, b, c = code.reshape(-1, 3).T
    units = space.normalized(words)
    width = max(1, min(len(space), chunk // len(words), chunk // 64))
    for first in range(0, len(space), width):
        block = np.arange(first, min(first + width, len(space)))
        products = units @ space.normalized(block).T  # (words, block)
        step = max(1, chunk // len(block))
        for at in range(0, len(questions), step):
            part = slice(at, at + step)
            values = products[b[part]] - products[a[part]] + products[c[part]]
            own = questions[part] - first
            inside = (questions[part] >= 0) & (own >= 0) & (own < len(block))
            values[np.nonzero(inside)[0], own[inside]] = -np.inf
            top = values.argmax(axis=1)
            value = values[np.arange(len(top)), top]
            better = value > best[part]
            best[part] = np.where(better, value, best[part])
            answer[part] = np.where(better, block[top], answer[part])
    return answer


def _score(
    name: str, part: str, right: np.ndarray, counts: np.ndarray, is_covered: np.ndarray, in_part: np.ndarray
) -> BenchmarkScore:
    n = int((counts & in_part).sum())
    value = float((right & in_part).sum() / n) if n else float("nan")
    return BenchmarkScore(name, part, value, n, int((is_covered & in_part).sum()), int(in_part.sum()))


Benchmark = Similarity | Analogy | RelationalSimilarity | Categorisation


def evaluate(
    space: WordSpace, benchmarks: Sequence[Benchmark], options: BenchmarkOptions | None = None
) -> list[BenchmarkScore]:
    """The scores of every benchmark, each whole (part ""), then by its parts (sections, relations)."""
    options = options or BenchmarkOptions()
    return [score for one in benchmarks for score in SCORERS[type(one)](space, one, options)]


SCORERS: dict[type[Benchmark], Callable[..., list[BenchmarkScore]]] = {
    Similarity: score_similarity,
    Analogy: score_analogy,
    RelationalSimilarity: score_relational,
    Categorisation: score_categorisation,
}


def table(scores: Sequence[BenchmarkScore], choices: BenchmarkOptions) -> pd.DataFrame:
    """Table with a row for each score: benchmark, part, value, numbers of items (used, covered, total), the options."""
    import pandas as pd

    missing = {"skip": "left out", "mean": "mean vector"}[choices.oov]
    return pd.DataFrame([{**vars(s), "covered_share": s.share, "missing_words": missing} for s in scores])
