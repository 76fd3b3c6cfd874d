"""Lines of UTF-8 text, plain or compressed, and cells of CSV, TSV, JSON, Parquet and Arrow tables, of users' files.

A line ends at LF, CR LF or CR, as Python's text files have it, and at no other character (NEL, U+2028 and form feeds
are white space inside a line). A byte order mark at the file's beginning belongs to no line. Compression (gz, bz2, xz,
zst) is recognised by the file's first bytes, whatever its name. Other files are refused with an error that names file,
line and remedy.

Of a table no column is an index by guess, no word means a missing value, and a number in CSV stays the text that it is.
What is not read as Python's own `csv` and `json` read it is refused, with the place.

Text becomes words by a named tokenizer, shared by every model so that curves compare the same words. It gives them with
their character spans, so that a model's own can be met by span. White space, and invisible format characters outside of
words, belong to no word; every other character belongs to exactly one.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import regex

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, DataError, UnknownName, error_text, short

COLUMNS = ("text", "sentence")  # the first of them that a table has is read, unless a column is named
LINES = (".txt", ".text")
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather")
Row = tuple[str, Sequence[Any]]
"""A row's place, for messages, and its cells of the chosen columns."""
Choose = Callable[[Sequence[str]], Sequence[str]]
"""The columns to be read, of a table's columns."""
# A word goes on behind what Unicode's word boundaries (UAX 29) don't break at: join controls, soft hyphens and other
# invisible format characters, the Catalan middle dot and gershayim between letters, a quotation mark or an apostrophe
# between Hebrew ones. (Of the middle of words, UAX 29's colon and full stop are left out: "e.g.This" is no word.)
_HIDDEN = r"\p{Word_Break=Format}\p{Word_Break=ZWJ}\u200c"
_INSIDE = r"[\p{L}\p{M}\p{N}_\u05f3]"
_JOINT = rf"""(?:[{_HIDDEN}]+|(?<=[\p{{L}}\p{{M}}])[\u00b7\u0387\u055f\u05f4\u2027](?=\p{{L}})
      |(?<=\p{{Hebrew}})["'’](?=\p{{Hebrew}}))"""
_REST = rf"{_INSIDE}*(?:{_JOINT}{_INSIDE}+)*"
_OTHER = rf"(?![\s\u200b{_HIDDEN}])\X"
# Clitics are words of their own ("do n't", "she 's"), as in the Penn Treebank and in the tokenizer that the paper used;
# hyphenated words, numbers (3.5, 10:30, 2nd) and dotted abbreviations (U.S.) stay whole. What is left is taken by
# grapheme cluster, so that an emoji with modifiers is one word and no combining mark is orphaned.
_ENGLISH = regex.compile(
    rf"""
      (?:\p{{L}}\.){{2,}}
    | \p{{L}}+?(?=n['’]t\b)
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b
    | \p{{N}}+(?:[.,:/\u066b\u066c]\p{{N}}+)*[\p{{L}}\p{{M}}]*(?:{_JOINT}{_INSIDE}+)*
    | \p{{L}}{_REST}(?:[-\u2010\u2011][\p{{L}}\p{{N}}]{_REST}|['’](?!(?:s|re|ve|ll|d|m|t)\b)\p{{L}}{_REST})*
    | {_OTHER}
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_UNICODE = regex.compile(rf"{_INSIDE}+(?:{_JOINT}{_INSIDE}+)*|{_OTHER}", regex.VERBOSE)
_WHITESPACE = regex.compile(r"\S+")
_PATTERNS = {"english": _ENGLISH, "unicode": _UNICODE, "whitespace": _WHITESPACE}


def choose_column(names: Iterable[object], column: str | None, where: object) -> str:
    """The column of texts. Raises DataError, with the table's columns, where it isn't there once."""
    columns = list(map(str, names))
    wanted = [column] if column is not None else COLUMNS
    chosen = next((name for name in wanted if name in columns), "")
    if columns.count(chosen) == 1:
        return chosen
    there = ", ".join(map(repr, columns[:20])) + (", ..." if len(columns) > 20 else "")
    guess = "" if column else "; say which holds the texts: column= (dataset.column=)"
    separator = next((sep for sep in ";|\t" if any(sep in name for name in columns)), "")
    parted = f"; cells are parted by commas in .csv and by tabs in .tsv, not by {separator!r}" if separator else ""
    twice = " once" if chosen in columns else ""
    raise DataError(
        f"{where}: no column {' or '.join(map(repr, wanted))}{twice}; it has {there or 'none'}{guess}{parted}"
    )


def text_of(cell: object, where: str) -> str | Sentence | None:
    """The text of a cell; of a list, the sentence of these words; None for a missing value and a cell without text.

    Raises DataError, with the place, for other values and for lists of what isn't words.
    """
    if hasattr(cell, "tolist"):  # NumPy's
        cell = cell.tolist()
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    if isinstance(cell, str):
        return cell if cell.strip() else None
    if not isinstance(cell, list | tuple) or not all(isinstance(word, str) for word in cell):
        raise DataError(f"{where} holds {short(cell)}; expected a text, or a list of words")
    if odd := next((word for word in cell if re.search(r"\S[ \t\r\n]+\S", word)), None):
        raise DataError(
            f"{where} holds a list with {short(odd)}: a list is the words of one sentence; where it holds sentences, "
            "give each a row of its own (pandas: table.explode(column))"
        )
    words = [word for word in cell if word.strip()]
    return Sentence.of(words) if words else None


def table_cells(table: Any, column: str | None) -> Iterable[object] | None:
    """Cells of the column of texts of a table in memory: a DataFrame, a data set or table with `column_names`,
    a mapping of columns; None for what is no table. Raises DataError as `choose_column`."""
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if isinstance(table, Mapping):
        if splits := [name for name, part in table.items() if hasattr(part, "column_names")]:
            raise ConfigError(
                f"text: a mapping of data sets ({', '.join(splits)}); give one, as in text[{splits[0]!r}]"
            )
        names = list(table)
        if len(names) > 1 and all(isinstance(cell, str) for cell in table.values()):
            raise ConfigError("text: a mapping of sentences; give list(text.values()), or a table's columns as lists")
    if not isinstance(names, Iterable) or not hasattr(table, "__getitem__"):
        return None
    name = choose_column(names, column, "text")
    cells: Any = table[next(one for one in names if str(one) == name)]
    if hasattr(cells, "isna"):  # pandas' missing values, of any type
        cells = cells.astype(object).where(cells.notna(), None).tolist()
    if isinstance(cells, str) or not isinstance(cells, Iterable):
        raise DataError(f"text: column {name!r} holds {short(cells)}; expected a list of texts")
    return getattr(cells, "to_pylist", cells.__iter__)()


def read_rows(path: Path, choose: Choose, quotes: str | None = None, kind: str = "") -> Iterator[Row]:
    """Rows of a file: the cells of the columns that `choose` takes of its columns' names.

    `quotes`, of CSV and TSV: `csv`: quotation marks enclose cells; `text`: they are text; None: `csv` for CSV, and a
    TSV with a cell that begins with one is refused. `kind`: the suffix whose format it has; empty: that of its name.
    Raises DataError, with the place, for what isn't such a file.
    """
    import pyarrow as pa

    kind = kind or suffix_of(path)
    try:
        if kind in (".csv", ".tsv"):
            yield from _delimited_rows(path, choose, quotes, "," if kind == ".csv" else "\t")
        elif kind in (".parquet", ".arrow", ".feather"):
            with open_bytes(path) as stream:
                yield from _columnar(path, stream, choose, kind)
        else:
            yield from _json(path, choose, kind)
    except (*UNREADABLE, pa.ArrowException) as error:
        raise DataError(f"{path} can't be read to its end: {error_text(error)}") from None


def read_table(path: Path, columns: Sequence[str | None], quotes: str | None = None, kind: str = "") -> Iterator[Row]:
    """The cells of these columns, as `read_rows` reads them; None: that of `choose_column`.

    Example:
        >>> with Path("pairs.csv").open("w", encoding="utf-8") as file:
        ...     _ = file.write("word,score\\nbank,0.5\\n")
        >>> [cells for _, cells in read_table(Path("pairs.csv"), ["score", "word"])]
        [['0.5', 'bank']]
    """
    return read_rows(path, lambda names: [choose_column(names, name, path) for name in columns], quotes, kind)


def _delimited_rows(path: Path, choose: Choose, quotes: str | None, separator: str) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)  # else 131,072 characters of a cell
    lines = text_lines(path, keep_ends=True)
    is_doubtful = separator == "\t" and quotes is None
    rows = csv.reader(
        (_unambiguous(path, number, line) if is_doubtful else line for number, line in lines),
        delimiter=separator,
        quoting=csv.QUOTE_NONE if quotes == "text" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    try:
        header = next(rows, [])
        columns = [header.index(name) for name in choose(header)]
        for row in filter(None, rows):  # an empty line is no row
            where = f"{path}, line {rows.line_num}"
            if len(row) < len(header) or any(row[len(header) :]):
                raise DataError(
                    f"{where}: {len(row)} cells, the header has {len(header)}; quotation marks enclose a cell that "
                    f"holds {separator!r} or the end of a line"
                )
            yield where, [row[column] for column in columns]
    except csv.Error as error:
        raise DataError(
            f"{path}, line {rows.line_num}: {error}; a quotation mark begins a cell that another ends, and is doubled "
            "within; where quotation marks are text: dataset.quotes=text"
        ) from None


def _unambiguous(path: Path, number: int, line: str) -> str:
    if re.search(r'(^|\t)"', line):
        raise DataError(
            f"{path}, line {number}: a cell begins with a quotation mark, which some programs write around cells and "
            "others as text; say which: dataset.quotes=csv or dataset.quotes=text"
        )
    return line


def _json(path: Path, choose: Choose, kind: str) -> Iterator[Row]:
    lines = ((number, line) for number, line in text_lines(path) if line.strip())
    number, first = next(lines, (1, "[]"))
    columns: Sequence[str] = ()
    is_list = first.lstrip().startswith("[") and kind == ".json"
    entries: Iterable[tuple[int, Any]] = chain([(number, first)], lines)
    try:
        if is_list:
            entries = enumerate(json.loads("\n".join(line for _, line in entries)), 1)
        for number, entry in entries:
            row = entry if is_list else json.loads(entry)
            where = f"{path}, {'row' if is_list else 'line'} {number}"
            if not isinstance(row, dict):
                raise DataError(f"{where}: expected an object, got {short(row)}")
            columns = columns or choose(list(row))
            yield where, [row.get(column) for column in columns]
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, line {number}: {error_text(error)}; expected an object a line, or in .json a list of objects"
        ) from None


def _columnar(path: Path, stream: IO[bytes], choose: Choose, kind: str) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == ".parquet":
        file = pq.ParquetFile(stream)
        columns = choose(file.schema_arrow.names)
        batches = file.iter_batches(columns=list(dict.fromkeys(columns)))
    else:
        try:
            file = pa.ipc.open_file(stream)
            batches = map(file.get_batch, range(file.num_record_batches))
        except pa.ArrowInvalid:  # a stream, as `datasets` writes it
            stream.seek(0)
            file = batches = pa.ipc.open_stream(stream)
        columns = choose(file.schema.names)
    rows = (row for batch in batches for row in zip(*(batch[name].to_pylist() for name in columns), strict=True))
    for number, row in enumerate(rows):
        yield f"{path}, row {number}", row


UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)  # a file that can't be read to its end


def suffix_of(path: Path) -> str:
    """The last suffix of the name in lower case, that of its compression left out; empty for none."""
    name = Path(path.name.lower())
    return (name.with_suffix("") if name.suffix in COMPRESSED else name).suffix


def is_text_file(path: Path) -> bool:
    """Whether the file's name is that of a text or a table."""
    return suffix_of(path) in (*LINES, *TABLES)


def is_compressed(path: Path) -> bool:
    """Whether the file's first bytes are those of a compression. Raises OSError for a file that can't be opened."""
    with path.open("rb") as stream:
        return _compression(stream.read(10)) != ""


def _compression(head: bytes) -> str:
    if head.startswith(b"BZh") and head[4:] == b"1AY&SY":
        return "bz2"
    magic = {b"\x1f\x8b": "gz", b"\xfd7zXZ\0": "xz", b"(\xb5/\xfd": "zst"}
    return next((name for start, name in magic.items() if head.startswith(start)), "")


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed where they are compressed. Raises OSError."""
    with path.open("rb") as stream:
        compression = _compression(stream.read(10))
    if compression == "zst":
        import pyarrow as pa  # here: no library of Python's own reads it before 3.14

        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    openers = {"": Path.open, "gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
    return cast(IO[bytes], openers[compression](path, "rb"))  # type: ignore[operator]


def raw_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, bytes with the line's end)."""
    yield from enumerate((line for chunk in stream for line in chunk.splitlines(keepends=True)), 1)  # CR alone too


def text_lines(path: Path, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of each line, without its end unless `keep_ends`.

    Raises DataError for a file that can't be read to its end, and for a line that isn't UTF-8 or holds NUL: UTF-16
    without a mark would pass for UTF-8 full of NULs.

    Example:
        >>> _ = Path("text.txt").write_text("one\\ntwo\\n", encoding="utf-8")
        >>> list(text_lines(Path("text.txt")))
        [(1, 'one'), (2, 'two')]
    """
    try:
        with open_bytes(path) as stream:
            for number, raw in raw_lines(stream):
                text = _text(raw, path, number)
                yield number, text if keep_ends else text.rstrip("\r\n")
    except UNREADABLE as error:
        raise DataError(f"{path} can't be read to its end: {error}") from None


def lines_after_byte(path: Path, start: int) -> Iterator[tuple[int, str]]:
    """(byte offset of the line's beginning, text) of each line of a plain file that begins at byte `start` or later."""
    try:
        with path.open("rb") as stream:
            at = max(0, start - 1)
            stream.seek(at)
            for number, raw in raw_lines(stream):
                if number > 1 or not start:  # else the end of the line that begins before `start`
                    yield at, _text(raw, path, number - bool(start), start).rstrip("\r\n")
                at += len(raw)
    except OSError as error:
        raise DataError(f"{path} can't be read to its end: {error}") from None


def _text(raw: bytes, path: Path, number: int, after: int = 0) -> str:
    where = f"{path}, line {number}" + (f" after byte {after:,}" if after else "")
    first = number == 1 and not after
    is_marked, has_zeros = first and raw.startswith(UTF16_MARKS), b"\0" in raw
    if is_marked or (has_zeros and not (any(raw[:40:2]) and any(raw[1:40:2]))):
        kind = "UTF-16" if is_marked else "UTF-16BE" if any(raw[1:40:2]) else "UTF-16LE"
        raise DataError(
            f"{where}: this looks like UTF-16, or like no text at all; expected UTF-8: convert it with "
            f"iconv -f {kind} -t UTF-8 {path.name} > new_file"
        )
    if has_zeros:
        raise DataError(f"{where}: a byte 0, which no text has; expected UTF-8, plain or {', '.join(COMPRESSED)}")
    try:
        return raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error}); convert the file first") from None


def tokenizer(name: str = "english", *, lower: bool = False) -> Callable[[str], Sentence]:
    """The named tokenizer as a function from text to `Sentence`.

    `english`: words, clitics, numbers and punctuation apart. `unicode`: runs of letters, marks and digits, and
    everything else by grapheme. `whitespace`: for text that is tokenised already. `lower` lower-cases the text itself,
    before the model reads it. Raises UnknownName.

    Example:
        >>> tokenizer("english")("She doesn't.").words
        ('She', 'does', "n't", '.')
    """
    if name not in _PATTERNS:
        raise UnknownName("word tokenizer", name, _PATTERNS)
    pattern = _PATTERNS[name]

    def tokenize(text: str) -> Sentence:
        text = text.lower() if lower else text
        spans = tuple(m.span() for m in pattern.finditer(text) if not m.group().isspace())
        return Sentence(text, tuple(text[a:b] for a, b in spans), spans)

    return tokenize
