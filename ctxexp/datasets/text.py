"""The user's own text, in memory or streamed: files of a sentence a line, tables with a column of texts, folders of
either, SNLI's and MultiNLI's pairs as sentences.

Which file is read how is told by its name, what a line is by `ctxexp.datasets.reading`, what a table's cells are by
`ctxexp.datasets.tables`; a kind of file that isn't known is refused.
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import regex
from annotated_types import Ge

from ctxexp.dataset import Corpus, Sentence, TextStream
from ctxexp.datasets.reading import (
    COMPRESSED,
    LINES,
    TABLES,
    is_compressed,
    is_text_file,
    lines_after_byte,
    suffix_of,
    text_lines,
)
from ctxexp.datasets.tables import open_table, read_table, text_of
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError, near, short
from ctxexp.files import user_path
from ctxexp.files.job_folder import read_json

log = logging.getLogger("ctxexp")
Sentences = Literal["row", "line", "marks"]
Unit = tuple[object, str, object]  # a line or a cell, its place (for messages), what tells its document (in a row)
PART_BYTES = 64 << 20  # bytes of a large file in one part
OTHER_KINDS = {
    **dict.fromkeys((".conllu", ".conll", ".bio"), "tagged text is read with dataset=tagged dataset.path={}"),
    ".xml": "of XML files SemCor's are read, with dataset=semcor dataset.path=<their folder>",
    ".py": "a plugin is loaded with plugins=[{}]",
    **dict.fromkeys(
        (".safetensors", ".bin", ".pt", ".pth"), "a model is given by its folder: model=<the folder of {}>"
    ),
    ".gguf": "a model is given with model={}",
    **dict.fromkeys((".zip", ".tar", ".7z", ".rar"), "unpack the archive"),
    ".vec": "word vectors are read with model=word_vectors model.path={}",
    **dict.fromkeys((".npz", ".npy", ".h5", ".hdf5"), "vectors of words are read with model=vectors model.path={}"),
}
"""What is no text, with the option that takes it."""
_MARKS = regex.compile(r"(?<=[.!?…][\"'”’)\]]?)\s+(?=[\"'“‘(\[]?[\p{Lu}\p{N}])")
_SHARD = re.compile(r"(.*)-\d{5}-of-(\d{5})\.")
_HIDDEN = re.compile(r"[._]|cache-.*\.arrow$")  # as pyarrow has it; what `datasets` keeps of its maps
MANIFESTS = ("dataset_dict.json", "dataset_info.json", "state.json")  # of `datasets`
_LINE_END = re.compile(r"\r\n|\r|\n")
_CUTS: dict[str, Callable[[str], list[str]]] = {
    "row": lambda text: [text],
    "line": lambda text: [line.strip() for line in _LINE_END.split(text)],
    "marks": lambda text: [one.strip() for line in _LINE_END.split(text) for one in _MARKS.split(line)],
}
FIELDS = (("sentence1", "premise"), ("sentence2", "hypothesis"))  # of .jsonl objects and .tsv headers
DOCUMENTS = ("none", "blank", "file", "row")  # choices of `documents` that are no column
SUFFIXES = (".jsonl", ".tsv", ".txt")  # of a folder's files those of the first kind that is there are read


def text(
    *,
    path: str | None = None,
    column: str | None = None,
    quotes: Literal["csv", "text"] | None = None,
    tokenizer: str = "english",
    lower: bool = False,
    limit: Annotated[int, Ge(1)] | None = None,
    sentences: Sentences = "row",
    documents: str | None = None,
    stream: bool = False,
) -> Corpus | TextStream:
    """A UTF-8 text file with a sentence per line, a table with a text per row, or a folder of files of one kind.

    Files named .txt, .text or without a suffix have a sentence per line; .csv, .tsv, .jsonl, .ndjson, .json, .parquet,
    .arrow and .feather are tables; any of them .gz, .bz2, .xz or .zst. Files of a folder are read in the order of their
    names. Empty lines are skipped; rows without text are left out and counted. `column` holds a table's texts, or lists
    of the words of a sentence; None: `text`, else `sentence`. `quotes`: whether quotation marks enclose the cells of
    CSV and TSV (`csv`) or are text (`text`). `sentences`, how a line or a cell is cut: `row`: it is a sentence; `line`:
    each of its lines; `marks`: at sentence-final punctuation (. ! ? and … with a closing quote or bracket, before white
    space and a capital or a digit). `documents` says where a document ends, so that intervals resample documents:
    `blank`, at an empty line (and at a file's end); `file`, at a file's end; `row`, at a row's; a column: where its
    value changes; `none`: not known; None: `row` where rows are cut into sentences, which then aren't independent, else
    `none`. `limit` takes the first sentences only. `stream`: the text is not held in memory, but read whenever it is
    needed (without `limit` only). Raises DataError naming file and line.

    column: of a table: the texts, or lists of words; null: text, else sentence
    quotes: of CSV and TSV: csv (quotation marks enclose cells), text (they are text); null: csv for CSV, and a TSV
        that begins a cell with one is refused
    limit: the first sentences only
    sentences: what is one: row (a line, or a cell), line (of a cell), marks (cut after . ! ? before white space and
        a capital or digit)
    documents: where one ends, for intervals: blank (at an empty line), file (at its end), row, a column (where its
        value changes), none (unknown); null: row where sentences cuts rows, else none
    stream: true: read again whenever it is needed, and not held in memory; so it is with words.max_contexts
    """
    if not path:
        raise ConfigError(
            "dataset=text needs a file or folder: add dataset.path=<a text, a table, or a folder of them>"
        )
    documents = documents or ("none" if sentences == "row" else "row")
    choices = {"documents": documents, "sentences": sentences, "column": str(column), "quotes": str(quotes)}
    texts = TextFiles(path, TextUnits.choices_of(choices, tokenizer, lower, limit), column=column, quotes=quotes)
    return texts.read(limit, stream=stream)


class TextUnits(TextStream):
    """A stream of lines or cells, cut into sentences; those without text are left out, and of a table's counted.

    Args:
        name: The text's name.
        choices: What `choices_of` makes of the choices of `dataset=text`.

    Example:
        >>> class Rows(TextUnits):
        ...     parts = (("A bank. The river.", ""),)
        ...     def units(self, part):
        ...         for row, cell in enumerate(part):
        ...             yield cell, f"row {row}", row
        >>> choices = TextUnits.choices_of({"sentences": "marks", "documents": "row"}, "english", False, None)
        >>> [sentence.text for sentence in Rows("rows", choices).read(None, stream=False).sentences]
        ['A bank.', 'The river.']
    """

    def __init__(self, name: str, choices: Mapping[str, str], column: str | None = None) -> None:
        self.name, self.choices, self.column = name, choices, column
        self.columns, self.notes = dict[str, None](), list[str]()
        self.n_rows = self.n_left_out = 0
        self.is_streamed, self.reported = False, set[object]()
        self.tokenize("")  # a tokenizer that isn't installed is refused before anything is read

    @abstractmethod
    def units(self, part: object) -> Iterator[Unit]:
        """The lines or cells of a part, each with its place, for messages, and what tells its document."""

    @staticmethod
    def choices_of(choices: Mapping[str, str], tokenizer: str, lower: bool, limit: int | None) -> dict[str, str]:
        """The choices of a text as each run logs them."""
        return {"tokenizer": tokenizer, "lower": str(lower).lower(), "limit": str(limit), **choices}

    def table_units(self, table: object, quotes: str | None = None) -> Iterator[Unit]:
        """The cells of the column of texts of a table, a file or in memory. Raises DataError as `read_table` does."""
        documents = self.choices.get("documents", "none")
        wanted = [self.column] if documents in DOCUMENTS else [self.column, documents]
        opened = open_table(table, wanted, quotes)
        names = [*map(opened.column, wanted)]
        self.columns |= dict.fromkeys(filter(None, names))
        for number, (where, cells) in enumerate(opened.rows(names)):
            yield cells[0], where, number if documents == "row" else cells[1:]

    def read(self, limit: int | None, *, stream: bool) -> Corpus | TextUnits:
        """The texts, in memory unless they are streamed. Raises DataError where there is no sentence."""
        self.is_streamed = stream and limit is None
        if self.is_streamed:
            return self
        corpus = self.corpus(limit)
        if not corpus.sentences:
            raise DataError(f"{self.name} has no sentence: expected UTF-8 text, a sentence a line, or a table of texts")
        return replace(corpus, origin=self.origin, left_out=self.n_left_out)

    @property
    def origin(self) -> str:
        """What has been read so far: columns, rows, and how many of them have no text and are left out."""
        columns = [f"column {name!r}" for name in self.columns]
        rows = [
            f"{self.n_rows:,} row{'s' * (self.n_rows != 1)}"
            + (f", {self.n_left_out:,} without text left out" if self.n_left_out else "")
        ]
        return ", ".join([*self.notes, *columns, *(rows if self.n_rows else ["streamed"])])

    @cached_property
    def tokenize(self) -> Callable[[str], Sentence]:
        return make_tokenizer(self.choices["tokenizer"], lower=self.choices["lower"] == "true")

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "tokenize"}

    def texts(self, part: object) -> Iterator[tuple[int | None, str | Sentence]]:
        cut = _CUTS[self.choices.get("sentences", "row")]
        document, previous, rows, left_out = -1, object(), self.n_rows, self.n_left_out
        for cell, where, mark in self.units(part):
            self.n_rows += 1
            if mark != previous:
                document, previous = document + 1, mark
            number = None if self.choices.get("documents", "none") == "none" else document
            content = text_of(cell, where)
            self.n_left_out += content is None
            if isinstance(content, str):
                yield from ((number, one) for one in cut(content) if one)
            elif content is not None:
                yield number, content
        left_out = self.n_left_out - left_out
        if self.is_streamed and left_out and part not in self.reported:
            self.reported.add(part)
            log.warning(f"{self.name}: {left_out:,} of {self.n_rows - rows:,} rows have no text and are left out")

    def sentence(self, text: str) -> Sentence:
        return self.tokenize(text)


class CorpusShard(NamedTuple):
    """The lines of a file that begin between two bytes; `end` None: all lines, or rows."""

    path: Path
    start: int = 0
    end: int | None = None


class TextFiles(TextUnits):
    """The lines or rows of files of one kind; large files of lines are read in parts, except where each file is a
    document."""

    def __init__(self, path: str, choices: Mapping[str, str], *, column: str | None, quotes: str | None = None) -> None:
        super().__init__(Path(path).name, choices, column)
        self.quotes, self.documents = quotes, choices["documents"]
        files, left = files_of(user_path(path))
        if user_path(path).is_dir():
            names = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
            self.notes.append(f"{len(files)} files" + (f", {len(left)} are not read: {names}" if left else ""))
        self.is_table = suffix_of(files[0]) in TABLES
        known = ("none", "file", "row") if self.is_table else ("none", "blank", "file", "row")
        if self.documents not in known and not (self.is_table and self.documents != "blank"):
            raise ConfigError(
                f"dataset.documents={short(self.documents)}: no such choice of {self.name}{near(self.documents, known)}"
            )
        if not self.is_table and (column or quotes):
            raise ConfigError(
                f"{path}: a text of lines has no columns and no cells: leave dataset.column and quotes out"
            )
        self.parts: Sequence[CorpusShard] = [part for file in files for part in self._parts(file)]

    def _parts(self, file: Path) -> Iterator[CorpusShard]:
        size = file.stat().st_size
        if self.is_table or self.documents == "file" or size <= PART_BYTES or is_compressed(file):
            yield CorpusShard(file)
            return
        for start in range(0, size, PART_BYTES):
            yield CorpusShard(file, start, min(start + PART_BYTES, size))

    def units(self, part: object) -> Iterator[Unit]:
        assert isinstance(part, CorpusShard)
        if self.is_table:
            yield from self.table_units(part.path, self.quotes)
            return
        document = 0
        for line in _lines(part, blank=self.documents == "blank"):
            sentence = line.strip()
            if sentence:
                yield sentence, "", document
            document += self.documents == "row" or (self.documents == "blank" and not sentence)


class TextTable(TextUnits):
    """The texts of a table or a list in memory, which are one document's or nobody's."""

    parts = ("",)

    def __init__(self, table: object, choices: Mapping[str, str], column: str | None) -> None:
        super().__init__("sentences", choices, column)
        self.table = table

    def units(self, part: object) -> Iterator[Unit]:
        return self.table_units(self.table)


def _lines(part: CorpusShard, *, blank: bool) -> Iterator[str]:
    """The lines that begin in the part. With `blank`, the lines after the first blank line of the part (of a file's
    first part: all lines), up to the first blank line of the next part, so that no document is cut."""
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


def files_of(path: Path) -> tuple[list[Path], list[str]]:
    """The file, or the files of a folder in the order of their names, which are of one kind: texts, or tables of one
    suffix (other than .json, which is more often a program's settings); and the names of the folder's others. Raises
    DataError for another kind."""
    expected = (
        f"Expected a text, a sentence a line (*{', *'.join(LINES)}, or no suffix), or a table (*{', *'.join(TABLES)}), "
        f"plain or {', '.join(COMPRESSED)}"
    )
    if path.is_file():
        suffix = suffix_of(path)
        if suffix and not is_text_file(path):
            hint = OTHER_KINDS.get(suffix, "name a text of a sentence a line .txt, or a link to it").format(path)
            raise DataError(f"{path}: a file named *{suffix} isn't read as text: {hint}. {expected}")
        return [path], []
    if not path.is_dir():
        raise DataError(f"no such file or folder: {path} (dataset.path)")
    files = [file for file in data_files(path) if is_text_file(file) and suffix_of(file) != ".json"]
    if not files:
        raise DataError(f"no text file in {path}. {expected}")
    kinds = sorted({".txt" if suffix_of(file) in LINES else suffix_of(file) for file in files})
    if len(kinds) > 1:
        raise DataError(f"files of several kinds ({', '.join(kinds)}) in {path}: give one file. {expected}")
    others = {file for file in path.rglob("*") if file.is_file()} - {*files}
    return files, sorted(file.relative_to(path).as_posix() for file in others if file.name not in MANIFESTS)


def data_files(folder: Path) -> Iterator[Path]:
    """The files of a folder and those below it, in the order of their names; of a data set that `datasets` saved those
    that its manifest names. Hidden and cache files are none. Raises DataError for several splits, and for shards of
    which some are missing."""
    splits = read_json(folder / "dataset_dict.json").get("splits", [])
    if len(splits) > 1:
        raise DataError(f"{folder}: a data set of the splits {', '.join(splits)}: give one, as in {folder / splits[0]}")
    named = read_json(folder / "state.json").get("_data_files")
    if named is not None:
        for file in (folder / entry["filename"] for entry in named):
            if not file.is_file():
                raise DataError(f"{folder}: no file {file.name}, which its state.json names")
            yield file
        return
    files = sorted(path for path in folder.iterdir() if not _HIDDEN.match(path.name))
    shards = [*filter(None, (_SHARD.match(path.name) for path in files))]
    sets = sorted({f"{shard[1]}-*-of-{shard[2]}" for shard in shards})
    if len(sets) > 1:
        raise DataError(f"{folder}: files of several sets ({', '.join(sets)}): give one of them")
    if shards and len(shards) != int(shards[0][2]):
        raise DataError(f"{folder}: it holds {len(shards)} files of the set {sets[0]}; expected all of them")
    for path in files:
        if path.is_dir() and not path.is_symlink():
            yield from data_files(path)
        elif path.is_file():
            yield path


def sentences_of(path: str, tokenizer: str, *, lower: bool = False) -> Corpus:
    """The sentences of a file or folder: one sentence per line (.txt), or pairs as SNLI and MultiNLI have them (.jsonl;
    .tsv or .txt with their header), first and second sentence of each, labels unused; any of them compressed.

    Of a folder the .jsonl files are read if it has any, else .tsv, else .txt. Raises DataError naming file and line.
    """
    place, files = user_path(path), fit_files(path)
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentences: dict[str, Sentence] = {}
    for file in files:
        for text in _read(file):
            if text and text not in sentences:
                sentences[text] = tokenize(text)
    if not sentences:
        raise DataError(f"{place} has no sentence (fit_on=nli:{path})")
    return Corpus(place.name, tuple(sentences.values()), choices={"tokenizer": tokenizer, "lower": str(lower).lower()})


def fit_files(path: str) -> list[Path]:
    """The file, or of a folder those of its first kind that is there. Raises DataError if there is none."""
    place = user_path(path)
    if place.is_file():
        suffix = suffix_of(place)
        if suffix not in ("", *SUFFIXES, *LINES):
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
    kind = suffix_of(file)
    if kind not in (".jsonl", ".tsv"):
        head = next((line for _, line in text_lines(file)), "").split("\t")
        kind = ".tsv" if all({*names} & {*head} for names in FIELDS) else ""
    if not kind:
        yield from (line.strip() for _, line in text_lines(file))
        return
    for where, cells in read_table(file, FIELDS, "text", kind, ragged=True):
        if not all(isinstance(cell, str) for cell in cells):
            raise DataError(f"{where}: expected texts, got {short(cells)}")
        yield from (cell.strip() for cell in cells)
