"""The one reader of tables: CSV, TSV, JSON, JSON lines, Parquet, Arrow and Feather files; in memory, frames and series
of pandas and Polars, Arrow's tables and arrays, data sets and columns of `datasets`, columns by name, and rows.

A column that isn't there is an error with those that are, and one without a name, as pandas writes its index, is never
chosen. No word means a missing value, and a number in CSV stays the text that it is. Columns of rows are those of any
row. What is not read as Python's own `csv` and `json` read it is refused, with the place.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from ctxexp.dataset import Sentence
from ctxexp.datasets.reading import UNREADABLE, open_bytes, suffix_of, text_lines
from ctxexp.errors import ConfigError, DataError, error_text, short

TEXT = ("text", "sentence")
Column = str | Sequence[str] | None
"""A column's name, or names of which the first that a table has is read; None: those of TEXT."""
Row = tuple[str, Sequence[Any]]
"""A row's place, for messages, and its cells of the chosen columns."""
MISSING = ("None", "nan", "<NA>", "NaT")  # values as they print: of Python, NumPy and pandas


@dataclass(frozen=True)
class TableSource:
    """A table's name, for messages, the names of its columns, and its rows' cells of some of them; `columns` None:
    cells without a name, one a row."""

    name: object
    columns: Sequence[str] | None
    read: Callable[[Sequence[str]], Iterator[Row]]

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """The cells of these columns. Raises DataError, with the place, for what isn't such a table."""
        with _errors(self.name):
            yield from self.read(names)

    def column(self, wanted: Column) -> str:
        """The column that is read. Raises DataError, with the table's columns, where it isn't there once."""
        if self.columns is None:
            if wanted is not None:
                raise ConfigError(f"{self.name}: column={short(wanted)} is of a table; these are sentences")
            return ""
        names = _names(wanted)
        chosen = next((name for name in names if name and name in self.columns), None)
        if chosen is not None and self.columns.count(chosen) == 1:
            return chosen
        there = ", ".join(map(repr, self.columns[:20])) + (", ..." if len(self.columns) > 20 else "")
        guess = "; say which holds the texts: column= (dataset.column=)" if wanted is None else ""
        separator = next((sep for sep in ";|\t" if any(sep in name for name in self.columns)), "")
        parted = f"; cells are parted by commas in .csv and by tabs in .tsv, not by {separator!r}" if separator else ""
        raise DataError(
            f"{self.name}: no column {' or '.join(map(repr, names))}{'' if chosen is None else ' once'}; it has "
            f"{there or 'none'}{guess}{parted}"
        )


def read_table(
    source: object,
    columns: Sequence[Column] | None = None,
    quotes: str | None = None,
    kind: str = "",
    *,
    ragged: bool = False,
) -> Iterator[tuple[str, Any]]:
    """The place of each row, for messages, and its cells.

    Args:
        source: A path, or a table in memory.
        columns: The columns; None: all, by name.
        quotes: Of CSV and TSV: `csv`: quotation marks enclose cells; `text`: they are text; None: `csv` for CSV, and a
            TSV with a cell that begins with one is refused.
        kind: The suffix whose format the file has; empty: that of its name.
        ragged: Whether rows of CSV and TSV may end anywhere behind the cells that are read.

    Raises:
        DataError: With the place, what isn't such a table; a column that isn't there, with the table's columns.

    Example:
        >>> with Path("pairs.csv").open("w", encoding="utf-8") as file:
        ...     _ = file.write("word,score\\nbank,0.5\\n")
        >>> [cells for _, cells in read_table(Path("pairs.csv"), ["score", "word"])]
        [['0.5', 'bank']]
        >>> [cells for _, cells in read_table({"word": ["bank"], "score": [0.5]})]
        [{'word': 'bank', 'score': 0.5}]
    """
    table = open_table(source, columns, quotes, kind, ragged=ragged)
    names = [*map(table.column, filter(None, table.columns or ()) if columns is None else columns)]
    for where, cells in table.rows(names):
        yield where, dict(zip(names, cells, strict=True)) if columns is None else cells


def open_table(
    source: object,
    columns: Sequence[Column] | None = None,
    quotes: str | None = None,
    kind: str = "",
    *,
    ragged: bool = False,
) -> TableSource:
    """The table of a file, or in memory. Of JSON lines the columns are those up to the row by which each of `columns`
    has been seen under its first name; None: of all rows. Raises DataError, with the place."""
    wanted = None if columns is None else {_names(column)[0] for column in columns}
    source = Path(source) if isinstance(source, str) else source
    if not isinstance(source, Path):
        return _table_in_memory(source, wanted)
    kind = kind or suffix_of(source)
    with _errors(source):
        if kind in (".csv", ".tsv"):
            return _delimited_table(source, quotes, "," if kind == ".csv" else "\t", ragged)
        if kind in (".parquet", ".arrow", ".feather"):
            with open_bytes(source) as stream:
                return TableSource(source, _columnar(stream, kind)[0], partial(_columnar_rows, source, kind))
        return _of_rows(source, lambda: _json(source, kind), wanted)


@contextmanager
def _errors(source: object) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (*UNREADABLE, pa.ArrowException) as error:
        raise DataError(f"{source} can't be read to its end: {error_text(error)}") from None


def _names(column: Column) -> Sequence[str]:
    if column is None:
        return TEXT
    return [column] if isinstance(column, str) else column


def _of_rows(name: object, rows: Callable[[], Iterator[tuple[str, Any]]], wanted: set[str] | None) -> TableSource:
    """The table of rows by column, which lack what they have no value for."""

    def objects() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for where, row in rows():
            if not isinstance(row, Mapping):
                raise DataError(f"{where}: expected an object, got {short(row)}")
            yield where, row

    columns: dict[str, None] = {}
    for _, row in objects():
        columns |= dict.fromkeys(map(str, row))
        if wanted is not None and columns.keys() >= wanted:
            break
    return TableSource(
        name, [*columns], lambda names: ((at, [row.get(name) for name in names]) for at, row in objects())
    )


def _table_in_memory(source: Any, wanted: set[str] | None) -> TableSource:
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):  # a lazy frame of Polars
        source = source.collect()
    names = getattr(source, "column_names", None) or getattr(source, "columns", None)
    if isinstance(source, Mapping):
        names = [*source]
        if any(hasattr(part, "column_names") for part in source.values()):
            if len(names) > 1:
                raise ConfigError(
                    f"text: a mapping of data sets ({', '.join(names)}); give one, as in text[{names[0]!r}]"
                )
            return _table_in_memory(source[names[0]], wanted)
        if len(names) > 1 and all(isinstance(cell, str) for cell in source.values()):
            raise ConfigError("text: a mapping of sentences; give list(text.values()), or a table's columns as lists")
    if isinstance(names, Iterable) and hasattr(source, "__len__"):
        by_name = {str(name): name for name in names}
        return TableSource(
            "text", [*map(str, names)], lambda chosen: _zip({name: source[by_name[name]] for name in chosen})
        )
    rows = source if hasattr(source, "column_names") else _plain(source)  # a stream of rows is read anew each time
    if hasattr(source, "column_names") or any(isinstance(row, Mapping) for row in rows):
        return _of_rows("text", lambda: ((f"text: row {i}", row) for i, row in enumerate(rows)), wanted)
    return TableSource("text", None, lambda _: _zip({"": rows}))


def _zip(columns: Mapping[str, Any]) -> Iterator[Row]:
    for name, column in columns.items():
        if isinstance(column, str) or not isinstance(column, Iterable):
            raise DataError(f"text: column {name!r} holds {short(column)}; expected a list of texts")
    cells = [*map(_plain, columns.values())]
    if len({*map(len, cells)}) > 1:
        raise DataError(f"text: columns {', '.join(columns)} have {', '.join(str(len(each)) for each in cells)} cells")
    yield from ((f"text: row {i}", row) for i, row in enumerate(zip(*cells, strict=True)))


def _plain(cells: Any) -> list[Any]:
    """The values of a column of any library as Python's own."""
    if hasattr(cells, "isna"):  # pandas' missing values, of any type
        cells = cells.astype(object).where(cells.notna(), None)
    convert = next((getattr(cells, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(cells, name)), None)
    return list(convert() if convert else cells)


def _delimited_table(path: Path, quotes: str | None, separator: str, ragged: bool) -> TableSource:
    header = next(_lines(path, quotes, separator), ("", []))[1]

    def rows(names: Sequence[str]) -> Iterator[Row]:
        columns = [header.index(name) for name in names]
        for where, row in islice(_lines(path, quotes, separator), 1, None):
            if len(row) <= max(columns) if ragged else len(row) < len(header) or any(row[len(header) :]):
                raise DataError(
                    f"{where}: {len(row)} cells, the header has {len(header)}; quotation marks enclose a cell that "
                    f"holds {separator!r} or the end of a line"
                )
            yield where, [row[column] for column in columns]

    return TableSource(path, header, rows)


def _lines(path: Path, quotes: str | None, separator: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of each line that isn't empty, the header's too, with its place."""
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
        yield from ((f"{path}, line {rows.line_num}", row) for row in rows if row)
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


def _json(path: Path, kind: str) -> Iterator[tuple[str, Any]]:
    lines = ((number, line) for number, line in text_lines(path) if line.strip())
    number, first = next(lines, (1, "[]"))
    is_list = first.lstrip().startswith("[") and kind == ".json"
    entries: Iterable[tuple[int, Any]] = chain([(number, first)], lines)
    try:
        if is_list:
            rows = json.loads("\n".join(line for _, line in entries), object_pairs_hook=_distinct)
            entries = enumerate(rows, 1)
        for number, entry in entries:
            row = entry if is_list else json.loads(entry, object_pairs_hook=_distinct)
            yield f"{path}, {'row' if is_list else 'line'} {number}", row
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, line {number}: {error_text(error)}; expected an object a line, or in .json a list of objects"
        ) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(row := dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {max(names, key=names.count)!r} stands twice in a row")
    return row


def _columnar(stream: IO[bytes], kind: str) -> tuple[list[str], Callable[[Sequence[str]], Iterable[Any]]]:
    """The columns' names, and the batches of some columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == ".parquet":
        table = pq.ParquetFile(stream)
        return table.schema_arrow.names, lambda names: table.iter_batches(columns=list(dict.fromkeys(names)))
    try:
        file = pa.ipc.open_file(stream)
        return file.schema.names, lambda _: map(file.get_batch, range(file.num_record_batches))
    except pa.ArrowInvalid:  # a stream, as `datasets` writes it
        stream.seek(0)
        file = pa.ipc.open_stream(stream)
        return file.schema.names, lambda _: file


def _columnar_rows(path: Path, kind: str, names: Sequence[str]) -> Iterator[Row]:
    with open_bytes(path) as stream:
        batches = _columnar(stream, kind)[1](names)
        rows = (row for batch in batches for row in zip(*(batch[name].to_pylist() for name in names), strict=True))
        yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows))


def text_of(cell: object, where: str) -> str | Sentence | None:
    """The text of a cell; of a list, the sentence of these words; None for a missing value and a cell without text.

    Raises DataError, with the place, for other values and for lists of what isn't words.
    """
    for name in ("tolist", "as_py"):  # NumPy's, Arrow's
        cell = getattr(cell, name)() if hasattr(cell, name) else cell
    if isinstance(cell, str | Sentence):
        return cell if not isinstance(cell, str) or cell.strip() else None
    if str(cell) in MISSING:
        return None
    if not isinstance(cell, list | tuple) or not all(isinstance(word, str) for word in cell):
        raise DataError(f"{where} holds {short(cell)}; expected a text, or a list of words")
    if odd := next((word for word in cell if re.search(r"\S[ \t\r\n]+\S", word)), None):
        raise DataError(
            f"{where} holds a list with {short(odd)}: a list is the words of one sentence; where it holds sentences, "
            "give each a row of its own (pandas: table.explode(column))"
        )
    words = [word for word in cell if word.strip()]
    return Sentence.of(words) if words else None
