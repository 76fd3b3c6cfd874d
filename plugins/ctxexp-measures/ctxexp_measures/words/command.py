"""`ctxexp bench-words vectors=FILE data=FOLDER`: the benchmarks over a file of word vectors."""

from __future__ import annotations

from pathlib import Path

from ctxexp.models import WordVectors
from ctxexp.report import Document, Table
from ctxexp_measures.words.load import load
from ctxexp_measures.words.space import OutOfVocabulary, WordSpace, word_list
from ctxexp_measures.words.suite import BenchmarkOptions, Clustering, evaluate, table


def bench_words(
    *,
    vectors: Path,
    data: Path,
    benchmarks: list[str] | None = None,
    oov: OutOfVocabulary = "skip",
    lower: bool = True,
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
    lower: look words up in lower case; of a word's cased forms the file's first counts
    clustering: of categorisation: kmeans, or best, the highest purity of five, which flatters
    shared_vocabulary: a file with a word a line: no other words count
    seed: of k-means
    out: the table, with sections and relations
    example: ctxexp bench-words vectors=glove.txt data=benchmarks
    """
    choices = BenchmarkOptions(oov, lower, clustering, seed)
    read = WordVectors.read(vectors)
    shared = word_list(shared_vocabulary) if shared_vocabulary else None
    scores = evaluate(
        WordSpace.of(read.words, read.vectors, lower=lower, shared=shared), load(data, benchmarks), choices
    )
    cells = [
        [one.benchmark, f"{one.value:.3f}", f"{one.covered:,} of {one.total:,} ({one.share:.1%})"]
        for one in scores
        if not one.part
    ]
    notes = [choices.description(), *([f"shared vocabulary: {shared_vocabulary}"] if shared_vocabulary else [])]
    made = Table(str(vectors), table(scores, choices), ["benchmark", "score", "covered"], cells, notes)
    return Document(tables={"word_benchmarks": made})
