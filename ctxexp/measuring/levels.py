"""Chance levels in closed form, over all occurrences and not over a draw: the mean cosine of unrelated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.maths.prepared import PreparedRows
from ctxexp.measuring.groups import Block
from ctxexp.measuring.occurrences import Groups, Occurrences

Blocks = Callable[[Groups], Iterator[Block]]
"""Groups to blocks of equal-sized ones."""

Among = Literal["sentence", "row"]
"""Over which pairs a mean cosine is expected: one word from each of two sentences, or any two rows."""


class Level(NamedTuple):
    """An expectation over all random pairs, in one layer."""

    value: float  # in [-1, 1]; NaN without a pair
    influence: np.ndarray  # (n_blocks,) the influence of each block of clusters on it
    n: int  # sentences (or rows) with a direction


def mean_cosine_level(blocks: Blocks, occurrences: Occurrences, over: Among) -> Level:
    """The expected cosine of random occurrences of a layer, in [-1, 1].

    Over sentences: one word from each, with m_s the mean unit vector of distinct sentence s of S,
    A = (|sum m_s|^2 - sum |m_s|^2) / (S (S - 1)). Pairs of sentences that gold pairs link, directly or through others,
    are left out of it likewise. Over rows: of two distinct occurrences of distinct sentences, uniform over all of them.
    Rows without a direction (zero, or not finite) have no share in it.
    """
    parts: list[np.ndarray] = []
    sizes: list[np.ndarray] = []  # rows with a direction
    own: list[np.ndarray] = []  # what is no pair: of a sentence (or a row) with itself
    names: list[np.ndarray] = []
    for block in blocks(occurrences.distinct):
        x = block.x
        rows = PreparedRows(x)  # of its own, since the sums are changed
        with np.errstate(invalid="ignore", over="ignore"):
            total, length = rows.sums.normalized, rows.norms
            has = np.isfinite(length) & (length > 0)
            for i in np.flatnonzero(~has.all(axis=1)).tolist():
                u = x[i][has[i]].astype(np.float64)
                total[i] = (u / np.linalg.norm(u, axis=1, keepdims=True)).sum(axis=0)
        n = has.sum(axis=1).astype(np.float64)
        if over == "sentence":
            total /= np.maximum(n, 1)[:, None]
            n = np.minimum(n, 1)
        own.append(np.vecdot(total, total) if over == "sentence" else n)
        sizes.append(n)
        parts.append(total.astype(np.float32))  # of each sentence: a fraction of the layer that is in memory
        names.append(np.asarray(block.keys, np.int64))
    m, size, q = np.concatenate(parts), np.concatenate(sizes), np.concatenate(own)
    units, sentence = occurrences.units, np.concatenate(names)
    partners = size * (size.sum() - 1)
    if over == "sentence" and units.pair_group is not None:
        group = np.unique(units.pair_group[sentence], return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        first = np.searchsorted(group[order], np.arange(group.max() + 1))
        of_group = np.add.reduceat(m[order], first, axis=0, dtype=np.float64)
        q = np.vecdot(m, of_group[group])
        partners = size * (size.sum() - np.bincount(group, size)[group])
    where, s, n_pairs = units.of_sentence[sentence], m.sum(axis=0, dtype=np.float64), float(partners.sum())
    if n_pairs <= 0:
        return Level(float("nan"), np.full(units.n_blocks, np.nan), int(size.sum()))
    value = float((s @ s - q.sum()) / n_pairs)
    pairs = m @ s.astype(np.float32) - q - partners * value
    return Level(value, units.summed(where, 2 * pairs / n_pairs), int(size.sum()))
