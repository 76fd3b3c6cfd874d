"""Sentences of text files, one a line, or of SNLI's and MultiNLI's pairs: the text that a transform is fitted on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.tables import read_rows
from ctxexp.datasets.text import LINES
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import DataError, short
from ctxexp.files.paths import user_path
from ctxexp.files.text_lines import suffix_of, text_lines

FIELDS = (("sentence1", "sentence2"), ("premise", "hypothesis"))  # of .jsonl objects and .tsv headers
SUFFIXES = (".jsonl", ".tsv", ".txt")  # of a folder's files those of the first kind that is there are read


def sentences_of(path: str, tokenizer: str, *, lower: bool = False) -> Corpus:
    """The sentences of a file or folder: one sentence per line (.txt), or pairs as SNLI and MultiNLI have them (.jsonl;
    .tsv or .txt with their header), first and second sentence of each, labels unused; any of them compressed.

    Of a folder the .jsonl files are read if it has any, else .tsv, else .txt. Raises DataError naming file and line.
    """
    place, files = user_path(path), files_of(path)
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentences: dict[str, Sentence] = {}
    for file in files:
        for text in _read(file):
            if text and text not in sentences:
                sentences[text] = tokenize(text)
    if not sentences:
        raise DataError(f"{place} has no sentence (fit_on=nli:{path})")
    return Corpus(place.name, tuple(sentences.values()), choices={"tokenizer": tokenizer, "lower": str(lower).lower()})


def files_of(path: str) -> list[Path]:
    """The file, or of a folder those of its first kind that is there. Raises DataError if there is none."""
    place = user_path(path)
    if place.is_file():
        if (suffix := suffix_of(place)) not in ("", *SUFFIXES, *LINES):
            raise DataError(f"{place}: a file named *{suffix} isn't read; expected {', '.join(SUFFIXES)} (fit_on=nli:)")
        return [place]
    if not place.is_dir():
        raise DataError(f"no such file or folder: {place} (fit_on=nli:{path})")
    kinds = [[f for f in sorted(place.iterdir()) if suffix_of(f) == s] for s in SUFFIXES]
    files = next((group for group in kinds if group), [])
    if not files:
        raise DataError(f"no {', '.join(SUFFIXES)} file in {place} (fit_on=nli:{path})")
    return files


def _read(file: Path) -> Iterator[str]:
    if suffix_of(file) == ".jsonl":
        for where, cells in read_rows(file, lambda names: _pair(names, file)):
            if not all(isinstance(cell, str) for cell in cells):
                raise DataError(f"{where}: expected texts, got {short(cells)}")
            yield from (cell.strip() for cell in cells)
        return
    lines = [line for _, line in text_lines(file)]
    head = lines[0].split("\t") if lines else []
    if suffix_of(file) != ".tsv" and not any(set(pair) <= set(head) for pair in FIELDS):
        yield from (line.strip() for line in lines)
        return
    columns = [head.index(name) for name in _pair(head, file)]
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if not line.strip():
            continue
        if len(cells) <= max(columns):
            raise DataError(f"{file}, line {number}: {len(cells)} tab-separated fields; expected {max(columns) + 1}")
        yield from (cells[column].strip() for column in columns)


def _pair(names: Sequence[str], file: Path) -> tuple[str, str]:
    pair = next((pair for pair in FIELDS if set(pair) <= set(names)), None)
    if pair is None:
        raise DataError(
            f"{file}: no columns sentence1 and sentence2 (or premise and hypothesis); rename it to .txt if it holds a "
            "sentence a line"
        )
    return pair
