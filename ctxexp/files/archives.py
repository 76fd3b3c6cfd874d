"""The files inside .zip and .tar archives, within bounds: a damaged or hostile archive ends in a DataError."""

from __future__ import annotations

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from ctxexp.errors import DataError, line

MAX_MEMBER = 1 << 28  # bytes of one unpacked file: 268 MB, ten times the largest that a data set of ours holds
MAX_TOTAL = 1 << 32  # bytes of all of them
_BLOCK = 1 << 20

UNREADABLE = (
    OSError,  # of gzip's and bzip2's headers too
    EOFError,
    LookupError,  # a member that isn't there
    ValueError,  # sizes and names that are none
    RuntimeError,  # encrypted members; NotImplementedError, of unknown compression, is one
    ArithmeticError,
    MemoryError,  # a header that names an absurd size
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)
"""Errors that Python's readers of archives raise for damaged ones; the readers' pages name but some of them."""


def members(url: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file of a .zip or a .tar archive (.gz, .bz2, .xz); no file is written.

    Raises DataError for an archive that can't be read to its end, and for files of more than 268 MB, or 4.3 GB
    together: an archive of some kB can unpack to any size.
    """
    total = 0
    try:
        for name, size, stream in _streams(url, data):
            content = _content(url, name, size, stream)
            total += len(content)
            if total > MAX_TOTAL:
                raise DataError(f"{url} unpacks to more than {MAX_TOTAL:,} bytes: this isn't the data set's archive")
            yield name, content
    except UNREADABLE as error:
        words = line(str(error), 200) or type(error).__name__
        raise DataError(f"{url} did not give a readable archive: {words}") from None


def _streams(url: str, data: bytes) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Path, size as the archive states it, and stream of each file."""
    if url.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as stream:
                        yield info.filename, info.file_size, stream
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:
        for member in packed:
            if member.isfile() and (content := packed.extractfile(member)) is not None:
                yield member.name, member.size, content


def _content(url: str, name: str, size: int, stream: IO[bytes]) -> bytes:
    """All of a file of at most MAX_MEMBER bytes, whatever size the archive states."""
    blocks: list[bytes] = []
    got = 0
    while size <= MAX_MEMBER and (block := stream.read(_BLOCK)):
        blocks.append(block)
        got += len(block)
        size = max(size, got)
    if size > MAX_MEMBER:
        raise DataError(
            f"{url}: {line(name, 100)} unpacks to {size:,} bytes or more, expected at most {MAX_MEMBER:,}: this isn't "
            "the data set's archive"
        )
    return b"".join(blocks)
