"""Downloads of data sets into the user's cache, complete or not there at all; SemEval's are checked by SHA-256."""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import os
import shutil
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from tqdm import tqdm

from ctxexp.errors import DataError, line
from ctxexp.files import user_path

_STS = "ixa2.si.ehu.eus/stswiki/images/"
_SICK = "alt.qcri.org/semeval2014/task1/data/uploads/"


def mirrors(*places: str) -> tuple[str, ...]:
    """The addresses of one file at these hosts: https first, then plain http, whose files are checked all the same."""
    return tuple(f"{scheme}://{place}" for scheme in ("https", "http") for place in places)


ARCHIVES: dict[str, list[tuple[str, ...]]] = {
    "sts_2012_2016": [
        mirrors(_STS + name)
        for name in (
            "4/40/STS2012-en-test.zip",
            "e/e4/STS2012-en-train.zip",
            "2/2f/STS2013-en-test.zip",
            "8/8c/STS2014-en-test.zip",
            "d/da/STS2015-en-test.zip",
            "9/98/STS2016-en-test.zip",
        )
    ],
    "sts_b": [mirrors(_STS + "4/48/Stsbenchmark.tar.gz")],
    "sick_r": [mirrors(_SICK + f"sick_{part}.zip") for part in ("train", "trial", "test_annotated")],
}
# SentEval's copies of the same files (less the train files of 2012), on another host.
COPY = "https://huggingface.co/datasets/princeton-nlp/datasets-for-simcse/resolve/main/senteval.tar"
TIMEOUT = 20  # seconds without a byte
UNREACHABLE = (OSError, ValueError, http.client.HTTPException)  # URLError and timeouts among the first


def cache_folder() -> Path:
    """Where downloads go: CTXEXP_CACHE, or `ctxexp` in the user's cache folder (XDG_CACHE_HOME, ~/.cache).

    Example:
        >>> cache_folder().is_absolute()
        True
    """
    folder = os.environ.get("CTXEXP_CACHE")
    if folder:
        return user_path(folder)
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ctxexp"


def vector_folder(folder: str | Path | None = None) -> Path:
    """Where vectors are cached: the folder that a config gives, or `vectors` where downloads go."""
    return user_path(folder).resolve() if folder else cache_folder() / "vectors"


def manifest(dataset: str) -> dict[str, str]:
    """The files of a data set: SHA-256 -> path inside its folder."""
    text = (resources.files("ctxexp.datasets") / "semeval_files.csv").read_text(encoding="utf-8")
    return {row["sha256"]: row["file"] for row in csv.DictReader(io.StringIO(text)) if row["dataset"] == dataset}


def fetch_semeval(dataset: str) -> Path:
    """The folder with every file of `dataset`, downloaded the first time: from ARCHIVES or, where one of these can't be
    fetched, what is missing from COPY.

    Raises DataError if the network or the publisher can't be reached, or a file's digest isn't the expected one;
    nothing half-made is left behind.
    """
    names = manifest(dataset)
    target = cache_folder() / "datasets" / dataset
    if all((target / name).is_file() for name in names.values()):
        return target
    missing, files = dict(names), dict[str, bytes]()

    def take(urls: Sequence[str]) -> None:
        for _, data in archive_members(urls[0], download(urls, dataset)):
            if name := missing.pop(hashlib.sha256(data).hexdigest(), ""):
                files[name] = data

    try:
        for urls in ARCHIVES[dataset]:
            take(urls)
    except DataError:
        with suppress(DataError):
            take([COPY])
        if missing:
            raise
    if missing:
        raise DataError(
            f"dataset {dataset}: the downloaded archives lack {len(missing)} of {len(names)} files with the "
            f"expected SHA-256, such as {next(iter(missing.values()))}; give the original files with "
            "dataset.path=<folder>"
        )
    return _write(target, files)


def fetch(
    dataset: str, urls: str | Sequence[str], unpack: Callable[[bytes], Mapping[str, bytes]], cache: Path | None = None
) -> Path:
    """The folder of a data set's files, which are downloaded the first time; there whole or not at all.

    Args:
        dataset: The data set's name.
        urls: The address of its archive, or mirrors of it, the best first.
        unpack: The files to keep, by path, of what was downloaded; raises DataError for what isn't as it was.
        cache: The folder of downloads; None: CTXEXP_CACHE, or `ctxexp` in the user's cache folder.

    Raises:
        DataError: With the reason for each address that gives nothing.

    Example:
        >>> _ = Path("a.txt").write_text("one", encoding="utf-8")
        >>> folder = fetch("a set", Path("a.txt").absolute().as_uri(), lambda data: {"a.txt": data}, Path("cache"))
        >>> (folder / "a.txt").read_bytes()
        b'one'
    """
    target = (cache or cache_folder()) / "datasets" / dataset
    return target if target.is_dir() else _write(target, unpack(download(urls, dataset)))


def _write(target: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files by path, in place of a folder that may be there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, data in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(data)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def download(urls: str | Sequence[str], dataset: str) -> bytes:
    """The content from the first address that delivers all of it; `urls` are mirrors of one file, the best first.

    Raises DataError with the reason for each of them.

    Example:
        >>> _ = Path("a.txt").write_text("one", encoding="utf-8")
        >>> download(Path("a.txt").absolute().as_uri(), "a set")
        b'one'
    """
    reasons = []
    for url in [urls] if isinstance(urls, str) else urls:
        try:
            return content_at(url)
        except UNREACHABLE as error:
            reasons.append(f"{url} ({line(str(error), 200) or type(error).__name__})")
    raise DataError(
        f"dataset {dataset} is not in {cache_folder()} and could not be downloaded from {' or '.join(reasons)}; "
        "either run once with a network, or give the original files with dataset.path=<folder>"
    )


def content_at(url: str) -> bytes:
    """The content at an address. Raises one of UNREACHABLE, also for fewer or more bytes than the server announced."""
    buffer = io.BytesIO()
    with urllib.request.urlopen(url, timeout=TIMEOUT) as reply:
        stated = reply.headers.get("Content-Length") or ""
        size = int(stated) if stated.isdecimal() else None
        with tqdm(total=size, unit="B", unit_scale=True, desc=url.rsplit("/", 1)[-1], disable=None) as bar:
            while chunk := reply.read(1 << 16):
                buffer.write(chunk)
                bar.update(len(chunk))
    if size is not None and buffer.tell() != size:
        raise OSError(f"it broke off after {buffer.tell():,} of {size:,} bytes")
    return buffer.getvalue()


def archive_members(url: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file of a .zip or a .tar archive (.gz, .bz2, .xz); no file is written.

    Raises DataError for an archive that can't be read to its end.

    Example:
        >>> import io, zipfile
        >>> file = io.BytesIO()
        >>> with zipfile.ZipFile(file, "w") as archive:
        ...     archive.writestr("a.txt", "one")
        >>> list(archive_members("https://example.org/a.zip", file.getvalue()))
        [('a.txt', b'one')]
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
