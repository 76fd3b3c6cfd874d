"""Position embeddings of sinusoids: heads that attend to neighbours at first, and rows that go on beyond a window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

RIDGE = 0.01  # of extrapolated positions: of .003, .01 and .03 the one whose positions were predicted best


def sinusoids(positions: int, dim: int, amplitude: float) -> np.ndarray:
    """(positions, dim) float32 of amplitude * (cos wp, sin wp), frequencies falling geometrically from pi."""
    w = frequencies(dim)
    angle = np.arange(positions)[:, None] * w[None, :]
    out = np.empty((positions, dim), dtype=np.float32)
    out[:, 0::2], out[:, 1::2] = amplitude * np.cos(angle), amplitude * np.sin(angle)
    return out


def frequencies(dim: int) -> np.ndarray:
    """(dim / 2,) angles per position, from pi (period 2) down to pi / 128 (period 256)."""
    return np.pi * np.geomspace(1.0, 1.0 / 128.0, dim // 2)


def local_attention(offsets: Sequence[int], dim: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Query and key matrices, each (dim, dim) float32 as (out, in): head h attends to offsets[h] at first.

    A language model first has to find out that neighbours matter; until then it sits on a plateau at the unigram loss,
    most of the training time on a CPU. Sinusoids in the position embeddings let two matrices express "the position
    `offset` away": with p = (cos wp, sin wp) per frequency w, q = R(w offset) p and k = p give q.k = sum cos(w (i +
    offset - j)), largest at j = i + offset. Initial values only: every parameter stays learned. A head of width d reads
    the d / 2 highest frequencies; `gain` sharpens its attention quadratically.
    """
    width = dim // len(offsets)
    query, key = np.zeros((dim, dim), dtype=np.float32), np.zeros((dim, dim), dtype=np.float32)
    for head, offset in enumerate(offsets):
        for f, w in enumerate(frequencies(dim)[: width // 2]):
            row, column = head * width + 2 * f, 2 * f
            cos, sin = gain * np.cos(w * offset), gain * np.sin(w * offset)
            query[row : row + 2, column : column + 2] = [[cos, -sin], [sin, cos]]
            key[row : row + 2, column : column + 2] = [[gain, 0.0], [0.0, gain]]
    return query, key


def extrapolate(learned: np.ndarray, known: int, heads: int) -> np.ndarray:
    """Position embeddings (positions, dim) float32 whose rows from `known` on go on from those before.

    Windows of `known` pieces leave the later rows as they were drawn, which the network has meanwhile forgotten how to
    read. What it learnt still turns with the position as the sinusoids do: a ridge regression of the rows on those of
    the highest frequencies, which a head of the first layer was made to read, tells how they go on. The first row and
    the last two, which stand at a window's ends, are left out of it.
    """
    positions, dim = learned.shape
    waves = sinusoids(positions, dim, 1.0)[:, : 2 * (dim // heads // 2)].astype(np.float64) / math.sqrt(dim / 2)
    x = np.concatenate([waves, np.ones((positions, 1))], axis=1)
    waves_of_known, rows = x[1 : known - 2], learned[1 : known - 2].astype(np.float64)
    weights = np.linalg.solve(waves_of_known.T @ waves_of_known + RIDGE * np.eye(x.shape[1]), waves_of_known.T @ rows)
    return np.concatenate([learned[:known], (x @ weights)[known:]]).astype(np.float32)
