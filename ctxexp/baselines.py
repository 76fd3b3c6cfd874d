"""Baselines, the values of measures on random groups of occurrences: the contract, and the built-in ones, which draw
from the whole corpus, one value for all groups of a measure, or one for each group, from groups of as many rows.

A metric is a class; a measure is a metric configured under a label of a run's config. "The paper" is Ethayarajh 2019,
"the released code" its repository.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Gt, Le

from ctxexp.errors import ConfigError, UnknownName
from ctxexp.groups import WordReader
from ctxexp.maths.geometry import PreparedRows
from ctxexp.maths.resampling import Clusters, Curve, Stream
from ctxexp.maths.statistics import finite_mean
from ctxexp.metrics import GroupMean, Metric, Over
from ctxexp.occurrences import Occurrences
from ctxexp.results.run_info import SIZE_MATCHED

Size = Annotated[int, Ge(2)]  # one occurrence has no pair
Redraws = Annotated[int, Ge(0), Le(10_000)]  # every layer is measured on each of them; 30 give an interval
Among = Literal["sentence", "row"]
"""Over which pairs a mean cosine is expected: one word from each of two sentences, or any two rows."""


class BaselineValues(NamedTuple):
    """A measure's baseline in every layer."""

    by_group: np.ndarray  # (n_groups, n_layers) each group's own, or (n_layers,) where all have one
    curve: Curve  # its mean over the groups that have a score


class MeasuredGroups(NamedTuple):
    """A measure's metric, and the indices of the groups that it is applied to, among those of its kind (None: all)."""

    metric: GroupMean
    indices: np.ndarray | None


class ScoredGroups(NamedTuple):
    """A measure's groups with their scores."""

    scores: np.ndarray  # (n_groups, n_layers) NaN where undefined
    indices: np.ndarray | None = None  # among the groups of their kind; None: all of them
    weights: np.ndarray | None = None  # (n_groups, n_layers) in the mean over groups; None: equal


class GroupBaseline(ABC):
    """Baselines of measures over one kind of groups: observes each layer, then gives the values."""

    @abstractmethod
    def observe_layer(self, reader: WordReader, measures: Mapping[str, MeasuredGroups], *, influence: bool) -> None:
        """Compute and remember one layer's baselines of the measures, by label; with `influence`, also the influence of
        each cluster on them."""

    @abstractmethod
    def values(self, label: str, groups: ScoredGroups) -> BaselineValues:
        """The baselines of one measure for the groups that it scored."""

    def baseline_source(self, metric: Metric) -> str:
        """The source of the measure's baseline: `exact`, `drawn`, `size-matched`; an empty string for a measure without
        a baseline."""
        return "drawn"


class Baseline(ABC):
    """Random groups of occurrences, the same rows in every layer.

    The first group is the reported baseline; the others are redraws, from which metrics over samples get their spread.
    A measure's baseline is its value on the first (`baseline_value`), unless `group_baseline` gives groups baselines of
    their own. `expectation`: if set, the expected mean cosine over all pairs of distinct sentences ("sentence") or of
    distinct rows ("row") replaces that of the sample. A metric may name further baselines, registered under their names
    (`Metric.baselines`).

    Example:
        >>> class AnyRows(Baseline):
        ...     name = "any_rows"
        ...     def groups(self, occurrences, rng):
        ...         yield rng.permutation(occurrences.rows)[:1000]
        >>> AnyRows().group_baseline(None, "word", seed=0) is None
        True
    """

    name: ClassVar[str] = ""
    has_group_baselines: ClassVar[bool] = False  # whether groups have baselines of their own
    expectation: Among | None = None

    @abstractmethod
    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The random groups, the reported baseline first.

        Args:
            occurrences: The measured rows.
            rng: The source of all draws.

        Returns:
            Arrays of row numbers, each without repetition: no occurrence is compared with itself.
        """

    def group_baseline(self, occurrences: Occurrences, over: Over, seed: int) -> GroupBaseline | None:
        """The source of baselines of single groups of a kind (optional); None: all have that of the first random group.

        Args:
            occurrences: The measured rows.
            over: The kind of groups.
            seed: The seed of its draws.

        Returns:
            The source, which observes each layer and then gives the baselines; None as above.
        """
        return None


class OnePerSentence(Baseline):
    """One word from each of `size` sentences: sentences uniform without replacement, then a word in each (the paper's).

    Unlike the released code, which draws with replacement, no occurrence is paired with itself, nor with one of a
    sentence that gold pairs link to its own. On a corpus with fewer distinct sentences every sentence is used, with a
    warning; `info.baseline.size` is the actual size.

    exact: a mean cosine is its expected value over all pairs of distinct sentences instead of that of the sample
    size: of the sample for measures without a closed form
    redraws: further samples, for measures that tell their spread
    """

    name = "one_per_sentence"

    def __init__(self, *, size: Size = 1000, redraws: Redraws = 30, exact: bool = False) -> None:
        self.size, self.redraws = size, redraws
        self.expectation: Among | None = "sentence" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        starts, rows = occurrences.distinct.starts, occurrences.distinct.rows
        what = "distinct sentences" + (
            " that no gold pair links" if occurrences.clusters.pair_group is not None else ""
        )
        size = _available_size(self.size, len(occurrences.unrelated(np.arange(len(starts) - 1))), what)
        for _ in range(1 + self.redraws):
            sentences = occurrences.unrelated(rng.permutation(len(starts) - 1))[:size]
            yield rows[rng.integers(starts[sentences], starts[sentences + 1])]


class Uniform(Baseline):
    """`size` occurrences, uniform over those of all distinct sentences, without replacement: long sentences weigh more.

    exact: a mean cosine is its expected value over all pairs of distinct occurrences instead of that of the sample
    size: of the sample for measures without a closed form
    redraws: further samples, for measures that tell their spread
    """

    name = "uniform"

    def __init__(self, *, size: Size = 1000, redraws: Redraws = 30, exact: bool = True) -> None:
        self.size, self.redraws = size, redraws
        self.expectation: Among | None = "row" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        rows = occurrences.distinct.rows
        size = _available_size(self.size, len(rows), "occurrences")
        for _ in range(1 + self.redraws):
            yield rows[rng.choice(len(rows), size, replace=False)]


def _available_size(size: int, available: int, what: str) -> int:
    if available < 2:
        raise ConfigError(f"the baseline needs at least 2 {what}, the corpus has {available}; use a larger corpus")
    return min(size, available)


@dataclass(frozen=True)
class SizeLadder:
    """Random groups at a ladder of sizes, and the interpolation of a baseline between its rungs."""

    sizes: np.ndarray  # (k,) ascending
    draws: list[np.ndarray]  # k arrays (draws, size) of row numbers

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """(len(counts), k): weight of each rung for groups of these sizes: linear in 1 / n, constant outside the
        ladder."""
        inverse = 1.0 / np.clip(counts, self.sizes[0], self.sizes[-1])
        high = np.clip(np.searchsorted(self.sizes, counts), 1, max(1, len(self.sizes) - 1))
        result = np.zeros((len(counts), len(self.sizes)))
        if len(self.sizes) == 1:
            result[:] = 1
            return result
        a, b = 1.0 / self.sizes[high - 1], 1.0 / self.sizes[high]
        share = (a - inverse) / (a - b)
        groups = np.arange(len(counts))
        result[groups, high - 1], result[groups, high] = 1 - share, share
        return result


class SizeMatched(OnePerSentence):
    """Random groups of the size of the group they are compared with, one word per sentence where there are enough.

    A share of variance, or a cosine to the mean, depends on the number of rows even for unrelated words; so each
    group is compared with `draws` random groups of its own size. `exact` (a number of rows): every size up to it that
    occurs is drawn itself. Above it the drawn sizes grow by the factor `ratio`, and the baseline of a size between two
    of them is interpolated linearly in 1 / n. Groups of more than `largest` rows get the baseline of that size. Large
    groups vary less: the number of draws falls as size^-1.5, to no fewer than 2. Metrics over a sample of the corpus
    (`over = "sample"`, anisotropy) get one word from each of `size` sentences.

    size: of the sample for anisotropy
    redraws: further samples, for measures that tell their spread
    draws: random groups a size, at most
    exact: sizes up to this are drawn as they are, larger ones on a ladder
    ratio: from rung to rung
    largest: flat beyond
    """

    name = "size_matched"
    has_group_baselines = True

    def __init__(
        self,
        *,
        size: Size = 1000,
        redraws: Redraws = 30,
        draws: Size = 128,
        exact: Size = 12,
        ratio: Annotated[float, Gt(1)] = 1.35,
        largest: Size = 4096,
    ) -> None:
        super().__init__(size=size, redraws=redraws)
        self.draws, self.exact, self.ratio, self.largest = draws, exact, ratio, largest

    def sizes_to_draw(self, counts: np.ndarray) -> np.ndarray:
        """The sizes to draw for groups of these sizes, ascending."""
        counts = np.unique(np.clip(counts, 2, self.largest))
        rungs = set(counts[counts <= self.exact].tolist())
        above = counts[counts > self.exact]
        if len(above):
            size = int(above[0])
            while size < above[-1]:
                rungs.add(size)
                size = max(size + 1, round(size * self.ratio))
            rungs.add(int(above[-1]))
        return np.array(sorted(rungs), np.int64)

    def group_baseline(self, occurrences: Occurrences, over: Over, seed: int) -> GroupBaseline | None:
        if over in ("sense", "sample", "pair"):  # senses permute labels; samples and pairs are no groups of like rows
            return None
        counts = occurrences.groups(over).counts
        if not len(counts):
            return None
        rng = np.random.default_rng([seed, Stream.MATCHED])
        return LadderBaseline(counts, self.draw(counts, occurrences, rng), occurrences.clusters)

    def draw(self, counts: np.ndarray, occurrences: Occurrences, rng: np.random.Generator) -> SizeLadder:
        """Random groups for groups of these sizes."""
        starts, rows = occurrences.distinct.starts, occurrences.distinct.rows
        everywhere = len(starts) - 1
        n_sentences = len(occurrences.unrelated(np.arange(everywhere)))
        sizes = self.sizes_to_draw(np.minimum(counts, len(rows)))
        draws = []
        for size in sizes.tolist():
            groups: list[np.ndarray] = []
            n_draws = int(np.clip(self.draws * (self.exact / size) ** 1.5, 2, self.draws))
            while len(groups) < n_draws:
                if size > n_sentences:
                    groups.append(rows[rng.choice(len(rows), size, replace=False)])
                    continue
                order = occurrences.unrelated(rng.permutation(everywhere))
                for at in range(0, min(n_sentences // size, n_draws - len(groups)) * size, size):
                    sentences = order[at : at + size]
                    groups.append(rows[rng.integers(starts[sentences], starts[sentences + 1])])
            draws.append(np.stack(groups))
        return SizeLadder(sizes, draws)


class LadderBaseline(GroupBaseline):
    """Baseline of each group, interpolated between random groups of about its size."""

    def __init__(self, counts: np.ndarray, ladder: SizeLadder, clusters: Clusters) -> None:
        self.counts, self.ladder, self.clusters = counts, ladder, clusters
        self._means: dict[str, list[list[float]]] = {}  # label -> layer -> rung
        self._influence: dict[str, list[np.ndarray]] = {}  # label -> layer -> (rungs, n_blocks)

    def baseline_source(self, metric: Metric) -> str:
        return SIZE_MATCHED

    def observe_layer(self, reader: WordReader, measures: Mapping[str, MeasuredGroups], *, influence: bool) -> None:
        means: dict[str, list[float]] = {label: [] for label in measures}
        of_clusters: dict[str, list[np.ndarray]] = {label: [] for label in measures}
        for draws in self.ladder.draws:
            groups = PreparedRows(reader.gather(draws), reader.eps)
            where = f"random groups of {draws.shape[1]} rows"
            for label, (metric, _) in measures.items():
                scores = reader.call_metric(label, metric, where, partial(groups.apply, metric.score))
                means[label].append(float(finite_mean(scores)))
                by_cluster = np.zeros(self.clusters.n_blocks)
                if influence:
                    of_rows = reader.call_metric(label, metric, where, partial(groups.apply, metric.influence))
                    n = max(np.isfinite(scores).sum(), 1)
                    by_cluster = self.clusters.sum_by_block(self.clusters.of_row[draws], of_rows) / n
                of_clusters[label].append(by_cluster)
        for label in measures:
            self._means.setdefault(label, []).append(means[label])
            self._influence.setdefault(label, []).append(np.stack(of_clusters[label]))

    def values(self, label: str, groups: ScoredGroups) -> BaselineValues:
        means = np.array(self._means[label])  # (layers, rungs)
        weights = self.ladder.weights(self.counts if groups.indices is None else self.counts[groups.indices])
        by_group = weights @ np.nan_to_num(means.T)  # (groups, layers)
        by_group[(weights > 0) @ np.isnan(means.T)] = np.nan  # NaN where a rung that the group uses has no mean
        of_groups = np.isfinite(groups.scores).T.astype(np.float64)  # (layers, groups)
        if groups.weights is not None:
            of_groups *= groups.weights.T
        of_rungs = of_groups @ weights  # (layers, rungs)
        defined = of_rungs * np.isfinite(means)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = defined / defined.sum(axis=1, keepdims=True)
        influence = np.stack([w @ rungs for w, rungs in zip(share, self._influence[label], strict=True)])
        return BaselineValues(by_group, Curve(finite_mean(means, of_rungs, axis=-1), influence))


BASELINES: dict[str, type[Baseline]] = {kind.name: kind for kind in (OnePerSentence, SizeMatched, Uniform)}


def builtin_baseline(name: str) -> Baseline:
    """The built-in baseline of the name, with its defaults. Raises UnknownName for another's."""
    if name not in BASELINES:
        raise UnknownName("baseline", name, BASELINES)
    return BASELINES[name]()
