"""The clusters that the bootstrap resamples (documents where the corpus has them, sentences that gold pairs link, or
single sentences) and the replicates of curves: clusters drawn with replacement, the same draws for every layer, measure
and run of a corpus.

(SciPy's bootstrap calls the statistic for every resample; here a replicate is a product with the clusters' influence.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus

MOST = 2048  # blocks that units are resampled in: of more units several share one, which loses next to nothing
CHUNK = 2**21  # counts drawn at a time


@dataclass(frozen=True)
class Units:
    """The clusters of a corpus that the bootstrap resamples. Occurrences of one cluster are drawn together; clusters
    are taken for independent. Of more than `MOST` clusters several share one block, which is drawn as one.

    A sentence that the corpus repeats is one cluster, and belongs to the document where it first stands.
    """

    name: str  # `document`, `group of paired sentences` or `sentence`
    n: int
    of_sentence: np.ndarray  # (n_sentences,) the block of each sentence of the corpus, below n_blocks
    of_row: np.ndarray  # (n_rows,) that of each store row; -1: not measured
    pair_group: np.ndarray | None = None  # (n_sentences,) the group of each sentence, where gold pairs make them

    @property
    def n_blocks(self) -> int:
        return min(self.n, MOST)

    def summed(self, blocks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n_blocks,) float64: the sum of the values of each block; NaN counts as 0."""
        return np.bincount(blocks.ravel(), np.nan_to_num(values).ravel(), minlength=self.n_blocks)


def units_of(corpus: Corpus, place: np.ndarray, rows: np.ndarray, sentence: np.ndarray, n_rows: int) -> Units:
    """`place` (n_sentences,): where each sentence first stands; `rows`, `sentence`: of the measured occurrences."""
    related = None if corpus.clusters is None else np.asarray(corpus.clusters, np.int64)
    first = place if related is None else related[place]
    is_paired = related is not None and corpus.documents is None
    name = "sentence" if related is None else "group of paired sentences" if is_paired else "document"
    clusters, number = np.unique(first, return_inverse=True)
    of_sentence = number % MOST
    of_row = np.full(n_rows, -1, np.int64)
    of_row[rows[::-1]] = of_sentence[sentence[::-1]]
    return Units(name, len(clusters), of_sentence, of_row, first if is_paired else None)


@dataclass(frozen=True)
class Curve:
    """A statistic in every layer, and the influence of each block of units on it: its sampling error, to first
    order."""

    value: np.ndarray  # (n_layers,)
    influence: np.ndarray  # (n_layers, n_blocks); a row of NaN: nothing is known of the error in that layer

    def __sub__(self, other: Curve) -> Curve:
        """The difference, its error with what both have in common taken out."""
        return Curve(self.value - other.value, self.influence - other.influence)


class Resamples:
    """Replicates of curves over the same draws of units.

    A replicate is the value plus each block's share as often as it was drawn more than once, less where it wasn't.
    Deviations are widened by sqrt(n / (n - 1)) and Student's factor, since few units spread too little.
    """

    def __init__(self, units: Units, replicates: int, rng: np.random.Generator) -> None:
        drawn = [c - 1 for c in counts(units.n_blocks, replicates, rng)]
        self._excess = np.concatenate([np.empty((0, units.n_blocks)), *drawn])
        self._wider = student(units.n) if units.n > 1 else np.nan

    def of(self, curve: Curve) -> np.ndarray:
        """(n_layers, replicates) float32."""
        moves = curve.influence.astype(np.float64) @ self._excess.T * self._wider
        result: np.ndarray = (curve.value[:, None] + moves).astype(np.float32)
        return result


def student(n: int) -> float:
    """The factor by which a spread over n > 1 clusters is too small: Student's 97.5% quantile over the normal's, times
    sqrt(n / (n - 1)).

    The quantile by its expansion in 1 / df, 1.960 + 2.372 / df + 2.823 / df^2 + 2.556 / df^3: exact to 1% from 3 on.
    """
    df = n - 1
    quantile = 1.959964 + 2.372272 / df + 2.822501 / df**2 + 2.555850 / df**3
    return float(quantile / 1.959964 * np.sqrt(n / df))


def counts(size: int, replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each of `size` things is drawn, `size` draws with replacement: (c, size) float64, c rows at a time."""
    step = max(1, CHUNK // max(size, 1))
    for at in range(0, replicates, step):
        c = min(step, replicates - at)
        drawn = rng.integers(0, size, (c, size), dtype=np.int32)
        drawn += (np.arange(c, dtype=np.int32) * size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=c * size).reshape(c, size).astype(np.float64)


def interval(replicates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2.5% and 97.5% percentiles of (n_layers, r) over the last axis; NaN where fewer than two are defined."""
    defined = np.isfinite(replicates).sum(axis=1) > 1
    low, high = np.full((2, len(replicates)), np.nan)
    if defined.any():
        low[defined], high[defined] = np.nanpercentile(replicates[defined].astype(np.float64), [2.5, 97.5], axis=1)
    return low, high
