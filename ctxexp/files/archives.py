"""The files inside .zip and .tar archives: a damaged one ends in a DataError."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator

from ctxexp.errors import DataError, line


def members(url: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file of a .zip or a .tar archive (.gz, .bz2, .xz); no file is written.

    Raises DataError for an archive that can't be read to its end.
    """
    try:
        if url.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                yield from ((info.filename, archive.read(info)) for info in archive.infolist() if not info.is_dir())
            return
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            for member in packed:
                if member.isfile() and (content := packed.extractfile(member)) is not None:
                    yield member.name, content.read()
    except Exception as error:  # readers raise errors of a dozen kinds for damaged ones, and document few
        words = line(str(error), 200) or type(error).__name__
        raise DataError(f"{url} did not give a readable archive: {words}") from None
