"""Intervals: random draws, and how much each row moves a score. A stream for each kind of draw, so that none tells
anything of another, and the resamples of intervals.

Clusters are drawn with replacement (documents where the corpus has them, sentences that gold pairs link, or single
sentences), the same draws for every layer, measure and run of a corpus; gold pairs by groups that share a sentence,
or by sentences. (SciPy's bootstrap calls the statistic for every resample; here a replicate is a product with the
clusters' influence.)

A row's influence is the derivative of the score by the row's weight, scaled so that for n independent rows the sum of
the squares estimates the score's variance (the infinitesimal jackknife; Efron 1982). Influences sum to 0 over a group;
those of a cluster's rows (of a sentence, a document) add up to the cluster's. Groups (..., n, d) in, (..., n) float64
out, NaN where the score is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, unique

import numpy as np

from ctxexp.maths.geometry import Definition, PreparedRows, mean_cosine_to_mean, prepare
from ctxexp.maths.statistics import CHUNK, components, resamples

MOST = 2048  # blocks that clusters are resampled in: of more clusters several share one, which loses next to nothing
COUNTS = 2**21  # counts drawn at a time
MAX_LEFT_OUT = 8  # rows at most that `jackknife` leaves out, of a group whose score has no formula here
TERMS = 4  # of the series for how the first direction turns
Statistics = Callable[[np.ndarray], dict[str, np.ndarray]]
"""How often each pair counts (c, n) to each statistic's values (c,)."""


@dataclass(frozen=True)
class Clusters:
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

    def sum_by_block(self, blocks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n_blocks,) float64: the sum of the values of each block; NaN counts as 0."""
        return np.bincount(blocks.ravel(), np.nan_to_num(values).ravel(), minlength=self.n_blocks)


def blocks_of(clusters: np.ndarray) -> np.ndarray:
    """The block of each cluster, by its number."""
    return clusters % MOST


@unique
class Stream(IntEnum):
    """Kinds of draws, as in `default_rng([seed, Stream.TWINS])`. A number once given stays: results hang on it.

    Zero names nothing: `[seed, 0]` is the stream of the bare `seed`. 8 was k-means's beginnings.

    Example:
        >>> sample, twins = np.random.default_rng([0, Stream.SAMPLE]), np.random.default_rng([0, Stream.TWINS])
        >>> sample.random() == twins.random()
        False
    """

    BASELINE = 1  # the baseline's random groups
    SAMPLE = 2  # the sampled words or sentences of a measure with `sample`
    MATCHED = 3  # random groups of the measured groups' sizes
    RESAMPLE = 4  # bootstrap resamples behind the intervals of measures over words and sentences
    OWN = 5  # bootstrap resamples of metrics that make their own intervals: of pairs of sentences, of contextuality
    TWINS = 6  # groups' twins
    SHUFFLE = 7  # words in random places
    LABELS = 9  # permuted sense labels, a word each
    CLAIMS = 11  # curves as they might have come out, redrawn within their intervals where a run kept no replicates
    PARTS = 13  # the halves of a text


@dataclass(frozen=True)
class Curve:
    """A statistic in every layer, and the influence of each block of clusters on it: its sampling error, to first
    order.

    Example:
        >>> (Curve(np.array([0.5]), np.zeros((1, 2))) - Curve(np.array([0.25]), np.zeros((1, 2)))).value
        array([0.25])
    """

    value: np.ndarray  # (n_layers,)
    influence: np.ndarray  # (n_layers, n_blocks); a row of NaN: nothing is known of the error in that layer

    def __sub__(self, other: Curve) -> Curve:
        """The difference, its error with what both have in common taken out."""
        return Curve(self.value - other.value, self.influence - other.influence)


class Resamples:
    """Replicates of curves over the same draws of clusters.

    A replicate is the value plus each block's share as often as it was drawn more than once, less where it wasn't.
    Deviations are widened by sqrt(n / (n - 1)) and Student's factor, since few clusters spread too little.

    Example:
        >>> clusters = Clusters("sentence", 2, np.array([0, 1]), np.array([0, 1]))
        >>> resamples = Resamples(clusters, 3, np.random.default_rng(0))
        >>> resamples.of(Curve(np.array([0.5]), np.zeros((1, 2)))).tolist()
        [[0.5, 0.5, 0.5]]
    """

    def __init__(self, clusters: Clusters, replicates: int, rng: np.random.Generator) -> None:
        self.clusters = clusters
        drawn = [c - 1 for c in draw_counts(clusters.n_blocks, replicates, rng)]
        self._excess = np.concatenate([np.empty((0, clusters.n_blocks)), *drawn])
        self._wider = self.student(clusters.n) if clusters.n > 1 else np.nan

    @classmethod
    def of_clusters(cls, clusters: np.ndarray, replicates: int, rng: np.random.Generator) -> Resamples:
        """The resamples of rows that are drawn by clusters; `clusters` (n,) is the number of each row's."""
        distinct, number = np.unique(clusters, return_inverse=True)
        blocks = blocks_of(number)
        return cls(Clusters("cluster", len(distinct), blocks, blocks), replicates, rng)

    @staticmethod
    def student(n: int) -> float:
        """The factor by which a spread over n > 1 clusters is too small: Student's 97.5% quantile over the normal's,
        times sqrt(n / (n - 1)).

        The quantile by its expansion in 1 / df, 1.960 + 2.372 / df + 2.823 / df^2 + 2.556 / df^3: to 1% from 3 on.
        """
        df = n - 1
        quantile = 1.959964 + 2.372272 / df + 2.822501 / df**2 + 2.555850 / df**3
        return float(quantile / 1.959964 * np.sqrt(n / df))

    def by_block(self, influence: np.ndarray) -> np.ndarray:
        """(n_blocks,): the rows' influence (n,), summed over each block that is drawn as one, for a `Curve`."""
        return np.bincount(self.clusters.of_row, influence, minlength=self.clusters.n_blocks)

    def of(self, curve: Curve) -> np.ndarray:
        """(n_layers, replicates) float32."""
        moves = curve.influence.astype(np.float64) @ self._excess.T * self._wider
        return (curve.value[:, None] + moves).astype(np.float32)


def draw_counts(size: int, replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each of `size` things is drawn, `size` draws with replacement: (c, size) float64, c rows at a time. Its
    draws are of int32, others than those of `statistics.resamples`: results hang on both."""
    step = max(1, COUNTS // max(size, 1))
    for at in range(0, replicates, step):
        c = min(step, replicates - at)
        drawn = rng.integers(0, size, (c, size), dtype=np.int32)
        drawn += (np.arange(c, dtype=np.int32) * size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=c * size).reshape(c, size).astype(np.float64)


def interval(replicates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2.5% and 97.5% percentiles of (n_layers, r) over the last axis; NaN where fewer than two are defined.

    Example:
        >>> [end.round(1).tolist() for end in interval(np.arange(101.0)[None])]
        [[2.5], [97.5]]
    """
    defined = np.isfinite(replicates).sum(axis=1) > 1
    low, high = np.full((2, len(replicates)), np.nan)
    if defined.any():
        low[defined], high[defined] = np.nanpercentile(replicates[defined].astype(np.float64), [2.5, 97.5], axis=1)
    return low, high


def pair_groups(ends: np.ndarray) -> np.ndarray:
    """(n,) the number of each pair's group: pairs (n, 2) that sentences which they share link are in one."""
    _, code = np.unique(ends, return_inverse=True)
    code = code.reshape(ends.shape)
    return np.unique(components(code, ends.size)[code[:, 0]], return_inverse=True)[1]


def resampled_cluster(strata: Sequence[np.ndarray]) -> str:
    """The unit that is drawn of strata of pairs (n, 2): `pair` if none shares a sentence, `group of pairs` if some do,
    `sentence` if one group holds most pairs of a stratum."""
    groups = [pair_groups(ends) for ends in strata if len(ends)]
    if any(np.bincount(group).max() > max(1, len(group) / 2) for group in groups):
        return "sentence"
    return "pair" if all(group.max() + 1 == len(group) for group in groups) else "group of pairs"


def replicates_of(
    strata: Sequence[np.ndarray], replicates: int, rng: np.random.Generator, statistics: Statistics
) -> dict[str, np.ndarray]:
    """Each statistic's bootstrap replicates (r,) over strata of pairs, each (n, 2) sentence numbers.

    Groups of pairs that share a sentence are drawn whole, within their stratum. Where one group is most of a stratum,
    sentences are drawn, and a pair counts as often as both its ends together (the product). That counts the pairs' own
    noise three times, so that the spread is narrowed by what resampled pairs say of it, twice: sqrt(1 - 2 v_p / v), but
    never below theirs.
    """
    if resampled_cluster(strata) != "sentence":
        return _concatenate(_by_group(strata, replicates, rng), statistics)
    wide = _concatenate(_by_sentence(np.concatenate(strata), replicates, rng), statistics)
    alone = _concatenate(resamples([len(ends) for ends in strata], replicates, rng), statistics)
    return {name: _narrow(wide[name], alone[name]) for name in wide}


def _concatenate(draws: Iterator[np.ndarray], statistics: Statistics) -> dict[str, np.ndarray]:
    replicates = [statistics(counts) for counts in draws]
    return {name: np.concatenate([each[name] for each in replicates]) for name in (replicates[0] if replicates else ())}


def _by_group(strata: Sequence[np.ndarray], replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    groups = [pair_groups(ends) for ends in strata]
    sizes = [int(group.max(initial=-1)) + 1 for group in groups]
    starts = np.cumsum([0, *sizes])[:-1]
    where = np.concatenate([group + start for group, start in zip(groups, starts, strict=True)])
    for counts in resamples(sizes, replicates, rng):
        yield counts[:, where]


def _by_sentence(ends: np.ndarray, replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    _, code = np.unique(ends, return_inverse=True)
    a, b = code.reshape(ends.shape).T
    for counts in resamples([int(code.max()) + 1], replicates, rng):
        for at in range(0, len(counts), step := max(1, CHUNK // len(ends))):
            yield counts[at : at + step, a] * counts[at : at + step, b]


def _narrow(wide: np.ndarray, alone: np.ndarray) -> np.ndarray:
    defined = np.isfinite(wide)
    if defined.sum() < 2 or np.isfinite(alone).sum() < 2 or not (v := float(np.var(wide[defined]))) > 0:
        return wide
    pairs = float(np.nanvar(alone))
    scale = np.sqrt(max(v - 2 * pairs, pairs) / v)
    return np.nanmean(alone) + (wide - wide[defined].mean()) * scale


def mean_cosine_influence(x: np.ndarray | PreparedRows) -> np.ndarray:
    """Influences on the mean cosine over pairs: 2 (c_i - mean c) / (n - 2), c_i the row's mean cosine with the others.

    That is what leaving row i out changes it by; sqrt((n - 1) / n) makes it the jackknife's share. Of 2 rows, one pair,
    nothing can be left out: NaN.
    """
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 3:
        return np.full(rows.x.shape[:-1], np.nan)
    with_others = (_products(rows.x, rows.sums.normalized) / rows.norms - 1) / (n - 1)
    return _centre(with_others) * (2 / (n - 2) * np.sqrt((n - 1) / n))


def mean_cosine_to_mean_influence(x: np.ndarray | PreparedRows, *, unit_norm: bool = False) -> np.ndarray:
    """Influences on the mean cosine to the mean vector, f = R.U / (n |R|) with R the sum of the rows x_i and U that of
    the u_i: (x_i.U / |R| + u_i.R / |R|) / n - f x_i.R / |R|^2, about its mean; with `unit_norm` u_i for x_i."""
    rows = prepare(x)
    n = rows.x.shape[-2]
    if n < 2:
        return np.full(rows.x.shape[:-1], np.nan)
    sums, length = rows.sums, rows.norms
    r = sums.normalized if unit_norm else sums.total
    size = np.sqrt(np.vecdot(r, r))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        on_r = _products(rows.x, r) / size  # x_i.R / |R|
        of_normalized = on_r / length
        of_row = _products(rows.x, sums.normalized) / (length if unit_norm else 1.0) / size
        on_mean = of_normalized if unit_norm else on_r
        f = mean_cosine_to_mean(rows, unit_norm=unit_norm)[..., None]
        influence = (of_row + of_normalized) / n - f * on_mean / size
    return _centre(influence) * np.sqrt(n / (n - 1))


def explained_variance_influence(x: np.ndarray | PreparedRows, *, definition: Definition = "uncentred") -> np.ndarray:
    """Influences on the share of variance along one direction: ((v.x_i)^2 - share |x_i|^2) / sum |x_j|^2, v held fixed.

    v is the first direction of the uncentred or centred rows: it maximises the share, so that its own change has no
    effect to first order. With the definition "released" (that of the paper's released code, see
    `ctxexp.maths.geometry.explained_variance`) v maximises another quantity than the share, so that its change counts
    too (`_turning`).
    """
    rows = prepare(x)
    *shape, n, d = rows.x.shape
    if n < 2 or d == 0:
        return np.full((*shape, n), np.nan)
    spread = rows.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        if definition == "uncentred":
            value, projections, _ = spread.raw_direction
            squares, total = rows.norms**2, spread.total
            influence = projections**2 - (value / total)[:, None] * squares
        elif definition == "centred":
            value, projections, _ = spread.centred_direction
            total = spread.centred
            influence = projections**2 - (value / total)[:, None] * spread.squares
        else:
            value, projections, variance = spread.raw_direction
            total = spread.centred
            mean = projections.mean(axis=1, keepdims=True)
            influence = (projections - mean) ** 2 - (variance / total)[:, None] * spread.squares
            influence += _turning(rows.x, value, projections, rows.row_sum)
        return _centre(influence / total[:, None]) * np.sqrt(n / (n - 1))


def _turning(x: np.ndarray, value: np.ndarray, projections: np.ndarray, row_sum: np.ndarray) -> np.ndarray:
    """The effect of a row's weight on |C v|^2 by turning v: -2 (v.s)(s.dv_i) / n with s the sum of the rows, (w, n).

    dv_i = (v.x_i) (value - X'X)^+ x_i; the inverse by the first TERMS of its series, whose ratio is that of the second
    eigenvalue to the first.
    """
    n = x.shape[-2]
    v = np.matmul(projections[:, None].astype(x.dtype), x)[:, 0].astype(np.float64) / value[:, None]
    along = np.vecdot(v, row_sum)[:, None]
    rest = row_sum - along * v  # (w, d): the part of the sum across v
    total = np.zeros_like(projections)
    for term in range(TERMS):
        step = _products(x, rest) / value[:, None]
        total += step
        if term + 1 < TERMS:
            rest = np.matmul(step[:, None].astype(x.dtype), x)[:, 0].astype(np.float64)
            rest -= np.vecdot(v, rest)[:, None] * v
    return -2 * along * projections * total / n


def jackknife(x: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Influences on any score, by leaving rows out one at a time; 0 for a row that isn't tried.

    Of more than MAX_LEFT_OUT rows, so many evenly spaced ones are tried, and their influences scaled to n rows: the
    variance is right on average, but the covariance of groups that share a cluster, such as a sentence, is
    underestimated.
    """
    n = x.shape[-2]
    if n < 3:
        return np.full(x.shape[:-1], np.nan)
    which = np.linspace(0, n - 1, min(n, MAX_LEFT_OUT)).round().astype(int)  # all of at most MAX_LEFT_OUT
    rest = np.stack([np.asarray(score(np.delete(x, i, axis=-2)), np.float64) for i in which.tolist()], axis=-1)
    result = np.zeros(x.shape[:-1])
    result[..., which] = -_centre(rest) * np.sqrt((n - 1) / n * n / len(which))
    return result


def _products(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """x_i.v of each row: (..., n) float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.matmul(x, v[..., None].astype(x.dtype))[..., 0].astype(np.float64)


def _centre(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=-1, keepdims=True)
