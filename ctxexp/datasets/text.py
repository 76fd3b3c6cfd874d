"""UTF-8 text, one sentence per line: a file (plain or .gz) or a folder of them, in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ctxexp.dataset import Corpus, Sentence, TextStream
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError, near, short
from ctxexp.files.paths import user_path
from ctxexp.files.text_lines import lines_after_byte, text_lines

Documents = Literal["none", "blank", "file"]
SUFFIXES = (".txt", ".text", ".txt.gz", ".text.gz")
PART_BYTES = 64 << 20  # bytes of a large file in one part


def text(
    *,
    path: str | None = None,
    tokenizer: str = "english",
    lower: bool = False,
    limit: int | None = None,
    documents: Documents = "none",
    stream: bool = False,
) -> Corpus | TextStream:
    """A UTF-8 text file, or folder of .txt, .text, .txt.gz and .text.gz files, with one sentence per line.

    Files of a folder are read in the order of their names, line by line; empty lines are skipped; `limit` takes the
    first sentences only. `documents` says where a document ends, so that intervals resample documents: `blank`, at an
    empty line (and at a file's end); `file`, at a file's end; `none`: not known. `stream`: the text is not held in
    memory, but read whenever it is needed (without `limit` only). Raises DataError naming file and line where the bytes
    are not UTF-8.
    """
    if not path:
        raise ConfigError("dataset=text needs a file or folder: add dataset.path=<file, a sentence a line>")
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit={limit}: expected a positive number of sentences, or null for all")
    if documents not in get_args(Documents):
        names = get_args(Documents)
        raise ConfigError(f"dataset.documents={short(documents)}: no such choice{near(str(documents), names)}")
    choices = {"tokenizer": tokenizer, "lower": str(lower).lower(), "limit": str(limit), "documents": documents}
    lines = Lines(path, choices)
    if stream and limit is None:
        return lines
    corpus = lines.corpus(limit)
    if not corpus.sentences:
        raise DataError(f"{path} has no sentence: expected UTF-8 text, a sentence a line")
    return corpus


class CorpusShard(NamedTuple):
    """The lines of a file that begin between two bytes; `end` None: all lines."""

    path: Path
    start: int = 0
    end: int | None = None


class Lines(TextStream):
    """The lines of text files; large files are read in parts, except where each file is a document."""

    def __init__(self, path: str, choices: dict[str, str]) -> None:
        self.name, self.choices, self.documents = Path(path).name, choices, choices["documents"]
        self.parts: Sequence[CorpusShard] = [part for file in _files(user_path(path)) for part in self._parts(file)]
        self.tokenize("")  # a tokenizer that isn't installed is refused before anything is read

    @cached_property
    def tokenize(self) -> Callable[[str], Sentence]:
        return make_tokenizer(self.choices["tokenizer"], lower=self.choices["lower"] == "true")

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "tokenize"}

    def _parts(self, file: Path) -> Iterator[CorpusShard]:
        size = file.stat().st_size
        if file.suffix == ".gz" or self.documents == "file" or size <= PART_BYTES:
            yield CorpusShard(file)
            return
        for start in range(0, size, PART_BYTES):
            yield CorpusShard(file, start, min(start + PART_BYTES, size))

    def texts(self, part: object) -> Iterator[tuple[int | None, str]]:
        assert isinstance(part, CorpusShard)
        blank = 0
        for line in _lines(part, blank=self.documents == "blank"):
            if sentence := line.strip():
                yield {"none": None, "file": 0, "blank": blank}[self.documents], sentence
            else:
                blank += 1

    def sentence(self, text: str) -> Sentence:
        return self.tokenize(text)


def _lines(part: CorpusShard, *, blank: bool) -> Iterator[str]:
    """The lines that begin in the part. With `blank`, the lines after the first blank line of the part (of a file's
    first
    part: all lines), up to the first blank line of the next part, so that no document is cut."""
    if part.end is None:
        yield from (line for _, line in text_lines(part.path))
        return
    inside = part.start == 0 or not blank
    for at, line in lines_after_byte(part.path, part.start):
        if at >= part.end and not blank:
            return
        if inside:
            yield line
        if blank and not line.strip():
            if at >= part.end:
                return
            inside = True


def _files(path: Path) -> list[Path]:
    """The file, or the text files of a folder in the order of their names."""
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(SUFFIXES))
        if not inside:
            raise DataError(f"no text file in {path}: expected files named {', '.join('*' + s for s in SUFFIXES)}")
        return inside
    if not path.is_file():
        raise DataError(f"no such file or folder: {path} (dataset.path)")
    return [path]
