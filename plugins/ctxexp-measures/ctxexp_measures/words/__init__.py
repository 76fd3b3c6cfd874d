"""Static vectors of words for ctxexp: a metric, Table 1 of Ethayarajh (2019) and its nine benchmarks, and verbs."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp import Register
from ctxexp_measures.words.space import Case, Format, OutOfVocabulary


def bench_words(
    *,
    vectors: Path,
    data: Path,
    benchmarks: list[str] | None = None,
    oov: OutOfVocabulary = "skip",
    lower: bool = True,
    case: Case = "frequent",
    candidates: str | int = "vocabulary",
    clustering: str = "kmeans",
    shared_vocabulary: Path | None = None,
    seed: int = 0,
    format: Format = "auto",
    out: Path = Path("word_benchmarks.csv"),
) -> None:
    """Score a file of word vectors on nine benchmarks.

    vectors: GloVe, word2vec (text, binary), fastText .vec, each also .gz; or .safetensors
    data: the folder of the benchmarks' files
    benchmarks: a list of some of them; null: all
    oov: skip: leave out items with a missing word; mean: the mean vector stands in
    lower: look words up in lower case
    case: of a word's cased forms, frequent: the file's first; average: their mean
    candidates: answers to analogies: vocabulary (the whole file is held in memory), benchmark, or a number: the
        first so many words of the file
    clustering: of categorisation: kmeans, agglomerative, best
    shared_vocabulary: a file with a word a line: no other words count
    seed: of k-means
    format: of the vectors
    out: the table, with sections and relations
    example: ctxexp bench-words vectors=glove.txt data=benchmarks
    """
    from ctxexp_measures.words.command import File, bench
    from ctxexp_measures.words.suite import BenchmarkOptions

    choices = BenchmarkOptions(oov, lower, case, candidates, clustering, seed)  # type: ignore[arg-type]  # it says what is none
    bench(File(vectors, format, shared_vocabulary), data, benchmarks, choices, out)


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    from ctxexp_measures.words.metric import StaticVectors

    register("static_vectors", StaticVectors)


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    from ctxexp_measures.words.table_1 import table_1

    register("table_1", table_1)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("bench-words", bench_words)
