"""The unit, sentence and word of each row of a store."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.dataset import Sentence

if TYPE_CHECKING:
    from ctxexp.vectors.store import Store


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
