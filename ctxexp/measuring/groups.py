"""Groups of rows as metrics get them: one by one, or blocks of equal size."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths.geometry import PreparedRows
from ctxexp.model import EmbeddingTable


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


def pairs_of(group: Group) -> Pairs:
    """The group's pairs; raises MetricError unless its rows (n, 2, d) and texts are as many."""
    if group.pairs is None or group.x.ndim != 3 or not len(group.x) == len(group.pairs) == len(group.pairs.texts):
        size = "no pairs" if group.pairs is None else f"{len(group.pairs)} gold values, {len(group.pairs.texts)} texts"
        raise MetricError(
            f"sub-set {group.key!r}: vectors of shape {group.x.shape} and {size}; expected (n, 2, d) and n of each"
        )
    return group.pairs
