"""Analogies: Google's and Microsoft's questions, a is to b as c is to what?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ctxexp_measures.words.score import BenchmarkScore
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace

CHUNK = 8_000_000  # numbers of a table of similarities: 64 MB
Candidates = Literal["vocabulary", "benchmark"]


@dataclass(frozen=True)
class Analogy:
    """Questions (a, b, c, answer) in sections."""

    name: str
    questions: tuple[tuple[str, str, str, str], ...]
    sections: tuple[str, ...]  # one a question

    def words(self) -> set[str]:
        return {word for question in self.questions for word in question}


def score_analogy(
    space: WordSpace, benchmark: Analogy, *, oov: OutOfVocabulary = "skip", candidates: Candidates | int = "vocabulary"
) -> list[BenchmarkScore]:
    """Accuracy of 3CosAdd (Mikolov et al. 2013; Levy and Goldberg 2014), in [0, 1]: whole, then by section.

    The answer is the candidate with the largest cosine to b - a + c, of unit-norm vectors; a, b and c themselves are no
    candidates. `candidates`: every word that has a vector, those of the benchmark only, or a number: the most frequent
    so many. Questions are covered if all four words have a vector (the answer need not be a candidate: then it can't be
    found). With `oov="mean"` the mean vector stands for a missing a, b or c, and a missing answer counts as wrong.
    """
    rows = space.rows(word for question in benchmark.questions for word in question).reshape(-1, 4)
    is_covered = np.asarray((rows >= 0).all(axis=1))
    counts: np.ndarray = is_covered if oov == "skip" else np.ones(len(rows), bool)
    right = np.zeros(len(rows), bool)
    to_answer = np.flatnonzero(counts & (rows[:, 3] >= 0))
    pool = _pool(space, benchmark, candidates)
    right[to_answer] = answers(space, rows[to_answer, :3], pool) == rows[to_answer, 3]
    scores = [_score(benchmark.name, "", right, counts, is_covered, np.ones(len(rows), bool))]
    sections = np.array(benchmark.sections)
    for section in dict.fromkeys(benchmark.sections):
        scores.append(_score(benchmark.name, section, right, counts, is_covered, sections == section))
    return scores


def answers(space: WordSpace, questions: np.ndarray, candidates: np.ndarray, *, chunk: int = CHUNK) -> np.ndarray:
    """(n,) the candidate rows nearest b - a + c, for questions (n, 3) of rows a, b, c; -1 without any candidate.

    cos(x, b - a + c) is x.b - x.a + x.c up to a factor of the question's: the products of each distinct word with the
    candidates are taken once, block by block of candidates, and questions only add them up. The first of equals wins.
    No table has many more than `chunk` numbers.
    """
    best = np.full(len(questions), -np.inf)
    answer = np.full(len(questions), -1, np.int64)
    if not len(questions) or not len(candidates):
        return answer
    words, code = np.unique(questions, return_inverse=True)
    a, b, c = code.reshape(-1, 3).T
    place = np.full(len(space), -1, np.int64)  # row -> place among the candidates
    place[candidates] = np.arange(len(candidates))
    place = np.append(place, -1)  # row -1, the stand-in, is no candidate
    own = place[questions]  # (n, 3)
    units = space.normalized(words)
    width = max(1, min(len(candidates), chunk // len(words), chunk // 64))
    for first in range(0, len(candidates), width):
        block = candidates[first : first + width]
        products = units @ space.normalized(block).T  # (words, block)
        step = max(1, chunk // len(block))
        for at in range(0, len(questions), step):
            part = slice(at, at + step)
            values = products[b[part]] - products[a[part]] + products[c[part]]
            excluded = own[part] - first
            inside = (own[part] >= 0) & (excluded >= 0) & (excluded < len(block))
            values[np.nonzero(inside)[0], excluded[inside]] = -np.inf
            top = values.argmax(axis=1)
            value = values[np.arange(len(top)), top]
            better = value > best[part]
            best[part] = np.where(better, value, best[part])
            answer[part] = np.where(better, block[top], answer[part])
    return answer


def _pool(space: WordSpace, benchmark: Analogy, candidates: Candidates | int) -> np.ndarray:
    """Rows of the candidates, ascending."""
    if candidates == "vocabulary":
        return np.arange(len(space))
    if candidates == "benchmark":
        rows = np.unique(space.rows(sorted(benchmark.words())))
        return rows[rows >= 0]
    return np.arange(min(len(space), int(candidates)))


def _score(
    name: str, part: str, right: np.ndarray, counts: np.ndarray, is_covered: np.ndarray, in_part: np.ndarray
) -> BenchmarkScore:
    n = int((counts & in_part).sum())
    value = float((right & in_part).sum() / n) if n else float("nan")
    return BenchmarkScore(name, part, value, n, int((is_covered & in_part).sum()), int(in_part.sum()))
