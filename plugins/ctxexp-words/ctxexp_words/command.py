"""`ctxexp bench-words vectors=FILE data=FOLDER`: the benchmarks over a file of word vectors."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxexp.command.key_values import parse
from ctxexp.errors import ConfigError
from ctxexp.files.paths import user_path
from ctxexp.files.vector_files import Format, read_vectors
from ctxexp_words.load import SOURCES, load
from ctxexp_words.score import Score
from ctxexp_words.space import Case, OutOfVocabulary, Space, word_list
from ctxexp_words.suite import Choices, evaluate, table

ARGUMENTS: dict[str, tuple[Any, Any, str]] = {
    "vectors": (str, None, "GloVe, word2vec (text, binary), fastText .vec, each also .gz; or .safetensors"),
    "data": (str, None, "the folder of the benchmarks' files"),
    "benchmarks": (list[str] | None, None, f"a list of some of {', '.join(SOURCES)}; null: all"),
    "oov": (OutOfVocabulary, "skip", "skip: leave out items with a missing word; mean: the mean vector stands in"),
    "lower": (bool, True, "look words up in lower case"),
    "case": (Case, "frequent", "of a word's cased forms, frequent: the file's first; average: their mean"),
    "candidates": (str | int, "vocabulary", "answers to analogies: vocabulary (the whole file is held in memory), "
                   "benchmark, or a number: the first so many words of the file"),
    "clustering": (str, "kmeans", "of categorisation: kmeans, agglomerative, best"),
    "shared_vocabulary": (str | None, None, "a file with a word a line: no other words count"),
    "seed": (int, 0, "of k-means"),
    "format": (Format, "auto", "of the vectors: auto, text, binary"),
    "out": (str, "word_benchmarks.csv", "the table, with sections and relations"),
}  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Print the table and write it as CSV."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if {"-h", "--help"} & set(argv):
        print(__doc__, *(f"  {k}={default}: {words}" for k, (_, default, words) in ARGUMENTS.items()), sep="\n")
        return 0
    given = parse(argv, ARGUMENTS, "vectors=glove.txt")
    for key in ("vectors", "data"):
        if given[key] is None:
            raise ConfigError(f"expected {key}=<path>: {ARGUMENTS[key][2]}")
    scores, choices = run(given)
    out = Path(given["out"])
    try:
        table(scores, choices).write_csv(out)
    except OSError as error:
        raise ConfigError(f"{error}; choose another out=") from error
    shared = f", shared vocabulary: {given['shared_vocabulary']}" if given["shared_vocabulary"] else ""
    print(f"{given['vectors']}: {choices.words()}{shared}")
    for score in scores:
        if not score.part:
            value = "    nan" if score.value != score.value else f"{score.value:7.3f}"
            print(f"  {score.benchmark:<12}{value}   covered {score.covered:,} of {score.total:,} ({score.share:.1%})")
    print(f"table: {out}")
    return 0


def run(given: dict[str, Any]) -> tuple[list[Score], Choices]:
    """Scores and choices; only words that the benchmarks can use are read from the file."""
    choices = Choices(**{key: given[key] for key in ("oov", "lower", "case", "candidates", "clustering", "seed")})
    shared = word_list(user_path(given["shared_vocabulary"])) if given["shared_vocabulary"] else None
    benchmarks = load(given["data"], given["benchmarks"])
    fold = str.lower if choices.lower else str
    needed = {fold(word) for benchmark in benchmarks for word in benchmark.words()}
    whole = choices.candidates == "vocabulary" or choices.oov == "mean"  # the mean is over all words
    allowed = None if shared is None else {fold(word) for word in shared}
    frequent: set[str] = set()  # the forms that the candidates are, where they are a number of words

    def wanted(word: str) -> bool:
        form = fold(word)
        if allowed is not None and form not in allowed:
            return False
        if isinstance(choices.candidates, int) and len(frequent) < choices.candidates:
            frequent.add(form)
        return form in needed or form in frequent

    path = user_path(given["vectors"])
    read = read_vectors(path, wanted=None if whole else wanted, layout=given["format"])
    space = Space.of(read.words, read.vectors, lower=choices.lower, case=choices.case, shared=shared)
    return evaluate(space, benchmarks, choices), choices
