"""Baselines matched in more than size: each measured group against its twins, unrelated occurrences that resemble its
own row by row, at the same place in the sentence or of the same frequency.

A stratum is a set of measured rows that are alike in something other than their word, such as position or frequency.
The expected mean cosine of groups whose rows are replaced by random rows of the same strata has a closed form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge, Gt, Le

from ctxexp.baselines import (
    BaselineValues,
    GroupBaseline,
    MeasuredGroups,
    OnePerSentence,
    Redraws,
    ScoredGroups,
    Size,
)
from ctxexp.groups import WordReader
from ctxexp.maths.geometry import norms
from ctxexp.maths.resampling import Curve, Stream
from ctxexp.maths.statistics import finite_mean
from ctxexp.metrics import Metric, baseline_is_score
from ctxexp.occurrences import Groups, Occurrences

STEP = 1024  # rows at a time

Gather = Callable[[np.ndarray], np.ndarray]
"""Row numbers (n,) to rows (n, d), valid until the next call."""


class StrataBaseline(NamedTuple):
    """The expected mean cosine of every group in one layer: its baseline."""

    of_group: np.ndarray  # (n_groups,) in [-1, 1]; NaN for a group of one row
    influence: np.ndarray  # (n_blocks,) of each cluster on their mean


def strata_baseline(
    gather: Gather,
    occurrences: Occurrences,
    groups: Groups,
    rows: np.ndarray,
    strata: np.ndarray,
    weights: np.ndarray | None = None,
) -> StrataBaseline:
    """The expected mean cosine of each group with its rows replaced by distinct random rows of the same strata.

    Random rows of strata a and b have the expected cosine p_a.p_b, with p_a the mean normalized row of stratum a, and
    two of one stratum (|sum u|^2 - n_a) / (n_a (n_a - 1)). `rows` are the measured rows and must be ascending;
    `strata[i]`, in 0 .. k - 1, is the stratum of `rows[i]`. Rows that are zero or not finite are left out. `weights`
    (n_groups,) of the groups in their mean, which add up to 1; None: equal.
    """
    clusters = occurrences.clusters
    cosine, p, sizes = _between(gather, rows, strata)
    own = strata[np.searchsorted(rows, groups.rows)]
    group = np.repeat(np.arange(len(groups)), groups.counts)
    counts = np.zeros((len(groups), len(sizes)))
    np.add.at(counts, (group, own), 1)
    n, within = groups.counts.astype(np.float64), np.diag(cosine)
    share = (n > 1) / np.maximum(np.count_nonzero(n > 1), 1) if weights is None else weights
    cosine_sums = counts @ cosine  # (n_groups, n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = (np.vecdot(cosine_sums, counts) - counts @ within) / (n * (n - 1))
        # The strata of a group's rows are random too, so that each row has an influence through its stratum.
        # The factor is that of a cosine's own influence, so that the two cancel in the difference.
        factor = np.where(n > 2, 2 / (n - 2) * np.sqrt((n - 1) / n), 0)
        of_row = factor[group] * ((cosine_sums[group, own] - within[own]) / (n[group] - 1) - level[group])
        of_pair = np.where(n > 1, share / (n * (n - 1)), 0)
    influence = clusters.sum_by_block(clusters.of_row[groups.rows], of_row * share[group])
    # the weight of each two strata a and b in the mean
    pairs = (counts * of_pair[:, None]).T @ counts - np.diag(of_pair @ counts)
    same = np.diag(pairs) / np.maximum(sizes - 1, 1)  # a row is no pair with itself
    gradient = ((pairs + np.diag(same * sizes - np.diag(pairs))) @ np.nan_to_num(p)).astype(np.float32)
    expected = (pairs * cosine).sum(axis=1) + same
    for at, u, valid in _unit_rows(gather, rows):
        a = strata[at : at + len(u)]
        part = np.where(valid, 2 * (np.vecdot(u, gradient[a]) - expected[a]) / np.maximum(sizes[a], 1), 0)
        influence += clusters.sum_by_block(clusters.of_row[rows[at : at + len(u)]], part)
    return StrataBaseline(level, influence)


def _between(gather: Gather, rows: np.ndarray, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected cosines of two rows of strata a and b (k, k), the strata's mean unit vectors (k, d) and sizes (k,)."""
    k = int(strata.max()) + 1
    sums, sizes = np.zeros((k, 1)), np.zeros(k)
    for at, u, valid in _unit_rows(gather, rows):
        one_hot = (strata[at : at + len(u)] == np.arange(k)[:, None]) & valid
        sums, sizes = sums + (one_hot.astype(np.float32) @ u).astype(np.float64), sizes + one_hot.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = sums / sizes[:, None]
        cosine = p @ p.T
        np.fill_diagonal(cosine, (np.vecdot(sums, sums) - sizes) / (sizes * (sizes - 1)))
    return np.nan_to_num(cosine), p, sizes  # NaN only where a stratum has no pair, which no group needs


def _unit_rows(gather: Gather, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield chunks (first, normalized rows (n, d), mask of the valid rows (n,)); rows that are zero or not finite are
    zeros."""
    for at in range(0, len(rows), STEP):
        x = gather(rows[at : at + STEP])
        length = norms(x)
        valid = np.isfinite(length) & (length > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield at, np.where(valid[:, None], x / length[:, None].astype(x.dtype), 0), valid


Count = Annotated[int, Ge(1)]


class Twins(OnePerSentence):
    """A chance level from twins: every group's rows replaced by rows of the same strata, from anywhere in the corpus.

    A permutation of the measured occurrences that keeps each within its stratum takes a group to its twin: as many
    rows, none twice, strata as in the group, words and sentences at random within them. The level of a measure is its
    mean over all twins of `twins` permutations, and `adjusted` the mean over groups of score minus own twins' mean; so
    size is matched too. Metrics over a sample (anisotropy), which has no groups, get one word from each of `size`
    sentences. `exact`: where a score is the mean cosine, its mean over all permutations takes the place of the twins,
    and anisotropy is the expectation over all sentences.
    """

    has_group_baselines = True

    def __init__(
        self, *, size: Size = 1000, redraws: Redraws = 30, twins: Count = 10, least: Size = 50, exact: bool = True
    ) -> None:
        super().__init__(size=size, redraws=redraws, exact=exact)
        self.n_twins, self.least = twins, least

    def group_baseline(self, occurrences: Occurrences, over: str, seed: int) -> GroupBaseline | None:
        if over not in ("word", "sentence"):
            return None
        groups, strata = occurrences.groups(over), None
        if self.expectation:
            rows = np.unique(occurrences.by_sentence.rows)
            strata = rows, self.strata(occurrences, rows)
        rng = np.random.default_rng([seed, Stream.TWINS])
        return TwinBaseline(over, list(self.twins(groups, occurrences, rng)), groups, occurrences, strata)

    @abstractmethod
    def strata(self, occurrences: Occurrences, rows: np.ndarray) -> np.ndarray:
        """(len(rows),) int: which of all measured `rows` may change places with each other."""

    def twins(self, groups: Groups, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[Groups]:
        """The groups' twins, again and again."""
        rows = np.unique(occurrences.by_sentence.rows)
        strata = self.strata(occurrences, rows)
        order = np.argsort(strata, kind="stable")
        at = np.searchsorted(rows, groups.rows)
        for _ in range(self.n_twins):
            shuffled = np.lexsort([rng.random(len(rows)), strata])
            image = np.empty(len(rows), np.int64)
            image[order] = rows[shuffled]
            yield Groups(groups.keys, groups.starts, image[at])


class TwinBaseline(GroupBaseline):
    """Each group's mean score over its twins, or where the score is the mean cosine its expectation over all of them
    (`strata`: the measured rows, and the stratum of each; None: not asked for)."""

    def __init__(
        self,
        over: str,
        twins: Sequence[Groups],
        groups: Groups,
        occurrences: Occurrences,
        strata: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        self.over, self.twins, self.groups, self.occurrences, self.strata = over, twins, groups, occurrences, strata
        self._levels: dict[str, list[StrataBaseline]] = {}

    def baseline_source(self, metric: Metric) -> str:
        return "exact" if self.strata and score_is_cosine(metric) else "drawn"

    def observe_layer(self, reader: WordReader, measures: Mapping[str, MeasuredGroups], *, influence: bool) -> None:
        sampled: dict[str, MeasuredGroups] = {}
        for label, (metric, indices) in measures.items():
            if self.strata and score_is_cosine(metric):
                groups = self.groups if indices is None else self.groups.subset(indices)
                mixed = self.occurrences.mixed(self.over, indices)
                weights = None if mixed is None else mixed.weights(groups.counts > 1)
                level = strata_baseline(reader.gather, self.occurrences, groups, *self.strata, weights)
                self._levels.setdefault(label, []).append(level)
            else:
                sampled[label] = MeasuredGroups(metric, indices)
        nothing = np.zeros(self.occurrences.clusters.n_blocks)
        for label, levels in self._means(reader, sampled).items():
            indices = sampled[label].indices
            of_group = levels if indices is None else levels[indices]
            self._levels.setdefault(label, []).append(StrataBaseline(of_group, nothing))

    def values(self, label: str, groups: ScoredGroups) -> BaselineValues:
        by_layer = self._levels[label]
        own = np.stack([level.of_group for level in by_layer], axis=1)  # (groups, layers)
        value = finite_mean(np.where(np.isfinite(groups.scores), own, np.nan), groups.weights)
        return BaselineValues(own, Curve(value, np.stack([level.influence for level in by_layer])))

    def _means(self, reader: WordReader, measures: Mapping[str, MeasuredGroups]) -> dict[str, np.ndarray]:
        """Label -> (n_groups,) each group's mean score over its twins, NaN where none is defined."""
        if not measures:
            return {}
        scores: dict[str, list[np.ndarray]] = {label: [] for label in measures}
        for groups in self.twins:
            parts: dict[str, list[np.ndarray]] = {label: [] for label in measures}
            for block in reader.blocks_of(groups):
                for label, (metric, _) in measures.items():
                    if block.x.shape[1] < metric.min_rows:
                        parts[label].append(np.full(len(block), np.nan))
                    else:
                        call = partial(block.prepared_rows.apply, metric.score)
                        parts[label].append(reader.call_metric(label, metric, f"twins of {self.over}s", call))
            for label, blocks in parts.items():
                scores[label].append(np.concatenate(blocks))
        return {label: finite_mean(np.stack(each)) for label, each in scores.items()}


class PositionMatched(Twins):
    """Twins at the same word position: each row against one as many words from the beginning of its own sentence.

    Where a vector tells its place, occurrences at one place resemble each other whatever their words; a level from
    unrelated occurrences of any place misses that. Places count the words that have a vector, punctuation included,
    from 0: where words are cut into pieces, a model's own positions run ahead of them. Fewer than `least` occurrences
    at a place are pooled with those of the next places.

    size: of the sample for what is measured on random occurrences
    redraws: further samples, for measures that tell their spread
    twins: of each group, for measures without a closed form
    least: occurrences a position; fewer are pooled with the next
    exact: self-similarity and anisotropy by their expectation
    """

    name = "position_matched"

    def strata(self, occurrences: Occurrences, rows: np.ndarray) -> np.ndarray:
        places = occurrences.places[rows]
        stratum = pool(np.bincount(places), self.least)
        return stratum[places]


class FrequencyMatched(Twins):
    """Twins of like frequency from sentences of like length: each row against a word about as frequent.

    Frequent words lie elsewhere than rare ones, and long sentences' words elsewhere than short ones', whatever they
    mean; a level from all occurrences alike misses both. Frequency is the word's count, in bands that span a factor of
    two at least and are wide enough for no word to make up more than `share` of its band's occurrences: so the band of
    the most frequent words is wide, and a twin of theirs holds some pairs of one word, at most that share of them.
    Length is the number of measured words, in bands of at least `least` occurrences.

    size: of the sample for what is measured on random occurrences
    redraws: further samples, for measures that tell their spread
    twins: of each group, for measures without a closed form
    least: occurrences a band of sentence lengths
    share: of a frequency band's occurrences that one word may have
    exact: self-similarity and anisotropy by their expectation
    """

    name = "frequency_matched"

    def __init__(
        self,
        *,
        size: Size = 1000,
        redraws: Redraws = 30,
        twins: Count = 10,
        least: Size = 50,
        share: Annotated[float, Gt(0), Le(1)] = 0.2,
        exact: bool = True,
    ) -> None:
        super().__init__(size=size, redraws=redraws, twins=twins, least=least, exact=exact)
        self.share = share

    def strata(self, occurrences: Occurrences, rows: np.ndarray) -> np.ndarray:
        form = occurrences.forms[rows]
        band = bands(np.bincount(form), self.share)[form]
        sentences = occurrences.by_sentence
        lengths = np.zeros(len(occurrences.places), np.int64)
        lengths[sentences.rows] = np.repeat(sentences.counts, sentences.counts)
        length = lengths[rows]
        result = np.empty(len(form), np.int64)
        for b in np.unique(band).tolist():
            inside = band == b
            result[inside] = b * (length.max() + 1) + pool(np.bincount(length[inside]), self.least)[length[inside]]
        return result


def bands(counts: np.ndarray, share: float) -> np.ndarray:
    """(len(counts),) int: words by count in bands from the most frequent on, each over a factor of two at least and
    without a word that has more than `share` of its occurrences; the rest, if it is no band, joins the last."""
    order = np.argsort(-counts, kind="stable")
    result = np.zeros(len(counts), np.int64)
    band = first = n_rows = 0
    for i, word in enumerate(order.tolist()):
        top = int(counts[order[first]])
        if i > first and top <= share * n_rows and 2 * counts[word] < top:
            band, first, n_rows = band + 1, i, 0
            top = int(counts[word])
        result[word] = band
        n_rows += int(counts[word])
    if band and top > share * n_rows:
        result[result == band] = band - 1
    return result


def pool(counts: np.ndarray, least: int) -> np.ndarray:
    """(len(counts),) int: neighbouring classes joined until each has `least`; what remains joins the last."""
    result = np.zeros(len(counts), np.int64)
    stratum = n_rows = 0
    for i, count in enumerate(counts.tolist()):
        result[i] = stratum
        n_rows += count
        if n_rows >= least:
            stratum, n_rows = stratum + 1, 0
    if n_rows < least and stratum:
        result[result == stratum] = stratum - 1
    return result


def score_is_cosine(metric: Metric) -> bool:
    """Whether each group's score itself, and not the baseline alone, is its mean cosine."""
    return bool(metric.cosine_statistic) and baseline_is_score(metric)
