"""Lines of UTF-8 text, plain or compressed.

A line ends at LF, CR LF or CR, as Python's text files have it, and at no other character (NEL, U+2028 and form feeds
are white space inside a line). A byte order mark at the file's beginning belongs to no line. Compression (gz, bz2, xz,
zst) is recognised by the file's first bytes, whatever its name. Other files are refused with an error that names file,
line and remedy.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from ctxexp.errors import DataError

LINES = (".txt", ".text")
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather")
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
        kind = "UTF-16"
        if not is_marked:
            kind = "UTF-16BE" if any(raw[1:40:2]) else "UTF-16LE"
        raise DataError(
            f"{where}: this looks like UTF-16, or like no text at all; expected UTF-8: convert it with "
            f"iconv -f {kind} -t UTF-8 {path.name} > new_file"
        )
    if has_zeros:
        raise DataError(f"{where}: a byte 0, which no text has; expected UTF-8, plain or {', '.join(COMPRESSED)}")
    try:
        return raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: not UTF-8 ({error}); if it is Latin-1: iconv -f latin1 -t UTF-8 {path.name} > new_file"
        ) from None
