"""Any UTF-8 text, a sentence a line: a file (plain or .gz) or a folder of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError, near
from ctxexp.files.paths import user_path
from ctxexp.files.text_lines import text_lines

Documents = Literal["none", "blank", "file"]
SUFFIXES = (".txt", ".text", ".txt.gz", ".text.gz")


def text(
    *,
    path: str | None = None,
    tokenizer: str = "english",
    lower: bool = False,
    limit: int | None = None,
    documents: Documents = "none",
) -> Corpus:
    """Any UTF-8 text file, or folder of .txt files, with a sentence a line.

    Files of a folder are read in the order of their names, line by line; empty lines are skipped; `limit` takes the
    first sentences only. `documents` says where one ends, so that intervals draw whole documents: `blank`, at an empty
    line (and at a file's end); `file`, at a file's end; `none`: it isn't known. Raises DataError naming file and line
    where the bytes are not UTF-8.
    """
    if not path:
        raise ConfigError("dataset=text needs a file or folder: add dataset.path=<file, a sentence a line>")
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit={limit}: expected a positive number of sentences, or null for all")
    if documents not in get_args(Documents):
        raise ConfigError(f"dataset.documents={documents!r}: no such choice{near(str(documents), get_args(Documents))}")
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentences: list[Sentence] = []
    places: list[tuple[Path, int]] = []
    for place, line in _lines(user_path(path)):
        if limit is not None and len(sentences) == limit:
            break
        sentences.append(tokenize(line))
        places.append(place if documents == "blank" else (place[0], 0))
    if not sentences:
        raise DataError(f"{path} has no sentence: expected UTF-8 text, a sentence a line")
    choices = {"tokenizer": tokenizer, "lower": str(lower).lower(), "limit": str(limit), "documents": documents}
    number = {place: i for i, place in enumerate(dict.fromkeys(places))}
    numbers = None if documents == "none" else tuple(number[place] for place in places)
    return Corpus(Path(path).name, tuple(sentences), choices=choices, documents=numbers)


def _lines(path: Path) -> Iterator[tuple[tuple[Path, int], str]]:
    """Each line that isn't empty, after its file and how many empty lines of that file come before it."""
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(SUFFIXES))
        if not inside:
            raise DataError(f"no text file in {path}: expected files named {', '.join('*' + s for s in SUFFIXES)}")
        for file in inside:
            yield from _lines(file)
        return
    if not path.is_file():
        raise DataError(f"no such file or folder: {path} (dataset.path)")
    blank = 0
    for _, line in text_lines(path):
        if said := line.strip():
            yield (path, blank), said
        else:
            blank += 1
