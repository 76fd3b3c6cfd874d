"""One layer's occurrences as metrics and chance levels read them: gathered into one buffer, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ctxexp.measuring.groups import Block
from ctxexp.measuring.occurrences import Groups, Occurrences
from ctxexp.measuring.rows import Place, Reader
from ctxexp.vectors.layers import read_only

BLOCK_BYTES = 2**20  # vectors that are measured at a time: about a core's second-level cache


class Gather:
    """Copies rows out of a layer into one float32 buffer that is used again and again."""

    def __init__(self, dim: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.dim = dim
        self.most_rows = max(1, block_bytes // (4 * dim))
        self.buffer = np.empty(self.most_rows * dim, np.float32)

    def __call__(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        if rows.size * self.dim > self.buffer.size:
            self.buffer = np.empty(rows.size * self.dim, np.float32)
        x = self.buffer[: rows.size * self.dim].reshape(rows.size, self.dim)
        if vectors.dtype == np.float32:
            np.take(vectors, rows.ravel(), axis=0, out=x, mode="clip")  # "clip" skips a copy; rows are the store's own
        else:
            x[...] = vectors[rows.ravel()]
        return read_only(x.reshape(*rows.shape, self.dim))


class WordReader(Reader):
    """One layer's occurrences; `samples` are the baseline's random groups."""

    def __init__(
        self,
        place: Place,
        vectors: np.ndarray,
        occurrences: Occurrences,
        buffer: Gather,
        *,
        samples: Sequence[np.ndarray] = (),
        eps: float = 0.0,
    ) -> None:
        super().__init__(place)
        self.vectors, self.occurrences, self.samples, self._buffer = vectors, occurrences, samples, buffer
        self.eps = max(eps, float(np.finfo(vectors.dtype).eps))

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        return self._buffer(self.vectors, rows)

    def blocks_of(self, groups: Groups) -> Iterator[Block]:
        """All groups, those of equal size together."""
        for keys, rows, labels in groups.blocks(self._buffer.most_rows):
            yield Block(keys, self.gather(rows), rows, labels, eps=self.eps)

    def blocks(self, kind: str) -> Iterator[Block]:
        if kind != "sample":
            yield from self.blocks_of(self.occurrences.groups(kind))
            return
        for i, rows in enumerate(self.samples):
            yield Block([i], self.gather(rows[None]), rows[None], eps=self.eps)
