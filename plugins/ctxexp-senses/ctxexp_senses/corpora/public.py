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

from ctxexp.datasets.download import cache_folder, download
from ctxexp.errors import ConfigError, DataError
from ctxexp.files.archives import members
from ctxexp.files.paths import user_path


@dataclass(frozen=True)
class Source:
    """Where a data set is public: its archive, which of its files are read, and their digest."""

    name: str
    url: str
    wanted: str  # a regular expression of paths inside the archive; its group is the path that a file gets
    digest: str  # see `digest_of`

    def folder(self, path: str | None) -> Path:
        """The folder that `path` names, or that of the download, made if need be; raises DataError."""
        if path:
            folder = user_path(path)
            if not folder.is_dir():
                raise DataError(f"no such folder: {folder} (dataset.path); expected the unpacked files of {self.url}")
            return folder
        return self.fetched()

    def fetched(self, cache: Path | None = None) -> Path:
        """The downloaded folder; DataError if it can't be had, or isn't what it was."""
        target = (cache or cache_folder()) / "datasets" / self.name
        if target.is_dir():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{self.name}.", dir=target.parent))
        try:
            for name, data in members(self.url, download(self.url, self.name)):
                match = re.search(self.wanted, name)
                if match and ".." not in match[1].split("/"):  # the archive chooses no place outside the folder
                    (part / match[1]).parent.mkdir(parents=True, exist_ok=True)
                    (part / match[1]).write_bytes(data)
            if (found := digest_of(part)) != self.digest:
                raise DataError(
                    f"dataset {self.name}: the files of {self.url} have the digest {found[:12]}, expected "
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


def spread(n: int, wanted: int | None, key: str) -> list[int]:
    """Which of n things: all, or `wanted` evenly spaced ones; ConfigError below 1."""
    if wanted is not None and wanted < 1:
        raise ConfigError(f"{key}={wanted}: expected a positive number, or null for all")
    if wanted is None or wanted >= n:
        return list(range(n))
    return [i * n // wanted for i in range(wanted)]
