"""Pieces meet words by character span, and each row of a store knows its unit, sentence and word.

A tokenizer says for each piece which characters of the text it covers; a corpus says the same of each word. A piece
belongs to every word that it shares a character with, which settles all the odd cases by one rule:

- a leading space in a piece's span (GPT-2, Llama) belongs to no word, so it changes nothing;
- byte-level pieces of one character all have that character's span: each belongs to its word;
- a piece that straddles two words counts for both;
- special tokens and pieces without characters (zero-width spans) belong to none;
- a word without a piece (a control character that the tokenizer drops) has no vector: it is left out of the units.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, EncodingError, UnknownName
from ctxexp.model import EncodedSentence

if TYPE_CHECKING:
    from ctxexp.vectors.store import Store

POOLINGS = ("mean", "first", "last", "pieces")


def overlaps(words: np.ndarray, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every (word, piece) that share a character, as two index arrays sorted by word, then piece.

    `words` (n, 2) and `pieces` (m, 2) are (start, end) in characters; word spans ascend and don't overlap, pieces may
    be in any order. One call may serve many sentences whose spans are shifted apart.

    Example:
        >>> word, piece = overlaps(np.array([[0, 2], [3, 6]]), np.array([[0, 1], [1, 2], [2, 6]]))
        >>> word.tolist(), piece.tolist()
        ([0, 0, 1], [0, 1, 2])
    """
    full = np.flatnonzero(words[:, 1] > words[:, 0])  # a word of no characters shares none
    starts, ends = words[full, 0], words[full, 1]
    first = np.searchsorted(ends, pieces[:, 0], side="right")
    after = np.searchsorted(starts, pieces[:, 1], side="left")
    n = np.where(pieces[:, 1] > pieces[:, 0], np.maximum(after - first, 0), 0)
    piece = np.repeat(np.arange(len(pieces)), n)
    within = np.arange(len(piece)) - np.repeat(np.cumsum(n) - n, n)
    word = full[np.repeat(first, n) + within] if len(piece) else np.empty(0, dtype=np.int64)
    order = np.argsort(word, kind="stable")
    return word[order], piece[order]


def reduce_pairs(pieces: np.ndarray, counts: np.ndarray, pooling: str) -> tuple[np.ndarray, np.ndarray]:
    """The pieces that `pooling` keeps: `pieces` hold `counts[i]` pieces of unit i in turn (each at least one)."""
    if pooling == "mean":
        return pieces, counts
    at = np.cumsum(counts) - (counts if pooling == "first" else 1)
    return pieces[at], np.ones_like(counts)


def pool(
    layers: np.ndarray, spans: Iterable[tuple[int, int]], sentence: Sentence, *, pooling: str = "mean"
) -> EncodedSentence:
    """The words' vectors of one sentence from its pieces' vectors: for encoders with their own tokenizer.

    `layers` is (n_layers, n_pieces, dim); `spans` has each piece's (start, end) in characters of `sentence.text`,
    (0, 0) for special tokens. `pooling` is `mean`, `first` or `last`. Words that no piece touches are left out.

    Example:
        >>> layers = np.array([[[1.0], [3.0], [5.0]]])  # one layer, three pieces: un, known, s
        >>> encoded = pool(layers, [(0, 2), (2, 7), (7, 8)], Sentence.of(["unknowns"]))
        >>> encoded.units, encoded.layers.tolist()
        (('unknowns',), [[[3.0]]])
    """
    check_pooling(pooling, POOLINGS[:3])
    at = np.array(list(spans), dtype=np.int64).reshape(-1, 2)
    if len(at) != layers.shape[1]:
        raise EncodingError(f"{len(at)} piece spans for {layers.shape[1]} piece vectors in {sentence.text[:60]!r}")
    word, piece = overlaps(np.array(sentence.spans, dtype=np.int64).reshape(-1, 2), at)
    counts = np.bincount(word, minlength=len(sentence))
    words = np.flatnonzero(counts)
    piece, counts = reduce_pairs(piece, counts[words], pooling)
    starts = np.cumsum(counts) - counts
    if len(words):
        sums = np.add.reduceat(layers[:, piece], starts, axis=1, dtype=np.float64)
        pooled = (sums / counts[:, None]).astype(layers.dtype)
    else:
        pooled = layers[:, :0]
    return EncodedSentence(tuple(sentence.words[i] for i in words), pooled)


def check_pooling(pooling: str, names: Sequence[str] = POOLINGS) -> None:
    """Raise `UnknownName` unless `pooling` is one of `names`."""
    if pooling not in names:
        raise UnknownName("pooling", pooling, names)


def windows(n: int, size: int, stride: int) -> np.ndarray:
    """Starts of windows of `size` pieces that together cover `n` (more than `size`) pieces; the last one ends at n.

    Example:
        >>> windows(10, 4, 2).tolist()
        [0, 2, 4, 6]
    """
    if not 0 < stride <= size:
        raise ConfigError(f"stride={stride}: expected 1 to {size}, the pieces that fit the model's window")
    starts = np.arange(0, n - size, stride)
    return np.append(starts, n - size)


def best_window(n: int, starts: np.ndarray, size: int, *, causal: bool) -> np.ndarray:
    """For each of `n` pieces the window that shows it the most context; the earlier one if two do equally.

    Context is the distance to the nearer edge of the window, where an edge that is the sentence's own cuts nothing;
    a causal model sees the left side alone.
    """
    piece = np.arange(n)
    first = np.searchsorted(starts, piece - size, side="right")  # the windows that hold a piece are neighbours
    last = np.searchsorted(starts, piece, side="right") - 1
    window = first[:, None] + np.arange(int((last - first).max()) + 1)  # (n, few)
    start = starts[np.minimum(window, len(starts) - 1)]
    left = np.where(start == 0, n, piece[:, None] - start)
    right = np.where(start + size == n, n, start + size - 1 - piece[:, None])
    context = left if causal else np.minimum(left, right)
    return np.asarray(first + np.argmax(np.where(window <= last[:, None], context, -1), axis=1))


class RowIndexBuilder:
    """Collects unit, word position and sentence of each row in stored order; counts words that got no unit."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self.codes, self.positions, self.offsets = array("i"), array("i"), array("q", [0])
        self.n_skipped, self.example = 0, ""

    def add(self, sentence: Sentence, units: Sequence[str], words: np.ndarray | None = None) -> np.ndarray | None:
        """Add a sentence's units; with `words` only those of the words of these numbers, and return
        the indices of their units."""
        if words is not None:
            return self._add(sentence, units, words)
        codes = self.vocabulary
        self.codes.extend([codes.setdefault(unit, len(codes)) for unit in units])
        self.offsets.append(self.offsets[-1] + len(units))
        if units is sentence.words or tuple(units) == sentence.words:
            self.positions.extend(range(len(units)))
            return None
        positions = _positions(units, sentence.words)
        self.positions.extend([-1] * len(units) if positions is None else positions)
        if positions is not None:
            self.n_skipped += len(sentence.words) - len(units)
            self.example = next(iter(Counter(sentence.words) - Counter(units)))
        return None

    def _add(self, sentence: Sentence, units: Sequence[str], words: np.ndarray) -> np.ndarray:
        own = tuple(units) == sentence.words
        positions = np.arange(len(units)) if own else np.array(_positions(units, sentence.words) or [-1] * len(units))
        indices = np.flatnonzero(np.isin(positions, words))
        self.codes.extend([self.vocabulary.setdefault(units[i], len(self.vocabulary)) for i in indices.tolist()])
        self.positions.extend(positions[indices].tolist())
        self.offsets.append(self.offsets[-1] + len(indices))
        if len(indices) < len(words):
            self.n_skipped += len(words) - len(indices)
            self.example = sentence.words[np.setdiff1d(words, positions)[0]]
        return indices

    def extend(self, store: Store) -> None:
        """Add all rows of a store, in its order."""
        codes = self.vocabulary
        new = np.array([codes.setdefault(unit, len(codes)) for unit in store.vocabulary], np.int32)
        self.codes.frombytes(new[store.unit_codes].astype(np.int32).tobytes())
        self.positions.frombytes(store.positions.astype(np.int32).tobytes())
        self.offsets.frombytes((self.offsets[-1] + store.offsets[1:]).astype(np.int64).tobytes())
        self.n_skipped, self.example = self.n_skipped + store.n_skipped, self.example or store.meta.get("example", "")

    def arrays(self) -> dict[str, np.ndarray]:
        """The row index as arrays by file name: `unit_codes`, `positions` (n_rows,) int32, `offsets` (n_sentences + 1,)
        int64."""
        return {
            "unit_codes": np.array(self.codes, np.int32),
            "positions": np.array(self.positions, np.int32),
            "offsets": np.array(self.offsets, np.int64),
        }


def _positions(units: Sequence[str], words: Sequence[str]) -> list[int] | None:
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
