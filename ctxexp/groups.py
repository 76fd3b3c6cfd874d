"""Groups of rows as metrics and baselines get them: one by one, or in blocks of equal size, read at a place into one
buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from ctxexp.errors import MetricError, plugin_call
from ctxexp.maths.geometry import PreparedRows
from ctxexp.model import EmbeddingTable
from ctxexp.occurrences import Groups, Occurrences, read_only

T = TypeVar("T")
BLOCK_BYTES = 2**20  # vectors that are measured at a time: about a core's second-level cache


@dataclass(frozen=True, slots=True)
class Pairs:
    """Gold values, texts and sentence numbers of a sub-set's pairs.

    Example:
        >>> len(Pairs(np.array([0.5, 4.0]), [("a cat", "a dog"), ("a cat", "one cat")]))
        2
    """

    gold: np.ndarray  # (n,) float64
    texts: Sequence[tuple[str, str]]
    ends: np.ndarray | None = None  # (n, 2) int64, the two sentences' numbers; None: no two pairs share one

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, in one layer, mix of layers or embedding table.

    `x` is valid during the call only: its memory holds the next group after it. Copy what must be kept.

    Example:
        >>> Group("bank", np.zeros((5, 8), np.float32)).x.shape  # five occurrences, eight columns
        (5, 8)
    """

    key: Hashable  # a word, a sentence's number, a sub-set of pairs (`task/part`, or the task), a table's name
    x: np.ndarray  # (n, d) float32 or float64; of pairs (n, 2, d)
    labels: tuple[str, ...] = ()  # of a sense group: a label a row
    pairs: Pairs | None = None
    table: EmbeddingTable | None = None

    def gold_pairs(self) -> Pairs:
        """The group's pairs.

        Raises:
            MetricError: Its rows (n, 2, d), gold values and texts are not as many.
        """
        pairs = self.pairs
        if pairs is None or self.x.ndim != 3 or not len(self.x) == len(pairs) == len(pairs.texts):
            size = "no pairs" if pairs is None else f"{len(pairs)} gold values, {len(pairs.texts)} texts"
            raise MetricError(
                f"sub-set {self.key!r}: vectors of shape {self.x.shape} and {size}; expected (n, 2, d) and n of each"
            )
        return pairs


@dataclass(frozen=True)
class Block:
    """Groups of equal size, side by side.

    Example:
        >>> block = Block(["bank", "river"], np.zeros((2, 5, 8), np.float32))
        >>> [(group.key, group.x.shape) for group in block]
        [('bank', (5, 8)), ('river', (5, 8))]
    """

    keys: Sequence[Hashable]
    x: np.ndarray  # (w, n, d); of pairs (1, n, 2, d)
    rows: np.ndarray | None = None  # (w, n) their numbers
    labels: Sequence[tuple[str, ...]] = ()
    pairs: Pairs | None = None
    table: EmbeddingTable | None = None
    eps: float = 0.0  # machine epsilon of the rows, where it is larger than that of their type

    @cached_property
    def prepared_rows(self) -> PreparedRows:
        """The rows with norms and sums that its metrics share."""
        return PreparedRows(self.x, self.eps)

    @classmethod
    def of(cls, group: Group) -> Block:
        """The group by itself."""
        return cls([group.key], group.x[None], None, [group.labels], group.pairs, group.table)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Group]:
        for i, (key, x) in enumerate(zip(self.keys, self.x, strict=True)):
            yield Group(key, x, self.labels[i] if self.labels else (), self.pairs, self.table)

    def rows_as_groups(self) -> Block:
        """Each row as a group of its own, its key its number."""
        assert self.rows is not None
        rows = self.rows.reshape(-1, 1)
        return Block(rows[:, 0].tolist(), self.x.reshape(-1, 1, self.x.shape[-1]), rows, eps=self.eps)

    def subset(self, which: np.ndarray) -> Block:
        """Only these groups."""
        rows = None if self.rows is None else self.rows[which]
        labels = [self.labels[i] for i in which.tolist()] if self.labels else ()
        keys = [self.keys[i] for i in which.tolist()]
        return replace(self, keys=keys, x=self.x[which], rows=rows, labels=labels)


class Place(NamedTuple):
    """Where vectors are read: a layer, a mix of layers or an embedding table."""

    kind: Literal["layer", "mix", "table"]
    name: str
    layer: int | None = None  # of a layer, its number

    @classmethod
    def of(cls, layer: int) -> Place:
        """A layer."""
        return cls("layer", str(layer), layer)

    def __str__(self) -> str:
        return f"layer {self.name}" if self.kind == "layer" else f"{self.kind} {self.name!r}"

    @property
    def folder(self) -> str:
        """The folder of what metrics write of this place."""
        if self.layer is not None:
            return f"layer_{self.layer:02d}"
        return self.name if self.kind == "mix" else f"table_{self.name}"


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


class WordReader:
    """One layer's occurrences; `samples` are the baseline's random groups, `eps` is the machine epsilon of the vectors:
    rows that differ by less are equal."""

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
        self.place, self.vectors, self.occurrences = place, vectors, occurrences
        self.samples, self._buffer = samples, buffer
        self.eps = max(eps, float(np.finfo(vectors.dtype).eps))

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        return self._buffer(self.vectors, rows)

    def blocks_of(self, groups: Groups) -> Iterator[Block]:
        """All groups, those of equal size together."""
        for keys, rows, labels in groups.blocks(self._buffer.most_rows):
            yield Block(keys, self.gather(rows), rows, labels, eps=self.eps)

    def blocks(self, kind: str) -> Iterator[Block]:
        """The groups of a kind, those of equal size together; each is valid until the next."""
        if kind != "sample":
            yield from self.blocks_of(self.occurrences.groups(kind))
            return
        for i, rows in enumerate(self.samples):
            yield Block([i], self.gather(rows[None]), rows[None], eps=self.eps)

    def call_metric(self, label: str, metric: object, where: str, call: Callable[[], T]) -> T:
        """Call a method of a metric and return its result; its errors name the metric, this place and `where`."""
        return call_metric(label, metric, f"{self.place}, {where}", call)


def call_metric(label: str, metric: object, where: str, call: Callable[[], T]) -> T:
    """Call a metric's method and return its result; what it raises becomes a MetricError that names the metric and
    `where` (`layer 3, word 'bank'`)."""
    failure = f"({type(metric).__name__}) failed at {where}"
    with plugin_call("metric", label, failure, within=f" at {where}"):
        return call()
