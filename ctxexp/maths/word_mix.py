"""The reference mix of words (`WordMix`): weights with which a mean over words doesn't depend on the amount of text.

The more text, the more rare words reach `min_contexts`, and rare words differ from frequent ones. So words are put in
bands of relative frequency, and the mean is that of the bands' means. A word's frequency is known by its count alone,
and what stands near an edge came there by chance as often as by its frequency. Both are corrected as errors in a
variable are (regression calibration; Carroll et al. 2006, "Measurement Error in Nonlinear Models", chapter 4): a word
counts in each band by the probability that its frequency lies there, and the scores are moved along their regression on
the logarithm of the frequency from where the word's frequency is expected to where it is expected within the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import ConfigError
from ctxexp.maths.statistics import aggregate

Weights = Literal["bands", "equal", "occurrences"]
BANDS = (1 / 3000, 1 / 1000, 1 / 300, 1.0)
MIN_WORDS = 10  # that a band needs
LEAST_SHARE = 0.01  # of a word in a band
_GRID = np.linspace(np.log(1e-7), 0.0, 2048)  # logarithms of frequencies


class _Posterior(NamedTuple):
    """A word's frequency given its count, a column a word."""

    share: np.ndarray  # (bands, words) the probability that it lies in the band
    inside: np.ndarray  # (bands, words) the expectation of its logarithm where it does, times that probability
    mean: np.ndarray  # (words,) the expectation of its logarithm


class CountInfluence(NamedTuple):
    """The derivative of a mean over words by counts."""

    of_word: np.ndarray  # (words,) by that of the word
    of_total: float  # by that of all words together


class BandInfluence(NamedTuple):
    """The same of a quantity of each band."""

    of_word: np.ndarray  # (bands, words)
    of_total: np.ndarray  # (bands,)


@dataclass(frozen=True, kw_only=True)
class WordMix:
    """The weights of words in a mean over them.

    `weights`: `bands` (the mean of the means of bands of relative frequency, of equal weight), `equal` (each word the
    same) or `occurrences` (each as often as it occurs). `bands`: their edges, ascending. `among`: which of the bands
    count, so that two texts are compared by those that both fill; None: all.
    """

    weights: Weights = "bands"
    bands: Sequence[float] = BANDS
    among: np.ndarray | None = None  # (bands,) bool

    def __post_init__(self) -> None:
        edges = list(self.bands)
        if len(edges) < 2 or not all(0 < a < b <= 1 for a, b in pairwise(edges)):
            raise ConfigError(
                f"words.bands={edges}: expected two or more relative frequencies in ascending order, above 0 and at "
                "most 1, such as [0.001,0.01,1]"
            )

    def missing_words(self, counts: np.ndarray, contexts: np.ndarray, total: int, min_contexts: int) -> int:
        """About how many more words of text it takes until each band has `MIN_WORDS` words with `min_contexts`
        contexts, 0 if none. `counts` and `contexts` (words,) are of all words of the text, which has `total` in all."""
        frequency, wanted = counts / max(total, 1), 0
        for low, high in pairwise(self.bands):
            best = np.sort(contexts[(frequency >= low) & (frequency <= high)])[::-1]
            if len(best) < MIN_WORDS:
                wanted = max(wanted, round(min_contexts / low) - total, total)
            else:
                wanted = max(wanted, total * min_contexts // int(best[MIN_WORDS - 1]) - total)
        return wanted if self.weights == "bands" else 0

    def of(self, counts: np.ndarray, total: int, least: int = 0) -> MixedWords:
        """The words' weights.

        Args:
            counts: Each word's occurrences in the text, (words,).
            total: The occurrences of all words of the text, those with too few contexts too.
            least: A band counts only where words of its middle frequency occur so often: with its most frequent words
                alone the others' values would be extrapolated.
        """
        return MixedWords(self, counts, total, least)


@dataclass(frozen=True, eq=False)
class MixedWords:
    """The weights of some words of a text."""

    mix: WordMix
    counts: np.ndarray  # (words,)
    total: int
    least: int = 0

    @cached_property
    def words_in_bands(self) -> np.ndarray:
        """(bands,) how many of the words have their relative frequency there."""
        edges = np.append(self.mix.bands[:-1], np.nextafter(self.mix.bands[-1], 2))
        return np.histogram(self.counts / max(self.total, 1), edges)[0]

    @property
    def filled(self) -> np.ndarray:
        """(bands,) bool: whether the band has words enough."""
        middle = np.sqrt(np.multiply(self.mix.bands[:-1], self.mix.bands[1:]))
        is_filled = (self.words_in_bands >= MIN_WORDS) & (self.total * middle >= self.least)
        return is_filled if self.mix.among is None else is_filled & self.mix.among

    @property
    def is_banded(self) -> bool:
        """Whether bands weigh: where no band is filled, words weigh the same."""
        return self.mix.weights == "bands" and bool(self.filled.any())

    def weights(self, defined: np.ndarray) -> np.ndarray | None:
        """The weights (words,) of the words that have a score, 0 elsewhere; they add up to 1. None: equal."""
        if self.mix.weights == "occurrences":
            occurrences: np.ndarray = np.where(defined, self.counts, 0.0)
            return occurrences / max(occurrences.sum(), 1.0)
        return self.by_band(defined).mean(axis=0) if self.is_banded else None

    def aggregate(self, scores: np.ndarray) -> dict[str, float]:
        """The statistics of the words' scores (words,), NaN where undefined."""
        return aggregate(scores, self.weights(np.isfinite(scores)))

    def by_band(self, defined: np.ndarray) -> np.ndarray:
        """(bands, words): the weights in the mean of each filled band; one row where bands don't weigh."""
        if not self.is_banded:
            every = self.weights(defined)
            return (defined / max(defined.sum(), 1) if every is None else every)[None]
        p = self._posterior
        share = p.share * defined
        total = _divisor(share)
        deviation = p.mean - (share @ p.mean / total[:, 0])[:, None]
        gap = (p.inside * defined).sum(axis=1) - share @ p.mean
        spread = _divisor(share * deviation**2)
        return (share + share * deviation * gap[:, None] / spread) / total

    def shares(self, defined: np.ndarray) -> np.ndarray:
        """(bands, words): the probability that a word's frequency lies in each filled band; one row where bands don't
        weigh, its weight. What is next to nothing is 0."""
        if not self.is_banded:
            return self.by_band(defined)
        return np.where(self._posterior.share > LEAST_SHARE, self._posterior.share, 0.0) * defined

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
        change = self.band_influence(defined, s)
        return CountInfluence(change.of_word.mean(axis=0), float(change.of_total.mean()))

    def band_influence(
        self, defined: np.ndarray, of_weights: np.ndarray, of_shares: float | np.ndarray = 0.0
    ) -> BandInfluence:
        """The derivatives of a quantity of each band by counts, given those by the words' weights (`by_band`) and
        `shares` there, each (words,) or (bands, words)."""
        if not self.is_banded:
            return BandInfluence(np.zeros((1, len(defined))), np.zeros(1))
        of_word, of_total = (
            self._derivative(defined, of_weights, change) + change.share * (self.shares(defined) > 0) * of_shares
            for change in (self._by_count, self._by_total)
        )
        return BandInfluence(of_word, of_total.sum(axis=1))

    def _derivative(self, defined: np.ndarray, s: np.ndarray, change: _Posterior) -> np.ndarray:
        """(bands, words): that of each band's mean where each word's posterior changes so; the mean of band b is
        mean(s) + slope * gap, with share as weights."""
        p = self._posterior
        share, d_share, d_inside = p.share * defined, change.share * defined, change.inside * defined
        total = _divisor(share)
        centre, level = (share @ p.mean)[:, None] / total, (share * s).sum(axis=1, keepdims=True) / total
        deviation = p.mean - centre
        spread = _divisor(share * deviation**2)
        slope = (share * deviation * s).sum(axis=1, keepdims=True) / spread
        gap = ((p.inside * defined).sum(axis=1) - share @ p.mean)[:, None] / total
        rest = s - level - slope * deviation
        of_mean = d_share * (s - level - slope * gap) + slope * (d_inside - d_share * p.mean - share * change.mean)
        of_slope = (d_share * deviation + share * change.mean) * rest - share * deviation * slope * change.mean
        return of_mean / total + gap * of_slope / spread

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
