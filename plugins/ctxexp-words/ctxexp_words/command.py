"""`ctxexp bench-words vectors=FILE data=FOLDER`: the benchmarks over a file of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ctxexp.errors import ConfigError
from ctxexp.files.tables import write_csv
from ctxexp.files.vector_files import Format, read_vectors
from ctxexp_words.load import load
from ctxexp_words.score import Score
from ctxexp_words.space import Space, word_list
from ctxexp_words.suite import Choices, evaluate, table


class File(NamedTuple):
    """A file of word vectors, and the file of the words that count in it (None: all)."""

    path: Path
    format: Format = "auto"
    shared: Path | None = None


def bench(file: File, data: Path, benchmarks: Sequence[str] | None, choices: Choices, out: Path) -> None:
    """Print the table and write it as CSV."""
    scores = scored(file, data, benchmarks, choices)
    try:
        write_csv(table(scores, choices), out)
    except OSError as error:
        raise ConfigError(f"{error}; choose another out=") from error
    print(f"{file.path}: {choices.words()}{f', shared vocabulary: {file.shared}' if file.shared else ''}")
    for score in scores:
        if not score.part:
            value = "    nan" if score.value != score.value else f"{score.value:7.3f}"
            print(f"  {score.benchmark:<12}{value}   covered {score.covered:,} of {score.total:,} ({score.share:.1%})")
    print(f"table: {out}")


def scored(file: File, data: Path, benchmarks: Sequence[str] | None, choices: Choices) -> list[Score]:
    """The benchmarks' scores; only words that they can use are read from the file."""
    shared = word_list(file.shared) if file.shared else None
    held = load(data, benchmarks)
    fold = str.lower if choices.lower else str
    needed = {fold(word) for benchmark in held for word in benchmark.words()}
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

    read = read_vectors(file.path, wanted=None if whole else wanted, layout=file.format)
    space = Space.of(read.words, read.vectors, lower=choices.lower, case=choices.case, shared=shared)
    return evaluate(space, held, choices)
