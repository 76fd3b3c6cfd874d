"""The bytes of a store: .npy headers, checksums, meta.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from ctxexp.errors import StoreError
from ctxexp.files.seals import seal, unseal

FORMAT = 2  # for other readers; our own find only what the same code wrote
HEADER_BYTES = 128  # bytes before the data of a layer file


class DamagedError(StoreError):
    """A store differs from what was written and must be encoded again."""


class NotFiniteError(Exception):
    """Row `row` holds NaN or infinity."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray | None:
    """The one array (n_layers, n, dim) that `parts` are consecutive slices of, without a copy; None if they aren't."""
    parts = [part for part in parts if part.shape[1]]
    if not parts:
        return None
    n_layers, _, dim = parts[0].shape
    rows, item = sum(part.shape[1] for part in parts), parts[0].itemsize
    strides, at = (rows * dim * item, dim * item, item), parts[0].__array_interface__["data"][0]
    for part in parts:
        if part.strides != strides or part.__array_interface__["data"][0] != at:
            return None
        at += part.shape[1] * dim * item
    return np.lib.stride_tricks.as_strided(parts[0], (n_layers, rows, dim), strides)


class StoreMeta(TypedDict):
    """The content of a store's meta.json."""

    format: int
    key: str
    encoder: str
    corpus: str
    dtype: str
    n_layers: int
    layers: list[int]
    dim: int
    n_rows: int
    skipped: int  # words without a row
    example: NotRequired[str]  # one of the words without a row, in a shard
    unknown: int  # pieces that stand for characters which the tokenizer doesn't know
    pieces: int  # all pieces
    chunks: list[int]  # numbers of rows that share a checksum
    sizes: dict[str, int]  # bytes of each file
    digests: dict[str, str]  # of the small files
    checksums: list[list[int]]  # of each layer, one per chunk


def layer_name(i: int) -> str:
    """The file name of layer `i`."""
    return f"layer_{i:02d}.npy"


def header(dtype: np.dtype[np.floating], n_rows: int, dim: int) -> bytes:
    """The first 128 bytes of a .npy file (format 1.0) of a C-ordered (n_rows, dim) array."""
    about = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({int(n_rows)}, {int(dim)}), }}"
    return (
        b"\x93NUMPY\x01\x00"
        + (HEADER_BYTES - 10).to_bytes(2, "little")
        + about.ljust(HEADER_BYTES - 11).encode()
        + b"\n"
    )


def all_finite(block: np.ndarray) -> bool:
    """Whether no value is NaN or infinite, in one pass without temporaries where it can be."""
    if block.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.add.reduce(block.reshape(-1))
        return bool(np.isfinite(total)) or bool(np.isfinite(block).all())  # a sum of finite values may overflow
    return bool((block.view(np.uint16) & 0x7C00).max(initial=0) < 0x7C00)


def write_meta(folder: Path, meta: Mapping[str, object]) -> None:
    """Write meta.json, sealed with its own checksum."""
    (folder / "meta.json").write_text(seal(meta), encoding="utf-8")


def read_meta(folder: Path) -> StoreMeta:
    """The content of meta.json. Raises `DamagedError` if it can't be read or was changed."""
    file = folder / "meta.json"
    try:
        if not file.is_file():  # a FIFO there would be waited for
            raise FileNotFoundError(file)
        meta: StoreMeta = unseal(file.read_bytes())
    except ValueError as error:
        raise DamagedError(f"meta.json {error}") from error
    except OSError as error:
        raise DamagedError(f"meta.json can't be read ({type(error).__name__})") from error
    return meta
