"""Baselines of twins: each measured group against unrelated occurrences that resemble its own, row by row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ctxexp import Baseline, Metric, Occurrences
from ctxexp.baselines import BaselineValues, GroupBaseline, MeasuredGroups, OnePerSentence, ScoredGroups
from ctxexp.errors import ConfigError
from ctxexp.groups import WordReader
from ctxexp.maths import Curve, Stream, finite_mean
from ctxexp.metrics import baseline_is_score
from ctxexp.occurrences import Groups
from ctxexp_papers.twins.strata import StrataLevel, strata_level


class Twins(Baseline):
    """A chance level from twins: every group's rows replaced by rows of the same strata, from anywhere in the corpus.

    A permutation of the measured occurrences that keeps each within its stratum takes a group to its twin: as many
    rows, none twice, strata as in the group, words and sentences at random within them. The level of a measure is its
    mean over all twins of `twins` permutations, and `adjusted` the mean over groups of score minus own twins' mean; so
    size is matched too. Metrics over a sample (anisotropy), which has no groups, get one word from each of `size`
    sentences. `exact`: where a score is the mean cosine, its mean over all permutations takes the place of the twins,
    and anisotropy is the expectation over all sentences.
    """

    has_group_baselines = True

    def __init__(self, *, size: int = 1000, redraws: int = 30, twins: int = 10, exact: bool = False) -> None:
        if twins < 1:
            raise ConfigError(f"{self.name}: expected at least 1 twin of each group, got twins={twins}")
        self.sample = OnePerSentence(size=size, redraws=redraws, exact=exact)
        self.expectation = self.sample.expectation
        self.size, self.n_twins = size, twins

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        return self.sample.groups(occurrences, rng)

    def group_baseline(self, occurrences: Occurrences, over: str, seed: int) -> GroupBaseline | None:
        if over not in ("word", "sentence"):
            return None
        groups, strata = occurrences.groups(over), None
        if self.expectation:
            rows = np.unique(occurrences.by_sentence.rows)
            strata = rows, self.strata(occurrences, rows)
        rng = np.random.default_rng([seed, Stream.TWINS])
        return TwinLevels(over, list(self.twins(groups, occurrences, rng)), groups, occurrences, strata)

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


class TwinLevels(GroupBaseline):
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
        self._levels: dict[str, list[StrataLevel]] = {}

    def baseline_source(self, metric: Metric) -> str:
        return "exact" if self.strata and score_is_cosine(metric) else "drawn"

    def observe_layer(self, reader: WordReader, measures: Mapping[str, MeasuredGroups], *, influence: bool) -> None:
        sampled: dict[str, MeasuredGroups] = {}
        for label, (metric, indices) in measures.items():
            if self.strata and score_is_cosine(metric):
                groups = self.groups if indices is None else self.groups.subset(indices)
                mixed = self.occurrences.mixed(self.over, indices)
                weights = None if mixed is None else mixed.weights(groups.counts > 1)
                level = strata_level(reader.gather, self.occurrences, groups, *self.strata, weights)
                self._levels.setdefault(label, []).append(level)
            else:
                sampled[label] = MeasuredGroups(metric, indices)
        nothing = np.zeros(self.occurrences.units.n_blocks)
        for label, levels in self._means(reader, sampled).items():
            indices = sampled[label].indices
            of_group = levels if indices is None else levels[indices]
            self._levels.setdefault(label, []).append(StrataLevel(of_group, nothing))

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
    """

    name = "position_matched"

    def __init__(
        self, *, size: int = 1000, redraws: int = 30, twins: int = 10, least: int = 50, exact: bool = False
    ) -> None:
        super().__init__(size=size, redraws=redraws, twins=twins, exact=exact)
        if least < 2:
            raise ConfigError(f"position_matched: expected at least 2 occurrences a place, got least={least}")
        self.least = least

    def strata(self, occurrences: Occurrences, rows: np.ndarray) -> np.ndarray:
        places = occurrences.places[rows]
        stratum = pooled(np.bincount(places), self.least)
        result: np.ndarray = stratum[places]
        return result


class FrequencyMatched(Twins):
    """Twins of like frequency from sentences of like length: each row against a word about as frequent.

    Frequent words lie elsewhere than rare ones, and long sentences' words elsewhere than short ones', whatever they
    mean; a level from all occurrences alike misses both. Frequency is the word's count, in bands that span a factor of
    two at least and are wide enough for no word to make up more than `share` of its band's occurrences: so the band of
    the most frequent words is wide, and a twin of theirs holds some pairs of one word, at most that share of them.
    Length is the number of measured words, in bands of at least `least` occurrences.
    """

    name = "frequency_matched"

    def __init__(
        self,
        *,
        size: int = 1000,
        redraws: int = 30,
        twins: int = 10,
        least: int = 50,
        share: float = 0.2,
        exact: bool = False,
    ) -> None:
        super().__init__(size=size, redraws=redraws, twins=twins, exact=exact)
        if least < 2 or not 0 < share <= 1:
            raise ConfigError(
                f"frequency_matched: expected least of at least 2 and a share above 0, up to 1, got least={least}, "
                f"share={share}"
            )
        self.least, self.share = least, share

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
            result[inside] = b * (length.max() + 1) + pooled(np.bincount(length[inside]), self.least)[length[inside]]
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


def pooled(counts: np.ndarray, least: int) -> np.ndarray:
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
    return bool(metric._cosine_statistic) and baseline_is_score(metric)
