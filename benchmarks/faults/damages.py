"""What befalls a file or a folder: other bytes, another's, none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

Damage = Callable[[Path, Path, np.random.Generator], object]
"""To a path, beside which another one of its kind lies."""


def rewrite(edit: Callable[[bytearray, np.random.Generator], object]) -> Damage:
    """Other bytes in a file."""

    def damage(path: Path, _: Path, rng: np.random.Generator) -> None:
        data = bytearray(path.read_bytes())
        edit(data, rng)
        path.write_bytes(data)

    return damage


def cut(data: bytearray, rng: np.random.Generator) -> None:
    del data[rng.integers(len(data)) :]


def grow(data: bytearray, rng: np.random.Generator) -> None:
    data += rng.bytes(int(rng.integers(1, 5000)))


def flip(data: bytearray, rng: np.random.Generator) -> None:
    for at in rng.integers(len(data), size=rng.integers(1, 9)):
        data[at] ^= int(rng.integers(1, 256))


def blank(data: bytearray, rng: np.random.Generator) -> None:
    at = int(rng.integers(len(data)))
    data[at : at + 256] = bytes(len(data[at : at + 256]))


def stretch(path: Path, other: Path, rng: np.random.Generator) -> None:
    """Some of the other's bytes at the same place."""
    data, others = bytearray(path.read_bytes()), other.read_bytes()
    at, n = int(rng.integers(max(1, min(len(data), len(others)) - 64))), int(rng.integers(1, 512))
    data[at : at + n] = others[at : at + n]
    path.write_bytes(data)


def remove(path: Path) -> None:
    (shutil.rmtree if path.is_dir() else Path.unlink)(path)


def copy_over(path: Path, other: Path, rng: np.random.Generator) -> None:
    remove(path)
    (shutil.copytree if other.is_dir() else shutil.copy)(other, path)


def swap(path: Path, other: Path, rng: np.random.Generator) -> None:
    path.rename(path.with_name("x"))
    other.rename(path)
    path.with_name("x").rename(other)


def folder(path: Path, other: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


OF_LENGTH: dict[str, Damage] = {
    "cut": rewrite(cut),
    "longer": rewrite(grow),
    "emptied": rewrite(lambda data, _: data.clear()),
    "a folder in its place": folder,
    "gone": lambda path, _, rng: remove(path),
}
OF_PLACE: dict[str, Damage] = {"another's copy": copy_over, "two in each other's place": swap}
OF_BYTES: dict[str, Damage] = {
    "bytes flipped": rewrite(flip),
    "a stretch of nulls": rewrite(blank),
    "another's stretch": stretch,
    "noise": lambda path, _, rng: path.write_bytes(rng.bytes(200)),
}
EVERY = OF_LENGTH | OF_PLACE | OF_BYTES
