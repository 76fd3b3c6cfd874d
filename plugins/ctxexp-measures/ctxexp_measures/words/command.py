"""`ctxexp bench-words vectors=FILE data=FOLDER`: the benchmarks over a file of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ctxexp.models import WordVectors
from ctxexp.report import Document, Table
from ctxexp_measures.words.load import load
from ctxexp_measures.words.space import Case, OutOfVocabulary, WordSpace, word_list
from ctxexp_measures.words.suite import BenchmarkOptions, BenchmarkScore, Candidates, Clustering, evaluate, table


def bench_words(
    *,
    vectors: Path,
    data: Path,
    benchmarks: list[str] | None = None,
    oov: OutOfVocabulary = "skip",
    lower: bool = True,
    case: Case = "frequent",
    candidates: Candidates = "vocabulary",
    clustering: Clustering = "kmeans",
    shared_vocabulary: Path | None = None,
    seed: int = 0,
    out: Path = Path("word_benchmarks.csv"),
) -> Document:
    """Score a file of word vectors on nine benchmarks.

    vectors: GloVe, word2vec text, fastText .vec, each also .gz
    data: the folder of the benchmarks' files
    benchmarks: a list of some of them; null: all
    oov: skip: leave out items with a missing word; mean: the mean vector stands in
    lower: look words up in lower case
    case: of a word's cased forms, frequent: the file's first; average: their mean
    candidates: answers to analogies: vocabulary, benchmark, or a number: the first so many words of the file
    clustering: of categorisation: kmeans, agglomerative, best
    shared_vocabulary: a file with a word a line: no other words count
    seed: of k-means
    out: the table, with sections and relations
    example: ctxexp bench-words vectors=glove.txt data=benchmarks
    """
    choices = BenchmarkOptions(oov, lower, case, candidates, clustering, seed)
    scores = score_file(vectors, shared_vocabulary, data, benchmarks, choices)
    cells = [
        [one.benchmark, f"{one.value:.3f}", f"{one.covered:,} of {one.total:,} ({one.share:.1%})"]
        for one in scores
        if not one.part
    ]
    notes = [choices.description(), *([f"shared vocabulary: {shared_vocabulary}"] if shared_vocabulary else [])]
    made = Table(str(vectors), table(scores, choices), ["benchmark", "score", "covered"], cells, notes)
    return Document(tables={"word_benchmarks": made})


def score_file(
    vectors: Path, vocabulary: Path | None, data: Path, benchmarks: Sequence[str] | None, choices: BenchmarkOptions
) -> list[BenchmarkScore]:
    """The benchmarks' scores within the words of `vocabulary` (None: all)."""
    shared = word_list(vocabulary) if vocabulary else None
    read = WordVectors.read(vectors)
    space = WordSpace.of(read.words, read.vectors, lower=choices.lower, case=choices.case, shared=shared)
    return evaluate(space, load(data, benchmarks), choices)
