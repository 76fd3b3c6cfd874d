"""Downloads of the SemEval files into the user's cache: checked by SHA-256, complete or not there at all.

The manifest (`semeval_files.csv`) lists every file with its digest; files are recognised inside the publishers'
archives by content, so that renamed folders don't matter. (pooch checks a download, but looks its files up by their
names in an archive, which publishers change.)
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tqdm import tqdm

from ctxexp.errors import DataError
from ctxexp.files.paths import user_path

_STS = "http://ixa2.si.ehu.eus/stswiki/images/"
_SICK = "http://alt.qcri.org/semeval2014/task1/data/uploads/"
ARCHIVES = {
    "sts_2012_2016": [
        _STS + name
        for name in (
            "4/40/STS2012-en-test.zip",
            "e/e4/STS2012-en-train.zip",
            "2/2f/STS2013-en-test.zip",
            "8/8c/STS2014-en-test.zip",
            "d/da/STS2015-en-test.zip",
            "9/98/STS2016-en-test.zip",
        )
    ],
    "sts_b": [_STS + "4/48/Stsbenchmark.tar.gz"],
    "sick_r": [_SICK + f"sick_{part}.zip" for part in ("train", "trial", "test_annotated")],
}
TIMEOUT = 20  # seconds without a byte


def cache_folder() -> Path:
    """Where downloads go: CTXEXP_CACHE, or `ctxexp` in the user's cache folder (XDG_CACHE_HOME, ~/.cache)."""
    given = os.environ.get("CTXEXP_CACHE")
    if given:
        return user_path(given)
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ctxexp"


def manifest(dataset: str) -> dict[str, str]:
    """The files of a data set: SHA-256 -> path inside its folder."""
    text = (files("ctxexp.datasets") / "semeval_files.csv").read_text(encoding="utf-8")
    return {row["sha256"]: row["file"] for row in csv.DictReader(io.StringIO(text)) if row["dataset"] == dataset}


def fetched(dataset: str, *, archives: list[str] | None = None, cache: Path | None = None) -> Path:
    """The folder with every file of `dataset`, downloading it first if need be.

    Raises DataError if the network or the publisher can't be reached, or a file's digest isn't the expected one;
    nothing half-made is left behind.
    """
    wanted = manifest(dataset)
    target = (cache or cache_folder()) / "datasets" / dataset
    if all((target / name).is_file() for name in wanted.values()):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{dataset}.", dir=target.parent))
    try:
        missing = dict(wanted)
        for url in ARCHIVES[dataset] if archives is None else archives:
            for data in _members(url, download(url, dataset)):
                name = missing.pop(hashlib.sha256(data).hexdigest(), None)
                if name is not None:
                    (part / name).parent.mkdir(parents=True, exist_ok=True)
                    (part / name).write_bytes(data)
        if missing:
            raise DataError(
                f"dataset {dataset}: the downloaded archives lack {len(missing)} of {len(wanted)} files with the "
                f"expected SHA-256, such as {next(iter(missing.values()))}; give the original files with "
                "dataset.path=<folder>"
            )
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def download(url: str, dataset: str) -> bytes:
    name = url.rsplit("/", 1)[-1]
    buffer = io.BytesIO()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as reply:
            size = int(reply.headers.get("Content-Length") or 0)
            with tqdm(total=size or None, unit="B", unit_scale=True, desc=name, disable=None) as bar:
                while chunk := reply.read(1 << 16):
                    buffer.write(chunk)
                    bar.update(len(chunk))
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise DataError(
            f"dataset {dataset} is not in {cache_folder()} and could not be downloaded from {url} ({error}); "
            "either run once with a network, or give the original files with dataset.path=<folder>"
        ) from None
    return buffer.getvalue()


def _members(url: str, data: bytes) -> Iterator[bytes]:
    """The files inside a .zip or .tar.gz; nothing is unpacked to a path that the archive chooses."""
    try:
        if url.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                yield from (archive.read(m) for m in archive.infolist() if not m.is_dir())
        else:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member in archive:
                    stream = archive.extractfile(member)
                    if stream is not None:
                        yield stream.read()
    except (zipfile.BadZipFile, tarfile.TarError, OSError) as error:
        raise DataError(f"{url} did not give a readable archive: {error}") from None
