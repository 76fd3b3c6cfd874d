"""Who is near whom in a space, ties broken at random: equal vectors lie equally far from everyone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from zlib import crc32

import numpy as np

from ctxexp_compare.measure import Sample, Stream

BLOCK = 512  # rows whose distances to all others are in memory at a time

Geometry = Literal["cosine", "euclidean"]


def nearest(x: np.ndarray, k: int, geometry: Geometry, sample: Sample) -> np.ndarray:
    """(n, k) int32: each row's k nearest others, the nearest first."""
    found = np.empty((len(x), k), np.int32)
    for rows, distance, order in _blocks(x, geometry, sample):
        part = np.argpartition(distance, k - 1, axis=1)[:, :k] if k < len(x) else np.argsort(distance, axis=1)[:, :k]
        near = np.take_along_axis(distance, part, axis=1)
        part = np.take_along_axis(part, np.argsort(near, axis=1, kind="stable"), axis=1)
        found[rows] = order[part]
    return found


def ranks(x: np.ndarray, geometry: Geometry, sample: Sample) -> np.ndarray:
    """(n, n) int32: at [i, j] how many rows lie nearer to i than j does, j itself counted; 0 on the diagonal."""
    n = len(x)
    found = np.empty((n, n), np.int32)
    places = np.broadcast_to(np.arange(1, n + 1, dtype=np.int32), (min(BLOCK, n), n))
    for rows, distance, order in _blocks(x, geometry, sample):
        by_distance = order[np.argsort(distance, axis=1, kind="stable")]
        block = found[rows]
        np.put_along_axis(block, by_distance, places[: len(block)], axis=1)
    np.fill_diagonal(found, 0)
    return found


def _blocks(x: np.ndarray, geometry: Geometry, sample: Sample) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """(rows, distances (rows, n) with columns in a random order and inf for oneself, that order).

    Distances are squared Euclidean ones of the rows, or of the rows at norm 1. They are taken between distinct vectors
    and handed out, so that equal vectors tie to the bit; columns lie in an order of each space's own, so that the tied
    come in another order in another space.
    """
    distinct, number = np.unique(np.ascontiguousarray(x), axis=0, return_inverse=True)
    y = distinct.astype(np.float64)
    if geometry == "cosine":
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        y = np.divide(y, norm, out=np.zeros_like(y), where=norm > 0)
    else:
        y -= y.mean(axis=0)
    squares = np.einsum("ij,ij->i", y, y)
    seed = [sample.seed, Stream.TIES, crc32(x[:2].tobytes())]  # of this space, whoever it is compared with
    order = np.random.default_rng(seed).permutation(len(x)).astype(np.int32)
    place = np.argsort(order)
    columns = number.ravel()[order]
    for at in range(0, len(x), BLOCK):
        rows = slice(at, min(at + BLOCK, len(x)))
        own = number.ravel()[rows]
        between = squares[own, None] + squares - 2 * (y[own] @ y.T)
        distance = between[:, columns]
        distance[np.arange(len(own)), place[rows]] = np.inf
        yield rows, distance, order
