"""Sentences of text files, one a line, or of SNLI's and MultiNLI's pairs: the text that a transform is fitted on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import DataError
from ctxexp.files.paths import user_path
from ctxexp.files.text_lines import text_lines

FIELDS = (("sentence1", "sentence2"), ("premise", "hypothesis"))  # of .jsonl objects and .tsv headers
SUFFIXES = (".jsonl", ".tsv", ".txt")  # of a folder's files those of the first kind that is there are read


def sentences_of(path: str, tokenizer: str, *, lower: bool = False) -> Corpus:
    """The sentences of a file or folder: one sentence per line (.txt), or pairs as SNLI and MultiNLI have them (.jsonl;
    .tsv or .txt with their header), first and second sentence of each, labels unused; any of them .gz.

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
        return [place]
    if not place.is_dir():
        raise DataError(f"no such file or folder: {place} (fit_on=nli:{path})")
    kinds = [[f for f in sorted(place.iterdir()) if f.name.removesuffix(".gz").endswith(s)] for s in SUFFIXES]
    files = next((group for group in kinds if group), [])
    if not files:
        raise DataError(f"no {', '.join(SUFFIXES)} file in {place} (fit_on=nli:{path})")
    return files


def _read(file: Path) -> Iterator[str]:
    lines = [line for _, line in text_lines(file)]
    if file.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield from _object(file, number, line)
        return
    head = lines[0].split("\t") if lines else []
    fields = next((pair for pair in FIELDS if set(pair) <= set(head)), None)
    if fields is None:
        if file.name.removesuffix(".gz").endswith(".tsv"):
            raise DataError(
                f"{file}: its first line names no columns sentence1 and sentence2 (or premise and hypothesis); rename "
                "it to .txt if it holds a sentence a line"
            )
        yield from (line.strip() for line in lines)
        return
    columns = [head.index(name) for name in fields]
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if not line.strip():
            continue
        if len(cells) <= max(columns):
            raise DataError(f"{file}, line {number}: {len(cells)} tab-separated fields; expected {max(columns) + 1}")
        yield from (cells[column].strip() for column in columns)


def _object(file: Path, number: int, line: str) -> Iterator[str]:
    try:
        record = json.loads(line)
        pair = next(fields for fields in FIELDS if all(isinstance(record.get(name), str) for name in fields))
    except (ValueError, AttributeError, StopIteration):
        raise DataError(
            f"{file}, line {number}: expected an object with texts sentence1 and sentence2 (or premise and hypothesis)"
        ) from None
    yield from (record[name].strip() for name in pair)
