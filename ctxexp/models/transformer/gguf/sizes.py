"""Sizes that a GGUF file's header names, held against the file's own before a reader follows them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

from ctxexp.errors import ModelError

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by the format's types
INTEGERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 10: "Q", 11: "q"}
LEAST_PAIR, LEAST_TENSOR = 13, 24  # bytes of a key with its value, of a tensor's description
DEEPEST = 4  # arrays in arrays
WIDTHS = ("embedding_length", "feed_forward_length", "context_length", "vocab_size", "attention.head_count")


class _AbsurdError(Exception):
    """A size that the file can't have."""


def check_sizes(file: Path) -> None:
    """Raise ModelError for a GGUF file that names more than it can hold: a reader would go through it for ever, or a
    model be built of it. Files of the first version, and those of the other byte order, are left to the reader."""
    size = file.stat().st_size
    with file.open("rb") as raw:
        magic, version, tensors, pairs = struct.unpack("<4sIQQ", raw.read(24).ljust(24, b"\0"))
        if magic != b"GGUF" or not 2 <= version < 1 << 16:
            return
        try:
            _hold(tensors * LEAST_TENSOR, size, f"{tensors:,} tensors")
            _hold(pairs * LEAST_PAIR, size, f"{pairs:,} keys")
            for _ in range(pairs):
                key = _string(raw, size)
                value = _value(raw, _number(raw, "I"), size, key)
                if value is not None and key.endswith(".block_count") and value > tensors:
                    raise _AbsurdError(f"{value:,} layers in {tensors:,} tensors")
                if value is not None and key.endswith(WIDTHS):
                    _hold(value // 8, size, f"{key}={value:,}")
        except _AbsurdError as error:
            raise ModelError(
                f"{file} can't be read as GGUF (it names {error} and has {size:,} bytes); copy or download it again"
            ) from None


def _hold(n_bytes: int, size: int, what: str) -> None:
    if n_bytes > size:
        raise _AbsurdError(what)


def _number(raw: BinaryIO, kind: str) -> int:
    data = raw.read(struct.calcsize(kind))
    if len(data) < struct.calcsize(kind):
        raise _AbsurdError("more than there is")
    return int(struct.unpack(f"<{kind}", data)[0])


def _string(raw: BinaryIO, size: int) -> str:
    n = _number(raw, "Q")
    _hold(raw.tell() + n, size, f"a text of {n:,} bytes")
    return raw.read(n).decode("utf-8", "replace")


def _value(raw: BinaryIO, kind: int, size: int, key: str, depth: int = 0) -> int | None:
    """An integer's value; None for any other, which is passed over."""
    if kind in INTEGERS:
        return _number(raw, INTEGERS[kind])
    if kind in SIZES:
        raw.seek(SIZES[kind], os.SEEK_CUR)
    elif kind == STRING:
        n = _number(raw, "Q")
        _hold(raw.tell() + n, size, f"a text of {n:,} bytes under {key[:60]!r}")
        raw.seek(n, os.SEEK_CUR)
    elif kind == ARRAY and depth < DEEPEST:
        of, n = _number(raw, "I"), _number(raw, "Q")
        _hold(raw.tell() + n * SIZES.get(of, 8), size, f"{n:,} values under {key[:60]!r}")
        if of in SIZES:
            raw.seek(n * SIZES[of], os.SEEK_CUR)
        else:
            for _ in range(n):
                _value(raw, of, size, key, depth + 1)
    else:
        raise _AbsurdError(f"type {kind} under {key[:60]!r}, which the format hasn't")
    return None
