"""Static vectors of words for ctxexp: a metric, Table 1 of Ethayarajh (2019) and its nine benchmarks, and verbs."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp import Register
from ctxexp_words.space import Case, Format, OutOfVocabulary


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
    from ctxexp_words.command import File, bench
    from ctxexp_words.suite import BenchmarkOptions

    choices = BenchmarkOptions(oov, lower, case, candidates, clustering, seed)  # type: ignore[arg-type]  # it says what is none
    bench(File(vectors, format, shared_vocabulary), data, benchmarks, choices, out)


def split_words(
    *models: str,
    words: int = 200,
    untrained: bool = True,
    prefix: str = "as_tokenizer",
    seed: int = 0,
    out: Path = Path("split_words"),
) -> None:
    """Find the layer in which a word that is split in two pieces meets the same word in one piece, after Kaplan et al.
    2025, beside pieces of other words.

    models: names of transformers: bert, gpt2, smollm2 ...
    words: of each model at most so many, from the embedded sentences
    untrained: measure the untrained twins of bert and gpt2 too
    prefix: stands before each text: as_tokenizer, none, bos, or a text
    seed: of words, splits and resamples
    out: a folder for split_words.csv and split_words.png
    example: ctxexp split-words gpt2 bert
    """
    from ctxexp_words.splits.command import run

    run(models, most=words, untrained=untrained, prefix=prefix, seed=seed, out=out)


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    from ctxexp_words.metric import StaticVectors

    register("static_vectors", StaticVectors)


@ctxexp.hookimpl
def register_reports(register: Register) -> None:
    from ctxexp_words.table_1 import table_1

    register("table_1", table_1)


@ctxexp.hookimpl
def register_commands(register: Register) -> None:
    register("bench-words", bench_words)
    register("distil", "ctxexp_words.distil_command:distil")
    register("split-words", split_words)
