"""Downloads that are cut, spoilt, encrypted or another kind of thing: refused in a line, or taken whole."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ctxexp.datasets import archive_members, text_lines
from ctxexp.datasets.downloads import fetch_dataset
from ctxexp.errors import DataError

from . import Lost, Silent


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each format and each damage in turn, at drawn places; a damage that a format can't have is left to the others."""
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        ending, pack = list(FORMATS.items())[place % len(FORMATS)]
        fitting = [name for name, (endings, _) in DAMAGES.items() if ending.startswith(endings)]
        name = fitting[place // len(FORMATS) % len(fitting)]
        own = folder / f"{place}"
        yield (
            f"{ending}: {name}",
            lambda e=ending, p=pack, n=name, rng=rng, own=own: tried(e, p(texts(rng)), n, rng, own),
        )


def texts(rng: np.random.Generator) -> dict[str, bytes]:
    """Three files of words."""
    words = ["river", "bank", "money", "of", "a", "naïve"]
    return {f"{name}.txt": " ".join(rng.choice(words, 300)).encode() + b"\n" for name in "abc"}


def tried(ending: str, data: bytes, name: str, rng: np.random.Generator, folder: Path) -> None:
    """Damages the archive and reads it: as a data set's download, or as a text if it is a packed file alone."""
    folder.mkdir()
    path = folder / f"all{ending}"
    spoilt = DAMAGES[name][1](data, rng)
    path.write_bytes(spoilt)
    if ending in PACKED:
        for _ in text_lines(path) if ending == ".txt.gz" else ():
            pass
        return
    read(path, data, spoilt, folder)


def read(path: Path, data: bytes, spoilt: bytes, folder: Path) -> None:
    whole = dict(archive_members(path.name, data))
    files = {hashlib.sha256(content).hexdigest(): name for name, content in whole.items()}
    try:
        found = fetch_dataset("made", archives=[path.as_uri()], files=files, cache=folder / "cache")
    except DataError:
        if spoilt == data:
            raise Lost("a whole archive was refused") from None
        if left := list((folder / "cache" / "datasets").iterdir()):
            raise Lost(f"left behind: {left}") from None
        raise
    if {name: (found / name).read_bytes() for name in whole} != whole:
        raise Silent("other files than those whose digests are known")


def zipped(method: int) -> Callable[[dict[str, bytes]], bytes]:
    def pack(files: dict[str, bytes]) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", method) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return made.getvalue()

    return pack


def tarred(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Up to eight bytes are others."""
    spoilt = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 9)):
        spoilt[at] ^= int(rng.integers(1, 256))
    return bytes(spoilt)


def head(data: bytes, rng: np.random.Generator) -> bytes:
    """A stretch of the first 512 bytes is random: names, sizes and methods."""
    at = int(rng.integers(min(512, len(data))))
    return data[:at] + rng.bytes(24) + data[at + 24 :]


def entry(offset: int, format: str, *values: int) -> Callable[[bytes, np.random.Generator], bytes]:
    """A field of a zip's first entry, both in the file's head and in the directory at the end."""

    def spoil(data: bytes, rng: np.random.Generator) -> bytes:
        spoilt = bytearray(data)
        struct.pack_into(format, spoilt, data.index(b"PK\3\4") + 4 + offset, *values)
        struct.pack_into(format, spoilt, data.index(b"PK\1\2") + 6 + offset, *values)
        return bytes(spoilt)

    return spoil


def absurd(data: bytes, rng: np.random.Generator) -> bytes:
    """A tar's header names 2^60 bytes, as a file's size or as that of an extended header."""
    header = bytearray(data[:512])
    header[124:136] = b"\x80" + (1 << 60).to_bytes(11, "big")
    header[156] = rng.choice([ord("0"), ord("x"), ord("L"), ord("S")])
    header[148:156] = b"        "
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header) + data[512:]


PACKED = (".txt.gz",)
FORMATS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    ".zip": zipped(zipfile.ZIP_DEFLATED),
    ".tar.gz": lambda files: gzip.compress(tarred(files)),
    ".tar": tarred,
    ".stored.zip": zipped(zipfile.ZIP_STORED),
    ".tar.bz2": lambda files: bz2.compress(tarred(files)),
    ".txt.gz": lambda files: gzip.compress(b"".join(files.values())),
    ".bzip2.zip": zipped(zipfile.ZIP_BZIP2),
    ".tar.xz": lambda files: lzma.compress(tarred(files)),
    ".lzma.zip": zipped(zipfile.ZIP_LZMA),
}
Damage = tuple[tuple[str, ...], Callable[[bytes, np.random.Generator], bytes]]
ZIPS = (".zip", ".stored", ".bzip2", ".lzma")
DAMAGES: dict[str, Damage] = {
    "cut": (("",), cut),
    "spoilt bytes": (("",), flipped),
    "a spoilt head": (("",), head),
    "none": (("",), lambda data, rng: data),
    "encrypted": (ZIPS, entry(2, "<H", 1)),
    "an unknown method": (ZIPS, entry(4, "<H", 77)),
    "absurd sizes": (ZIPS, entry(14, "<II", 0xFFFFFFFE, 0xFFFFFFFE)),
    "an absurd header": ((".tar",), absurd),
    "something else": (("",), lambda data, rng: rng.bytes(len(data))),
    "empty": (("",), lambda data, rng: b""),
}
