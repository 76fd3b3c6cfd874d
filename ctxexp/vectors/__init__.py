"""Vectors on disk: one (n_rows, dim) array per layer, in a folder that is complete or absent; each row knows its unit,
sentence and word.

A row is the vector of one unit of a sentence: of a word, or of a piece where the encoder gives vectors of pieces. A
folder holds `layer_00.npy` ... (plain .npy files), `unit_codes.npy` into `vocabulary.json`, `offsets.npy` (the rows
of each stored sentence), `order.npy` (which sentence is stored where), `positions.npy` (each row's word in its
sentence), `tokens.npy` (the model's tokens of each row) and `meta.json`. It is written beside its place and renamed
into it, meta.json last, which has the crc32 of every file, by its name, and of itself: a store is checked when it is
opened, so that no flipped bit or swapped layer becomes a number.
"""

from __future__ import annotations

import json
import shutil
import weakref
import zlib
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO, FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import StoreError, error_text
from ctxexp.files import sealed_json, unseal_json

WRITE_BYTES = 64 << 10  # larger writes make the kernel look for huge pages, at three times the cost
READ_BYTES = 256 << 10  # of a layer that is checked: they stay in the processor's cache
FORMAT = 5  # for other readers; our own find only what the same code wrote
HEADER_BYTES = 128  # bytes before the data of a layer file


class Store:
    """The vectors of a corpus: `layer(i)` is (n_rows, dim), read-only; one row per unit of each stored sentence.

    `n_layers` counts the model's layers with the input layer 0 (13 of BERT-base); `layer_numbers` are those stored.
    Stored sentence s has rows `offsets[s]:offsets[s + 1]`, in the order of its units; corpus sentence i is stored as
    `stored_of[i]` (equal sentences are stored once). Row r is unit `vocabulary[unit_codes[r]]`, word `positions[r]` of
    its sentence (-1 if the units aren't the sentence's words), `tokens[r]` the place of its first token where the model
    reads it, its number of tokens and a checksum of its pieces (-1 where the encoder doesn't tell). `n_encoded` is the
    number of sentences that were encoded to make this store just now, `n_skipped` that of words without a row, since
    the tokenizer has no piece for them.
    `n_pieces` is the number of pieces of the sentences, `n_unknown_pieces` that of those that stand for characters
    which the tokenizer doesn't know, such as [UNK] (both 0 where the encoder doesn't tell).
    """

    def __init__(self, path: Path, unique_of: np.ndarray, *, n_encoded: int = 0) -> None:
        """Open the folder. `unique_of` (n_corpus_sentences,) is each corpus sentence's number among the unique ones.
        Raises DamagedError for a file that is missing or isn't as it was written."""
        self.path, self.n_encoded = path, n_encoded
        self.meta = meta = read_meta(path)
        files: list[FileIO] = []
        weakref.finalize(self, _close, files)
        try:
            self.n_layers, self.dim, self.n_rows = int(meta["n_layers"]), int(meta["dim"]), int(meta["n_rows"])
            self.layer_numbers, self.dtype = tuple(meta["layers"]), np.dtype(meta["dtype"])
            self.n_skipped, self.n_unknown_pieces, self.n_pieces = meta["skipped"], meta["unknown"], meta["pieces"]
            start = header(self.dtype, self.n_rows, self.dim)
            for i in self.layer_numbers:
                files.append((path / layer_name(i)).open("rb", buffering=0))
                self._check(layer_name(i), rows_checksum(files[-1]) if files[-1].read(HEADER_BYTES) == start else None)
            self.vocabulary: list[str] = json.loads(self._read("vocabulary.json"))
            self.unit_codes = self._array("unit_codes")  # (n_rows,) int32
            self.offsets = self._array("offsets")  # (n_stored + 1,) int64
            self.positions = self._array("positions")  # (n_rows,) int32
            self.tokens = self._array("tokens")  # (n_rows, 3) int64: the first one's place, how many, a checksum; or -1
            order = self._array("order")  # (n_stored,) int64, the unique sentence that is stored there
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise DamagedError(f"{path}: {error_text(error)}") from error
        self._files = files  # open, so that the layers stay readable if another process evicts the folder
        stored_number = np.empty(len(order), dtype=np.int64)  # of each unique sentence
        stored_number[order] = np.arange(len(order))
        self.stored_of = stored_number[unique_of]  # (n_corpus_sentences,) int64

    def _check(self, name: str, checksum: int | None) -> None:
        if self.meta["checksums"][name] != checksum:
            raise DamagedError(f"{name} is not as it was written")

    def _read(self, name: str) -> bytes:
        content = (self.path / name).read_bytes()
        self._check(name, zlib.crc32(content))
        return content

    def _array(self, name: str) -> np.ndarray:
        array: np.ndarray = np.load(BytesIO(self._read(f"{name}.npy")))
        return array

    def layer(self, i: int) -> np.ndarray:
        """Layer `i` (0 = input layer) as a read-only array (n_rows, dim) mapped from disk: drop it to free it."""
        if i not in self.layer_numbers:
            some = ", ".join(map(str, self.layer_numbers)) if len(self.layer_numbers) < self.n_layers else ""
            raise StoreError(f"no layer {i}: {self.meta['encoder']!r} has layers {some or f'0 to {self.n_layers - 1}'}")
        shape = (self.n_rows, self.dim)
        if not self.n_rows:
            return np.empty(shape, dtype=self.dtype)
        return np.memmap(
            self._files[self.layer_numbers.index(i)], dtype=self.dtype, mode="r", offset=HEADER_BYTES, shape=shape
        )


def _close(files: list[FileIO]) -> None:
    for file in files:
        file.close()


class StoreWriter:
    """Writes a store's files into `folder`, rows in the order in which they come. A context manager: it removes the
    folder unless `finish` was called."""

    def __init__(self, folder: Path, n_layers: int, dim: int, layers: Sequence[int] | None = None) -> None:
        self.folder, self.n_layers, self.dim = folder, n_layers, dim
        self.layers = range(n_layers) if layers is None else layers
        self.dtype: np.dtype[np.floating] | None = None  # that of the first rows
        self.n_rows = 0
        self.files: dict[str, BinaryIO] = {}  # of the layers, by name
        self.checksums: dict[str, int] = {}
        self.finished = False

    def _open(self, dtype: np.dtype[np.floating]) -> None:
        self.dtype = dtype
        for name in map(layer_name, self.layers):
            self.files[name] = (self.folder / name).open("wb", buffering=WRITE_BYTES)
            self.files[name].write(bytes(HEADER_BYTES))  # the true one comes last, with the true shape
            self.checksums[name] = 0  # of its rows

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            with suppress(OSError):  # a full disk is reported by the write that failed
                file.close()
        if not self.finished:
            shutil.rmtree(self.folder, ignore_errors=True)

    def append(self, parts: Sequence[np.ndarray]) -> None:
        """Add the rows of each array (layers, n, dim) in turn. Raises NotFiniteError for NaN and infinity."""
        if self.dtype is None:
            self._open(parts[0].dtype)
        rows = np.concatenate(parts, axis=1)
        for name, block in zip(self.files, rows, strict=True):
            if not all_finite(block):
                raise NotFiniteError(self.n_rows + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0]))
            flat = block.reshape(-1).view(np.uint8)
            for at in range(0, len(flat), WRITE_BYTES):
                chunk = flat[at : at + WRITE_BYTES].data
                self.checksums[name] = zlib.crc32(chunk, self.checksums[name])
                self.files[name].write(chunk)
        self.n_rows += rows.shape[1]

    def finish(self, rows_of: RowIndexBuilder, order: np.ndarray, meta: Mapping[str, object]) -> None:
        """Write the true headers, the row index, which sentence is stored where (`order`) and, last, meta.json."""
        assert self.dtype is not None
        for file in self.files.values():
            file.seek(0)
            file.write(header(self.dtype, self.n_rows, self.dim))
            file.close()
        index = {"vocabulary.json": json.dumps(list(rows_of.vocabulary)).encode()}
        for name, values in {**rows_of.arrays(), "order": order.astype(np.int64)}.items():
            np.save(buffer := BytesIO(), values)
            index[f"{name}.npy"] = buffer.getvalue()
        for name, content in index.items():
            self.checksums[name] = zlib.crc32(content)
            (self.folder / name).write_bytes(content)
        about = {
            **meta,
            "format": FORMAT,
            "n_layers": self.n_layers,
            "layers": list(self.layers),
            "dim": self.dim,
            "dtype": self.dtype.name,
            "n_rows": self.n_rows,
            "skipped": rows_of.n_skipped,
            "example": rows_of.example,
            "checksums": self.checksums,
        }
        (self.folder / "meta.json").write_text(sealed_json(about), encoding="utf-8")
        self.finished = True


class DamagedError(StoreError):
    """A store differs from what was written and must be encoded again."""


class NotFiniteError(Exception):
    """Row `row` holds NaN or infinity."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def layer_name(i: int) -> str:
    """The file name of layer `i`."""
    return f"layer_{i:02d}.npy"


def header(dtype: np.dtype[np.floating], n_rows: int, dim: int) -> bytes:
    """The first 128 bytes of a .npy file (format 1.0) of a C-ordered (n_rows, dim) array."""
    about = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({int(n_rows)}, {int(dim)}), }}"
    start = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + about.ljust(HEADER_BYTES - 11).encode() + b"\n"


def rows_checksum(file: FileIO) -> int:
    """The crc32 of what is left of the file."""
    checksum, chunk = 0, memoryview(bytearray(READ_BYTES))
    while n := file.readinto(chunk):
        checksum = zlib.crc32(chunk[:n], checksum)
    return checksum


def all_finite(block: np.ndarray) -> bool:
    """Whether a float32 or float16 block has neither NaN nor infinity, in one pass without temporaries where it can
    be."""
    if block.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.add.reduce(block.reshape(-1))
        return bool(np.isfinite(total)) or bool(np.isfinite(block).all())  # a sum of finite values may overflow
    return bool((block.view(np.uint16) & 0x7C00).max(initial=0) < 0x7C00)


def read_meta(folder: Path) -> dict[str, Any]:
    """The content of meta.json. Raises `DamagedError` if it can't be read."""
    try:
        return unseal_json((folder / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"meta.json can't be read ({error_text(error)})") from error


class RowIndexBuilder:
    """Collects unit, word position and sentence of each row in stored order; counts words that got no unit."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self.codes, self.positions, self.offsets = array("i"), array("i"), array("q", [0])
        self.tokens = array("q")
        self.n_skipped, self.example = 0, ""

    def add(
        self, sentence: Sentence, units: Sequence[str], tokens: np.ndarray, words: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Add a sentence's units, with the place, number and checksum of the tokens (n, 3) of each, or of each word;
        with `words` only those of the words of these numbers, and return the indices of their units."""
        is_whole = units is sentence.words or tuple(units) == sentence.words
        positions = range(len(units)) if is_whole else _positions(units, sentence.words)
        wanted, indices, n_units = sentence.words, None, len(units)
        if words is not None:
            wanted = tuple(sentence.words[i] for i in words.tolist())
            of_unit = np.array([-1] * len(units) if positions is None else positions)
            indices = np.flatnonzero(np.isin(of_unit, words))
            units, positions = [units[i] for i in indices.tolist()], of_unit[indices].tolist()
        is_of_words = len(tokens) == len(sentence.words) and positions is not None and -1 not in positions
        if len(tokens) == n_units:
            tokens = tokens if indices is None else tokens[indices]
        else:
            tokens = tokens[list(positions)] if is_of_words and positions else np.full((len(units), 3), -1)
        codes = self.vocabulary
        self.codes.extend([codes.setdefault(unit, len(codes)) for unit in units])
        self.tokens.frombytes(tokens.astype(np.int64).tobytes())
        self.positions.extend([-1] * len(units) if positions is None else positions)
        self.offsets.append(self.offsets[-1] + len(units))
        if positions is not None and len(units) < len(wanted):
            self.n_skipped += len(wanted) - len(units)
            self.example = next(iter(Counter(wanted) - Counter(units)))
        return indices

    def arrays(self) -> dict[str, np.ndarray]:
        """The row index as arrays by file name: `unit_codes`, `positions` (n_rows,) int32, `tokens` (n_rows, 3) and
        `offsets` (n_sentences + 1,) int64."""
        return {
            "unit_codes": np.array(self.codes, np.int32),
            "positions": np.array(self.positions, np.int32),
            "tokens": np.array(self.tokens, np.int64).reshape(-1, 3),
            "offsets": np.array(self.offsets, np.int64),
        }


def _positions(units: Sequence[str], words: Sequence[str]) -> Sequence[int] | None:
    """Each unit's word when the units are the words with some left out; else None (they are pieces).

    -1 for a unit that could be either of two equal words, since one of them was left out.
    """
    first = _leftmost(units, words)
    if first is None:
        return None
    mirrored = _leftmost(units[::-1], words[::-1])
    assert mirrored is not None  # what fits from the left fits from the right
    last = [len(words) - 1 - at for at in reversed(mirrored)]
    return [a if a == b else -1 for a, b in zip(first, last, strict=True)]


def _leftmost(units: Sequence[str], words: Sequence[str]) -> list[int] | None:
    """Each unit's place among the words, as early as their order allows; None if they don't fit."""
    positions, at = [], 0
    for unit in units:
        while at < len(words) and words[at] != unit:
            at += 1
        if at == len(words):
            return None
        positions.append(at)
        at += 1
    return positions
