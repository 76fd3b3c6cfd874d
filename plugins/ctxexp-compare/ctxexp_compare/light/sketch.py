"""Vectors in few numbers: projections on seeded random directions, in which a change of any kind shows at its size.

For signs S of +1 and -1, |x S / sqrt(k)|² is |x|² on average over S (Achlioptas 2003,
doi:10.1016/S0022-0000(03)00025-4), so the difference of two sketches is as long, on average, as that of the vectors,
whatever changed: a rotation too, which no distance or cosine among the vectors shows. Lengths, and cosines of
neighbouring rows, are kept exactly, by which a rotation is told from others.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

MAX_COLUMNS, MIN_COLUMNS = 16, 2
BYTES = 90_000  # of all sketches
EXTRA = 2  # numbers of a row besides its projections


class Sketch(NamedTuple):
    """A model's rows, in float32: `projections` (layers, n, k), `lengths` (layers, n), and `cosines` (layers, n) of
    each row and the next, of the last and the first."""

    projections: np.ndarray
    lengths: np.ndarray
    cosines: np.ndarray

    @property
    def n_columns(self) -> int:
        """Projections of each row."""
        return int(self.projections.shape[2])


def directions(dim: int, k: int, seed: int) -> np.ndarray:
    """(dim, k) of +1 and -1 over sqrt(k), the same on every machine and with every library."""
    bits = np.frombuffer(hashlib.shake_256(f"ctxexp pin {seed}".encode()).digest((dim * k + 7) // 8), np.uint8)
    signs = 2.0 * np.unpackbits(bits)[: dim * k].reshape(dim, k) - 1
    return signs / np.sqrt(k)


def column_count(n_layers: int, n: int) -> int:
    """How many projections of n rows in so many layers a pin has room for; below MIN_COLUMNS it is too many layers."""
    return min(MAX_COLUMNS, int(BYTES // (4 * n_layers * n)) - EXTRA)


def most_layers(n: int) -> int:
    """How many layers of n rows a pin has room for."""
    return max(1, int(BYTES // (4 * n * (MIN_COLUMNS + EXTRA))))


def sketch(vectors: np.ndarray, k: int, seed: int) -> Sketch:
    """The sketch of vectors (layers, n, dim)."""
    along = directions(vectors.shape[2], k, seed)
    projections, lengths, cosines = [], [], []
    for layer in vectors:
        x = layer.astype(np.float64)
        length = np.linalg.norm(x, axis=1)
        projections.append(x @ along)
        lengths.append(length)
        unit = x / np.where(length > 0, length, 1)[:, None]
        cosines.append((unit * np.roll(unit, -1, axis=0)).sum(axis=1))
    return Sketch(*(np.array(one, np.float32) for one in (projections, lengths, cosines)))


def row_moves(a: Sketch, b: Sketch) -> np.ndarray:
    """How far each row of b lies from a's, in lengths of a's (layers, n); of a row of zeros in lengths of b's."""
    away = np.linalg.norm(b.projections.astype(np.float64) - a.projections, axis=2)
    length = np.where(a.lengths > 0, a.lengths, b.lengths)
    return away / np.where(length > 0, length, 1)
