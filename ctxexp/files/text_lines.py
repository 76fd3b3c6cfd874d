"""Lines of UTF-8 text files, plain or .gz; other files are refused with an error that names file, line and remedy."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from ctxexp.errors import DataError

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks
MAX_LINE_BYTES = 1 << 26  # a sparse file, or a small compressed one, may hold one line of any length


def raw_lines(stream: IO[bytes], first_number: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield (number from `first_number`, bytes with the line's end). Raises OSError for a line of more than
    MAX_LINE_BYTES, unless it holds NUL, which callers refuse with a message of their own."""
    for number, raw in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), first_number):
        if len(raw) > MAX_LINE_BYTES and b"\0" not in raw:
            raise OSError(f"line {number} has more than {MAX_LINE_BYTES:,} bytes; is it a text of lines?")
        yield number, raw


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of each line, without its end and without a byte order mark.

    Raises DataError for a file that can't be read to its end, and for a line that isn't UTF-8 or holds NUL: UTF-16
    without a mark would pass for UTF-8 full of NULs.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            for number, raw in raw_lines(cast(IO[bytes], stream)):
                yield number, _text(raw, path, number)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} can't be read to its end: {error}") from None


def lines_after_byte(path: Path, start: int) -> Iterator[tuple[int, str]]:
    """(byte offset of the line's beginning, text) of each line of a plain file that begins at byte `start` or later."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            if start:
                stream.seek(start - 1)
                while not stream.readline(MAX_LINE_BYTES).endswith(b"\n") and stream.tell() < size:
                    pass  # the rest of the line that begins before `start`
            at = stream.tell()
            for number, raw in raw_lines(stream):
                yield at, _text(raw, path, number, start)
                at += len(raw)
    except OSError as error:
        raise DataError(f"{path} can't be read to its end: {error}") from None


def _text(raw: bytes, path: Path, number: int, after: int = 0) -> str:
    where = f"{path}, line {number}" + (f" after byte {after:,}" if after else "")
    first = number == 1 and not after
    if b"\0" in raw or (first and raw.startswith(UTF16_MARKS)):
        kind = "UTF-16" if raw.startswith(UTF16_MARKS) else "UTF-16LE" if raw.find(b"\0") % 2 else "UTF-16BE"
        raise DataError(
            f"{where}: this looks like UTF-16, or like no text at all; expected UTF-8: convert it with "
            f"iconv -f {kind} -t UTF-8 {path.name} > new_file"
        )
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error}); convert the file first") from None
    return text.removesuffix("\n").removesuffix("\r")
