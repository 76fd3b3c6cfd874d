"""Scores summed up: mean, median, spread and count, of equal or unequal weights; correlations of paired values, exact
and in bootstrap resamples; clusters of rows; and the reference mix of words (`WordMix`): weights with which a mean over
words doesn't depend on the amount of text.

In each resample ranks are made anew, without a loop. Clusters are those of k-means, scikit-learn's, the same on any
number of processors; or of what is linked in pairs.

Of the mix: the more text, the more rare words reach `min_contexts`, and rare words differ from frequent ones. So words
are put in bands of relative frequency, and the mean is that of the bands' means. A word's frequency is known by its
count alone, and what stands near an edge came there by chance as often as by its frequency. Both are corrected as
errors in a variable are (regression calibration; Carroll et al. 2006, "Measurement Error in Nonlinear Models", chapter
4): a word counts in each band by the probability that its frequency lies there, and the scores are moved along their
regression on the logarithm of the frequency from where the word's frequency is expected to where it is expected within
the band.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from ctxexp.errors import ConfigError

CHUNK = 2**18  # counts held at a time: about a core's second-level cache
LEAST = 3  # pairs behind a rank correlation: of two it is always 1 or -1, whatever they are


def aggregate(scores: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """`summary` of the defined scores (groups,), and `undefined`, the number of the others."""
    defined = np.isfinite(scores)
    statistics = summary(scores[defined], None if weights is None else weights[defined])
    return {**statistics, "undefined": float(np.count_nonzero(~defined))}


def summary(values: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """The statistics `raw`, median, sd (ddof 1) and n of finite values, bitwise independent of their order.

    `raw` is the mean, called so in results since it is the value before a baseline is subtracted. With `weights`: the
    weighted mean, the lower weighted median, and the standard deviation about the weighted mean.
    """
    order = np.argsort(values, kind="stable") if weights is not None else None
    ordered = np.sort(values) if order is None else values[order]
    n = ordered.size
    if not n:
        return {"raw": float("nan"), "median": float("nan"), "sd": float("nan"), "n": 0.0}
    if order is None or weights is None:
        raw, median, sd = ordered.mean(), np.median(ordered), ordered.std(ddof=1) if n > 1 else np.nan
    else:
        share = weights[order] / weights.sum()
        raw = share @ ordered
        positive = np.cumsum(np.maximum(share, 0.0))
        median = ordered[np.searchsorted(positive, positive[-1] / 2)]
        sd = np.sqrt(max(share @ (ordered - raw) ** 2, 0.0) * n / (n - 1)) if n > 1 else np.nan
    return {"raw": float(raw), "median": float(median), "sd": float(sd), "n": float(n)}


def finite_mean(values: np.ndarray, weights: np.ndarray | None = None, axis: int = 0) -> np.ndarray:
    """The mean over an axis of the finite values, NaN where there is none; `weights` broadcast to the values.

    Example:
        >>> finite_mean(np.array([1.0, np.nan, 3.0])).item()
        2.0
    """
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(finite, values, 0)
        if weights is None:
            return total.sum(axis) / finite.sum(axis)
        return (weights * total).sum(axis) / (weights * finite).sum(axis)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of x (n,) and y (n,), in [-1, 1]; NaN if either is constant or n < 2."""
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return float("nan")
    a, b = np.asarray(x, np.float64) - np.mean(x, dtype=np.float64), np.asarray(y, np.float64)
    b = b - b.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # so that the squares of tiny values don't vanish
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of x (n,) and y (n,), in [-1, 1]; tied values share their average rank.

    NaN if either is constant, or with fewer than LEAST pairs.

    Example:
        >>> round(spearman(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])), 3)
        0.5
    """
    return pearson(midranks(x), midranks(y)) if len(x) >= LEAST else float("nan")


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`spearman` of each row of x (m, n) with that of y (m, n), or with y (n,): (m,)."""
    n = x.shape[1]
    a, b = (_row_ranks(values) - (n + 1) / 2 for values in (x, y))
    scale = np.sqrt((a * a).sum(1) * (b * b).sum(-1))
    scale = np.where((scale > 0) & (n >= LEAST), scale, np.nan)
    return np.asarray(np.clip((a * b).sum(1) / scale, -1.0, 1.0))


def _row_ranks(x: np.ndarray) -> np.ndarray:
    """`midranks` of each row of x (..., n); NaN in a row that has any."""
    order = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, order, axis=-1)
    if (ordered[..., 1:] > ordered[..., :-1]).all():  # neither ties nor NaN
        ranks = np.empty(x.shape)
        np.put_along_axis(ranks, order, np.arange(1.0, x.shape[-1] + 1), axis=-1)
        return ranks
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, axis=-1))


def partial_correlation(xy: np.ndarray | float, xz: np.ndarray | float, yz: np.ndarray | float) -> np.ndarray:
    """The first-order partial correlation of x and y given z, of their three correlations; NaN where z explains all.

    Example:
        >>> partial_correlation(0.5, 0.5, 0.5).round(3).item()
        0.333
    """
    left = (1 - np.square(xz)) * (1 - np.square(yz))
    left = np.where(left > 1e-12, left, np.nan)
    return np.clip((np.asarray(xy) - np.multiply(xz, yz)) / np.sqrt(left), -1.0, 1.0)


def midranks(x: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Ranks from 1, tied values their average: (n,) float64.

    With `counts` (c, n), how often each value is drawn in c resamples: (c, n), the ranks in each resample of its
    members (the value of those that aren't drawn means nothing).

    Example:
        >>> midranks(np.array([10.0, 30.0, 10.0]))
        array([1.5, 3. , 1.5])
    """
    n = len(x)
    order = np.argsort(x, kind="stable")
    ordered = np.asarray(x)[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if n else np.zeros(0, int)
    weights = np.ones((1, n)) if counts is None else np.asarray(counts, np.float64)[:, order]
    if len(begins) == n:
        upto = np.cumsum(weights, axis=1)
        ranks = upto - (weights - 1) / 2
    else:
        tied = np.add.reduceat(weights, begins, axis=1)
        upto = np.cumsum(tied, axis=1)
        ranks = np.repeat(upto - (tied - 1) / 2, np.diff([*begins, n]), axis=1)
    result = np.empty_like(weights)
    result[:, order] = ranks
    return result[0] if counts is None else result


def resampled_spearman(columns: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Spearman's correlations of k columns, each (n,), in resamples given by counts (c, n): (c, k, k).

    NaN where a column is constant in a resample, or fewer than LEAST are drawn.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> resampled_spearman([x, -x], np.ones((1, 3))).round(3).tolist()
        [[[1.0, -1.0], [-1.0, 1.0]]]
    """
    total = counts.sum(axis=1, keepdims=True)
    ranks = [midranks(x, counts) - (total + 1) / 2 for x in columns]  # the mean rank is known: centred exactly
    k = len(ranks)
    result = np.empty((len(counts), k, k))
    spread = []
    for i, a in enumerate(ranks):
        a_by_count = a * counts
        for j in range(i + 1):
            result[:, i, j] = result[:, j, i] = np.einsum("cn,cn->c", a_by_count, ranks[j])
        spread.append(np.sqrt(result[:, i, i]))
    scale = np.stack(spread, axis=1)
    scale[(scale == 0) | (total < LEAST)] = np.nan
    return np.clip(result / scale[:, :, None] / scale[:, None, :], -1.0, 1.0)


def resamples(sizes: Sequence[int], replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each thing is drawn, with replacement within its stratum: (c, sum of sizes) float64, c rows at a time.

    Stratum s holds the next `sizes[s]` things, of which as many are drawn.

    Example:
        >>> [counts.sum(axis=1).tolist() for counts in resamples([3], 2, np.random.default_rng(0))]
        [[3.0, 3.0]]
    """
    n = sum(sizes)
    starts = np.cumsum([0, *sizes])[:-1]
    step = max(1, CHUNK // max(n, 1))
    for at in range(0, replicates if n else 0, step):
        c = min(step, replicates - at)
        draws = [rng.integers(0, size, (c, size)) + start for start, size in zip(starts, sizes, strict=True) if size]
        flat = np.concatenate(draws, axis=1) + (np.arange(c) * n)[:, None]
        yield np.bincount(flat.ravel(), minlength=c * n).reshape(c, n).astype(np.float64)


def percentiles(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of replicates (r,); NaN where fewer than two are defined.

    Example:
        >>> percentiles(np.arange(101.0))
        (2.5, 97.5)
    """
    defined = values[np.isfinite(values)]
    if len(defined) < 2:
        return float("nan"), float("nan")
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)


def kmeans(x: np.ndarray, k: int, *, seed: int, starts: int = 1, rounds: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Cluster of each row of x (n, d), 0 to at most k - 1, none empty: (n,); and their centres (c, d).

    Lloyd's algorithm from `starts` k-means++ beginnings, the one of least inertia, until no row changes its cluster or
    for so many `rounds`. Fewer than k clusters where there are fewer different rows.

    Example:
        >>> kmeans(np.array([[0.0], [0.1], [9.0], [9.1]]), 2, seed=0)
        (array([1, 1, 0, 0], dtype=int32), array([[9.05],
               [0.05]]))
    """
    from sklearn.cluster import KMeans

    if len(np.unique((x**2).sum(axis=1))) < k:  # else there are k different rows, and no need to look for equal ones
        k = min(k, len(np.unique(x, axis=0)))
    with _libraries().limit(limits=1):  # several threads add up in whatever order they end
        model = KMeans(k, n_init=starts, max_iter=rounds, tol=0, random_state=seed).fit(x)
    return model.labels_, model.cluster_centers_


def components(links: np.ndarray, n: int) -> np.ndarray:
    """The component of each of n things that links (k, 2) between them make, 0 to at most n - 1: (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(coo_array((np.ones(len(links)), links.T), (n, n)), directed=False)[1]


@cache
def _libraries() -> Any:
    """The thread pools of the libraries that scikit-learn has loaded: looking for them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


Weights = Literal["bands", "equal", "occurrences"]
BANDS = (1 / 3000, 1 / 1000, 1 / 300, 1.0)
MIN_WORDS = 10  # that a band needs
_GRID = np.linspace(np.log(1e-7), 0.0, 2048)  # logarithms of frequencies


class _Posterior(NamedTuple):
    """A word's frequency given its count, a column a word."""

    share: np.ndarray  # (bands, words) the probability that it lies in the band
    inside: np.ndarray  # (bands, words) the expectation of its logarithm where it does, times that probability
    mean: np.ndarray  # (words,) the expectation of its logarithm


class CountInfluence(NamedTuple):
    """The derivative of a mean over words by counts."""

    of_word: np.ndarray  # (words,) by that of the word
    of_any: float  # by that of all words together


@dataclass(frozen=True, kw_only=True)
class WordMix:
    """The weights of words in a mean over them.

    `weights`: `bands` (the mean of the means of bands of relative frequency, of equal weight), `equal` (each word the
    same) or `occurrences` (each as often as it occurs). `bands`: their edges, ascending.
    """

    weights: Weights = "bands"
    bands: Sequence[float] = BANDS

    def __post_init__(self) -> None:
        edges = list(self.bands)
        if len(edges) < 2 or not all(0 < a < b <= 1 for a, b in pairwise(edges)):
            raise ConfigError(
                f"words.bands={edges}: expected two or more relative frequencies in ascending order, above 0 and at "
                "most 1, such as [0.001,0.01,1]"
            )

    def words_wanted(self, counts: np.ndarray, contexts: np.ndarray, total: int, min_contexts: int) -> int:
        """By how many words, about, a text of `total` would have to be longer to fill each band, as it would if the
        words of each had so many contexts more; `counts` and `contexts` (words,) are of all its words."""
        frequency, wanted = counts / max(total, 1), 0
        for low, high in pairwise(self.bands):
            best = np.sort(contexts[(frequency >= low) & (frequency <= high)])[::-1]
            if len(best) < MIN_WORDS:
                wanted = max(wanted, round(min_contexts / low) - total, total)
            else:
                wanted = max(wanted, total * min_contexts // int(best[MIN_WORDS - 1]) - total)
        return wanted if self.weights == "bands" else 0

    def of(self, counts: np.ndarray, total: int) -> MixedWords:
        """The words' weights.

        Args:
            counts: Each word's occurrences in the text, (words,).
            total: The occurrences of all words of the text, those with too few contexts too.
        """
        return MixedWords(self, counts, total)


@dataclass(frozen=True, eq=False)
class MixedWords:
    """The weights of some words of a text."""

    mix: WordMix
    counts: np.ndarray  # (words,)
    total: int

    @cached_property
    def words_in_bands(self) -> np.ndarray:
        """(bands,) how many of the words have their relative frequency there."""
        edges = np.append(self.mix.bands[:-1], np.nextafter(self.mix.bands[-1], 2))
        return np.histogram(self.counts / max(self.total, 1), edges)[0]

    @property
    def filled(self) -> np.ndarray:
        """(bands,) bool: whether the band has words enough."""
        return self.words_in_bands >= MIN_WORDS

    @property
    def is_banded(self) -> bool:
        """Whether bands weigh: where no band is filled, words weigh the same."""
        return self.mix.weights == "bands" and bool(self.filled.any())

    def weights(self, defined: np.ndarray) -> np.ndarray | None:
        """The weights (words,) of the words that have a score, 0 elsewhere; they add up to 1. None: equal."""
        if self.mix.weights == "occurrences":
            occurrences: np.ndarray = np.where(defined, self.counts, 0.0)
            return occurrences / max(occurrences.sum(), 1.0)
        if not self.is_banded:
            return None
        p = self._posterior
        share = p.share * defined
        total = _divisor(share)
        deviation = p.mean - (share @ p.mean / total[:, 0])[:, None]
        gap = (p.inside * defined).sum(axis=1) - share @ p.mean
        spread = _divisor(share * deviation**2)
        return ((share + share * deviation * gap[:, None] / spread) / total).mean(axis=0)

    def count_influence(self, scores: np.ndarray) -> CountInfluence:
        """The derivatives of the mean of scores (words,), NaN where undefined, by the counts that the weights depend
        on. Of equal weights 0: which words are measured is taken as given."""
        defined = np.isfinite(scores)
        s = np.where(defined, scores, 0.0)
        if self.mix.weights == "occurrences":
            total = max(float((self.counts * defined).sum()), 1.0)
            mean = float(self.counts @ s) / total
            return CountInfluence(np.where(defined, s - mean, 0.0) / total, 0.0)
        if not self.is_banded:
            return CountInfluence(np.zeros(len(s)), 0.0)
        of_word = self._derivative(defined, s, self._by_count)
        return CountInfluence(of_word, float(self._derivative(defined, s, self._by_total).sum()))

    def _derivative(self, defined: np.ndarray, s: np.ndarray, change: _Posterior) -> np.ndarray:
        """(words,): that of the mean where each word's posterior changes so; the mean of band b is
        mean(s) + slope * gap, with share as weights."""
        p = self._posterior
        share, d_share, d_inside = p.share * defined, change.share * defined, change.inside * defined
        total = _divisor(share)
        centre, level = (share @ p.mean)[:, None] / total, (share @ s)[:, None] / total
        deviation = p.mean - centre
        spread = _divisor(share * deviation**2)
        slope = ((share * deviation) @ s)[:, None] / spread
        gap = ((p.inside * defined).sum(axis=1) - share @ p.mean)[:, None] / total
        rest = s - level - slope * deviation
        of_mean = d_share * (s - level - slope * gap) + slope * (d_inside - d_share * p.mean - share * change.mean)
        of_slope = (d_share * deviation + share * change.mean) * rest - share * deviation * slope * change.mean
        return (of_mean / total + gap * of_slope / spread).mean(axis=0)

    @cached_property
    def _posterior(self) -> _Posterior:
        return self._posterior_of(self.counts, self.total)

    @cached_property
    def _by_count(self) -> _Posterior:
        """The derivative of the posterior by the word's count."""
        more, less = (self._posterior_of(self.counts + step, self.total) for step in (0.5, -0.5))
        return _Posterior(*(b - a for a, b in zip(less, more, strict=True)))

    @cached_property
    def _by_total(self) -> _Posterior:
        """The derivative of the posterior by the number of all words."""
        more, less = (self._posterior_of(self.counts, self.total * factor) for factor in (1.01, 0.99))
        return _Posterior(*((b - a) / (0.02 * self.total) for a, b in zip(less, more, strict=True)))

    def _posterior_of(self, counts: np.ndarray, total: float) -> _Posterior:
        """Given a count c of n words, of a Poisson count and Zipf's law (words of frequency p in number as 1 / p^2):
        the density p^(c - 2) exp(-n p), in log p p^(c - 1) exp(-n p)."""
        edges, filled = np.log(self.mix.bands), np.flatnonzero(self.filled)
        kinds, of_word = np.unique(counts, return_inverse=True)
        density = (kinds[:, None] - 1.0) * _GRID - total * np.exp(_GRID)
        density = np.exp(density - density.max(axis=1, keepdims=True))
        density /= density.sum(axis=1, keepdims=True)
        bands = [(edges[i] <= _GRID) & (edges[i + 1] + (i + 2 == len(edges)) > _GRID) for i in filled.tolist()]
        share = np.stack([density[:, band].sum(axis=1) for band in bands])
        inside = np.stack([density[:, band] @ _GRID[band] for band in bands])
        return _Posterior(share[:, of_word], inside[:, of_word], (density @ _GRID)[of_word])


def _divisor(values: np.ndarray) -> np.ndarray:
    """(bands, 1): the sums, never 0."""
    return np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
