"""Downloads of public data sets into the user's cache: whole and as they were when the digest was taken, or not there.

Untried against the publishers' servers: archives of the same format stood in for theirs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ctxexp.datasets import archive_members, fetch, user_path
from ctxexp.errors import DataError


@dataclass(frozen=True)
class PublicArchive:
    """A public data set: the address of its archive, a pattern of its files, and their digest or the archive's."""

    name: str
    url: str
    pattern: str  # a regular expression of paths inside the archive; its group is the path that a file gets
    digest: str = ""  # of the files, see `digest_of`
    archive_digest: str = ""  # SHA-256 of the archive, where that doesn't change

    def folder(self, path: str | None) -> Path:
        """The folder `path`, or that of the download (None)."""
        return user_path(path) if path else self.fetch()

    def fetch(self, cache: Path | None = None) -> Path:
        """Download the files once, and return their folder; raises DataError if that fails or their digest differs."""
        return fetch(self.name, self.url, self._files, cache)

    def _files(self, archive: bytes) -> dict[str, bytes]:
        found = ((re.search(self.pattern, name), data) for name, data in archive_members(self.url, archive))
        inside = {match[1]: data for match, data in found if match and ".." not in match[1].split("/")}  # the folder
        expected = self.archive_digest or self.digest
        digest = hashlib.sha256(archive).hexdigest() if self.archive_digest else digest_of(inside)
        if digest != expected:
            raise DataError(
                f"dataset {self.name}: the files of {self.url} have the digest {digest[:12]}, expected "
                f"{expected[:12]}: they have changed; give the original ones with dataset.path=<folder>"
            )
        return inside


def digest_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the paths and contents of the files, by path."""
    total = hashlib.sha256()
    for name in sorted(files, key=PurePosixPath):
        total.update(f"{name} {hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return total.hexdigest()


def evenly_spaced(n: int, most: int | None) -> list[int]:
    """Numbers of `most` evenly spaced of n things (None: of all)."""
    if most is None or most >= n:
        return list(range(n))
    return [i * n // most for i in range(most)]
