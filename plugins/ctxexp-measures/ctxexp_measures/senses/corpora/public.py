"""Downloads of public data sets into the user's cache: whole and as they were when the digest was taken, or not there.

What this wrote is unverified against the publishers' servers: it was tried on archives in the same format.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ctxexp.datasets import archive_members, cache_folder, download, user_path
from ctxexp.errors import ConfigError, DataError


@dataclass(frozen=True)
class PublicArchive:
    """A public data set: the address of its archive, a pattern of its files, and their digest."""

    name: str
    url: str
    pattern: str  # a regular expression of paths inside the archive; its group is the path that a file gets
    digest: str  # see `digest_of`

    def folder(self, path: str | None) -> Path:
        """The folder `path`, or that of the download (None); raises DataError if there is none."""
        if path:
            folder = user_path(path)
            if not folder.is_dir():
                raise DataError(f"no such folder: {folder} (dataset.path); expected the unpacked files of {self.url}")
            return folder
        return self.fetch()

    def fetch(self, cache: Path | None = None) -> Path:
        """Download the files once, and return their folder; raises DataError if that fails or their digest differs."""
        target = (cache or cache_folder()) / "datasets" / self.name
        if target.is_dir():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{self.name}.", dir=target.parent))
        try:
            for name, data in archive_members(self.url, download(self.url, self.name)):
                match = re.search(self.pattern, name)
                if match and ".." not in match[1].split("/"):  # the archive chooses no place outside the folder
                    (part / match[1]).parent.mkdir(parents=True, exist_ok=True)
                    (part / match[1]).write_bytes(data)
            if (digest := digest_of(part)) != self.digest:
                raise DataError(
                    f"dataset {self.name}: the files of {self.url} have the digest {digest[:12]}, expected "
                    f"{self.digest[:12]}: they have changed; give the original ones with dataset.path=<folder>"
                )
            part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return target


def digest_of(folder: Path) -> str:
    """SHA-256 over the paths and contents of all files in a folder, by path."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inside = path.relative_to(folder).as_posix()
        total.update(f"{inside} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def evenly_spaced(n: int, most: int | None, key: str) -> list[int]:
    """Numbers of `most` evenly spaced of n things (None: of all); raises ConfigError for `most` below 1."""
    if most is not None and most < 1:
        raise ConfigError(f"{key}={most}: expected a positive number, or null for all")
    if most is None or most >= n:
        return list(range(n))
    return [i * n // most for i in range(most)]
