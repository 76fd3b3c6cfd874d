"""`ctxexp bench-words vectors=FILE data=FOLDER`: the benchmarks over a file of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ctxexp.errors import ConfigError
from ctxexp.models import WordVectors
from ctxexp.report import write_csv
from ctxexp_measures.words.load import load
from ctxexp_measures.words.score import BenchmarkScore
from ctxexp_measures.words.space import Format, WordSpace, word_list
from ctxexp_measures.words.suite import BenchmarkOptions, evaluate, table


class File(NamedTuple):
    """A file of word vectors, and the file of the words that count in it (None: all)."""

    path: Path
    format: Format = "auto"
    shared: Path | None = None


def bench(file: File, data: Path, benchmarks: Sequence[str] | None, choices: BenchmarkOptions, out: Path) -> None:
    """Print the table and write it as CSV."""
    scores = score_file(file, data, benchmarks, choices)
    try:
        write_csv(table(scores, choices), out)
    except OSError as error:
        raise ConfigError(f"{error}; choose another out=") from error
    print(f"{file.path}: {choices.description()}{f', shared vocabulary: {file.shared}' if file.shared else ''}")
    for score in scores:
        if not score.part:
            value = "    nan" if score.value != score.value else f"{score.value:7.3f}"
            print(f"  {score.benchmark:<12}{value}   covered {score.covered:,} of {score.total:,} ({score.share:.1%})")
    print(f"table: {out}")


def score_file(
    file: File, data: Path, benchmarks: Sequence[str] | None, choices: BenchmarkOptions
) -> list[BenchmarkScore]:
    """The benchmarks' scores; only words that they can use are read from the file."""
    shared = word_list(file.shared) if file.shared else None
    loaded = load(data, benchmarks)
    fold = str.lower if choices.lower else str
    needed = {fold(word) for benchmark in loaded for word in benchmark.words()}
    whole = choices.candidates == "vocabulary" or choices.oov == "mean"  # the mean is over all words
    allowed = None if shared is None else {fold(word) for word in shared}
    frequent: set[str] = set()  # the forms that the candidates are, where they are a number of words

    def is_needed(word: str) -> bool:
        form = fold(word)
        if allowed is not None and form not in allowed:
            return False
        if isinstance(choices.candidates, int) and len(frequent) < choices.candidates:
            frequent.add(form)
        return form in needed or form in frequent

    read = WordVectors.read(file.path, wanted=None if whole else is_needed, layout=file.format)
    space = WordSpace.of(read.words, read.vectors, lower=choices.lower, case=choices.case, shared=shared)
    return evaluate(space, loaded, choices)
