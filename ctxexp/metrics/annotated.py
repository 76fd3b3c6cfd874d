"""Metrics against what people annotated: how well the similarity of a pair's vectors ranks gold pairs as people do, by
task, with intervals over resampled pairs; whether the vectors of a word lie closer to those of the same sense.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from ctxexp.errors import MetricError
from ctxexp.groups import Block, Group, Pairs
from ctxexp.maths.resampling import Statistics, Stream, replicates_of
from ctxexp.maths.statistics import finite_mean, pearson, resampled_spearman, spearman
from ctxexp.metrics import Estimate, GroupMean, Metric, Reading

Similarity = Literal["cosine", "dot", "euclidean"]
SIMILARITIES: dict[str, str] = {"cosine": "cosine", "dot": "dot product", "euclidean": "negative Euclidean distance"}
CHUNK_PAIRS = 4096  # pairs compared at a time
AVERAGE = "avg"  # stands where a task's name stands, for the mean over tasks


def similarities(x: np.ndarray, y: np.ndarray, kind: str = "cosine") -> np.ndarray:
    """Similarity of each row of x (n, d) with the same row of y (n, d): (n,) float64, NaN where undefined.

    cosine: in [-1, 1], as 1 - |u - v|^2 / 2 of the normalized rows u and v, which is exactly 1 for equal rows (so that
    equal sentences tie) and keeps its precision near 1. dot: the dot product. euclidean: minus the Euclidean distance.
    """
    result = np.empty(len(x))
    for at in range(0, len(x), CHUNK_PAIRS):
        a, b = (np.asarray(side[at : at + CHUNK_PAIRS], np.float64) for side in (x, y))
        with np.errstate(invalid="ignore", divide="ignore"):
            if kind == "cosine":
                u, v = (side / np.sqrt((side**2).sum(1, keepdims=True)) for side in (a, b))
                value = 1 - ((u - v) ** 2).sum(1) / 2
            elif kind == "dot":
                value = (a * b).sum(1)
            else:
                value = -np.sqrt(((a - b) ** 2).sum(1))
        result[at : at + CHUNK_PAIRS] = value
    result[~np.isfinite(result)] = np.nan
    return result


@dataclass(frozen=True)
class ScoredPairs:
    """The pairs of one sub-set: columns `similarity`, `gold` and those of the metric's own, each (n,) float64.

    Example:
        >>> pairs = ScoredPairs("dev", {"similarity": np.array([0.9, np.nan]), "gold": np.array([5.0, 1.0])}, np.eye(2))
        >>> pairs.of("similarity", "gold")  # without the pair that has no similarity
        [array([0.9]), array([5.])]
    """

    subset: str
    columns: dict[str, np.ndarray]
    sentence_ids: np.ndarray  # (n, 2) of each pair's two sentences

    def __len__(self) -> int:
        return len(self.columns["gold"])

    @property
    def defined(self) -> np.ndarray:
        """Which pairs have both similarity and gold: (n,) bool."""
        return np.isfinite(self.columns["similarity"]) & np.isfinite(self.columns["gold"])

    def of(self, *names: str) -> list[np.ndarray]:
        """Columns of the defined pairs."""
        return [self.columns[name][self.defined] for name in names]

    @staticmethod
    def join(parts: Sequence[ScoredPairs]) -> ScoredPairs:
        """All pairs of the sub-sets, one after the other."""
        columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
        return ScoredPairs("", columns, np.concatenate([p.sentence_ids for p in parts]))


Statistic = float | Estimate
"""A statistic of a task: a number, with its interval and all of its replicates if it has one; an int is a count."""


def average(tasks: Sequence[Mapping[str, Statistic]]) -> dict[str, Statistic]:
    """The unweighted mean over tasks of every value and replicate (NaN if a task's is); counts are added."""
    return {name: _average([task[name] for task in tasks]) for name in tasks[0]}


def _average(of_tasks: Sequence[Statistic]) -> Statistic:
    if all(isinstance(one, int) for one in of_tasks):
        return sum(one for one in of_tasks if isinstance(one, int))
    values = [one.value if isinstance(one, Estimate) else one for one in of_tasks]
    replicates = [one.replicates for one in of_tasks if isinstance(one, Estimate) and one.replicates is not None]
    mean = float(np.mean(values))
    return Estimate.of(mean, np.mean(replicates, axis=0)) if replicates else mean


class SimilarityMetric(Metric):
    """A measure of how well the similarity of a pair's vectors agrees with its gold score, task by task.

    A pair whose similarity is undefined (the cosine of a zero vector) is left out and counted. Where the corpus has
    several tasks the names of statistics begin with the task (`STS12/all`), and `avg/...` is the mean over tasks, NaN
    if a task's value is. Intervals: 95%, percentile bootstrap over pairs, resampled within each sub-set, those that
    share a sentence together (`ctxexp.maths.resampling`); the same pairs in each layer. Counts of pairs with
    similarity and gold (`n`) and of the others (`undefined`) are added to those of `task_statistics`. In `definition`,
    `{similarity}` becomes the chosen one in words.

    Example:
        >>> class Concordance(SimilarityMetric):
        ...     definition = "share of pairs at which {similarity} and gold have the same sign"
        ...     reading = Reading(main="share")
        ...     def task_statistics(self, parts):
        ...         pairs = ScoredPairs.join(parts)
        ...         same = np.equal(*(np.sign(x) for x in pairs.of("similarity", "gold")))
        ...         def statistics(counts):
        ...             counts = counts[:, pairs.defined]
        ...             return {"share": counts @ same / counts.sum(axis=1)}
        ...         return self.with_intervals({"share": same.mean()}, parts, statistics)
        >>> metric = Concordance(similarity="dot")
        >>> metric.definition
        'share of pairs at which dot product and gold have the same sign'
        >>> metric.update(Group("dev", np.ones((1, 2, 3)), pairs=Pairs(np.array([1.0]), [("a cat", "one cat")])))
        >>> float(metric.compute()["share"].value)
        1.0
    """

    over = "pair"

    def __init__(self, *, similarity: Similarity = "cosine") -> None:
        self.similarity = similarity
        self.definition = self.definition.replace("{similarity}", SIMILARITIES[similarity])
        self._parts: dict[str, ScoredPairs] = {}

    def update(self, group: Group) -> None:
        subset, pairs = str(group.key), group.gold_pairs()
        if subset in self._parts:
            raise MetricError(f"sub-set {subset!r} came twice; expected all of its pairs in one update")
        n = len(pairs)
        columns = {
            "similarity": similarities(group.x[:, 0], group.x[:, 1], self.similarity),
            "gold": np.array(pairs.gold, np.float64),
        }
        sentence_ids = np.arange(2 * n).reshape(n, 2) if pairs.ends is None else np.array(pairs.ends)
        self._parts[subset] = ScoredPairs(subset, {**columns, **self.columns(subset, pairs)}, sentence_ids)

    def columns(self, subset: str, pairs: Pairs) -> Mapping[str, np.ndarray]:
        """Further columns for each pair, by name, each (n,) float64."""
        return {}

    def bootstrap(self, parts: Sequence[ScoredPairs], statistics: Statistics) -> dict[str, np.ndarray]:
        """Bootstrap replicates of the statistics, (r,) each.

        `statistics` gives their values (c,) for counts (c, n): how often each of the n pairs of all parts is drawn in
        each of c resamples.
        """
        rng, replicates = self.resampling
        none = {name: values[:0] for name, values in statistics(np.ones((1, sum(map(len, parts))))).items()}
        return none | replicates_of([part.sentence_ids for part in parts], replicates, rng, statistics)

    def with_intervals(
        self, values: Mapping[str, float], parts: Sequence[ScoredPairs], statistics: Statistics
    ) -> dict[str, float | Estimate]:
        """The values, those with an interval that `statistics` gives in resamples (see `bootstrap`)."""
        replicates = self.bootstrap(parts, statistics)
        return {name: Estimate.of(v, replicates[name]) if name in replicates else v for name, v in values.items()}

    @abstractmethod
    def task_statistics(self, parts: Sequence[ScoredPairs]) -> Mapping[str, float | Estimate]:
        """The statistics of one task from its sub-sets; those that are of type int are counts, which tasks add up."""

    def compute(self) -> dict[str, float | Estimate]:
        tasks = self.tasks()
        if not tasks:
            raise MetricError("no gold pairs: choose a data set that has them, such as sts_b, sick_r or sts")
        by_task = {name: self._of_task(parts) for name, parts in tasks.items()}
        if len(by_task) > 1:
            by_task[AVERAGE] = average(list(by_task.values()))
        return {
            key if len(by_task) == 1 else f"{name}/{key}": self._without_replicates(key, value)
            for name, task in by_task.items()
            for key, value in task.items()
        }

    def _of_task(self, parts: Sequence[ScoredPairs]) -> dict[str, Statistic]:
        """Values and estimates, then counts."""
        found = self.task_statistics(parts)
        counts = {name: value for name, value in found.items() if isinstance(value, int)}
        return {name: value for name, value in found.items() if name not in counts} | pair_counts(parts) | counts

    def _without_replicates(self, name: str, value: Statistic) -> Statistic:
        """A number; of estimates only the main one's replicates are kept."""
        if isinstance(value, Estimate):
            return value if name == self.reading.main else replace(value, replicates=None)
        return float(value)

    def tasks(self) -> dict[str, list[ScoredPairs]]:
        """The sub-sets by task, the name's part before the slash, in order of appearance."""
        tasks: dict[str, list[ScoredPairs]] = {}
        for subset, part in self._parts.items():
            tasks.setdefault(subset.split("/")[0] or "other", []).append(part)
        return tasks


def pair_counts(parts: Sequence[ScoredPairs]) -> dict[str, int]:
    """The numbers of pairs with similarity and gold score (`n`), and of the others (`undefined`)."""
    n = sum(int(p.defined.sum()) for p in parts)
    return {"n": n, "undefined": sum(map(len, parts)) - n}


class STS(SimilarityMetric):
    """Spearman's correlation x 100 of a pair's similarity with its gold score, in [-100, 100], three ways at once.

    `all`: over all pairs of a task's sub-sets together (Sentence-BERT, SimCSE, MTEB); `mean`: the unweighted mean of
    the sub-sets' correlations; `wmean`: that weighted by their numbers of scored pairs (SentEval, BERT-flow). They
    differ by several points on STS 2012-2016 and are equal where a task has one sub-set. `pearson_all`, `pearson_mean`,
    `pearson_wmean`: Pearson's correlation x 100. NaN where the similarities, or the gold scores, of a sub-set are all
    equal. `similarity`: cosine, dot (product) or euclidean (minus the distance).

    similarity: cosine, dot, euclidean (negative distance)
    """

    title = "Semantic textual similarity"
    reading = Reading(
        unit="Spearman × 100",
        subject="similarities of sentences",
        lower="less like people's judgements",
        higher="more like people's judgements",
        main="all",
    )
    definition = "Spearman of {similarity} with gold, over all pairs of a task"

    def __init__(self, *, similarity: Similarity = "cosine") -> None:
        super().__init__(similarity=similarity)
        self._by_subset: dict[str, Estimate] = {}

    def task_statistics(self, parts: Sequence[ScoredPairs]) -> dict[str, float | Estimate]:
        together = ScoredPairs.join(parts)
        weights = np.array([part.defined.sum() for part in parts], np.float64)
        values: dict[str, float] = {}
        for prefix, correlation in (("", spearman), ("pearson_", pearson)):
            each = np.array([100 * correlation(*part.of("similarity", "gold")) for part in parts])
            values[f"{prefix}all"] = 100 * correlation(*together.of("similarity", "gold"))
            values[f"{prefix}mean"] = float(each.mean())
            values[f"{prefix}wmean"] = float(each @ weights / weights.sum())  # of no pair at all each is NaN
        ends = np.cumsum([len(part) for part in parts])

        def statistics(drawn: np.ndarray) -> dict[str, np.ndarray]:
            own = [d[:, part.defined] for d, part in zip(np.split(drawn, ends[:-1], axis=1), parts, strict=True)]
            each = np.stack([_spearman(part, d) for part, d in zip(parts, own, strict=True)], axis=1)
            return {
                "all": each[:, 0] if len(parts) == 1 else _spearman(together, np.concatenate(own, axis=1)),
                "mean": each.mean(axis=1),
                "wmean": each @ weights / weights.sum(),
                **{f"of {part.subset}": column for part, column in zip(parts, each.T, strict=True)},
            }

        resampled = self.bootstrap(parts, statistics)
        for part in parts:
            rho = 100 * spearman(*part.of("similarity", "gold"))
            self._by_subset[part.subset] = Estimate.of(rho, resampled.pop(f"of {part.subset}"))
        return values | {name: Estimate.of(values[name], replicates) for name, replicates in resampled.items()}

    def outputs(self) -> dict[str, list[dict[str, object]]]:
        """The table, one row per sub-set: its pairs, Spearman x 100 with its interval (after `compute`), Pearson x
        100."""
        rows: list[dict[str, object]] = []
        for part in self._parts.values():
            rho = self._by_subset[part.subset]
            rows.append(
                {
                    "subset": part.subset,
                    **pair_counts([part]),
                    "spearman": rho.value,
                    "spearman_ci_low": rho.low,
                    "spearman_ci_high": rho.high,
                    "pearson": 100 * pearson(*part.of("similarity", "gold")),
                }
            )
        return {"table": rows}


def _spearman(part: ScoredPairs, counts: np.ndarray) -> np.ndarray:
    """Spearman x 100 in each resample (c,)."""
    return 100 * resampled_spearman(part.of("similarity", "gold"), counts)[:, 0, 1]


class SenseSeparation(GroupMean):
    """Mean over words of (mean cosine of same-sense pairs - mean cosine of cross-sense pairs), in [-2, 2].

    0: senses make no difference; a word's score is exact over all pairs of its labelled occurrences (of `sample` random
    ones at most, if given). Senses with a single occurrence are left out; a word needs two senses with two or more
    occurrences each, else it is `undefined`. Beside `raw` (the separation): `same_sense` and `cross_sense`, the two
    means. The chance level is that of permuted labels. Its expectation is 0 for every word, whatever the space, since
    any pair is as likely to share a label as any other; so nothing is subtracted. `permuted`, the mean over
    `permutations` permutations with the 2.5% and 97.5% percentiles of these, says how far from 0 the mean over words
    gets with labels that mean nothing. The permutations of a word depend on `seed` and the word alone: they are the
    same in every layer.

    Reif et al. 2019 (Visualizing and Measuring the Geometry of BERT, arXiv 1906.02715) compare the same two means, as a
    ratio; Chronis and Erk 2020 (When is a bishop not like a rook?, doi:10.18653/v1/2020.conll-1.17) cluster a word's
    vectors by usage in each layer.

    sample: so many random words only
    permutations: of the labels, for the chance level
    """

    over = "sense"
    title = "Separation of word senses"
    reading = Reading(unit="cosine", subject="the senses of a word", lower="less separate", higher="more separate")
    definition = "mean cosine of a word's same-sense pairs minus that of its cross-sense pairs"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, sample: int | None = None, permutations: Annotated[int, Ge(0)] = 200, seed: int = 0) -> None:
        super().__init__(sample=sample)
        self.permutations, self.seed = permutations, seed
        self.parts: list[np.ndarray] = []  # one for each word: same, cross, permuted separations

    def score(self, x: np.ndarray) -> np.ndarray:
        """NaN: rows without labels have no separation."""
        return np.full(x.shape[:-2], np.nan)

    def baseline_value(self, x: np.ndarray) -> float:
        return float("nan")

    def update_block(self, block: Block) -> None:
        for group in block:
            parts = self._separation(str(group.key), _labels(group), group.x)
            self._keep(Block.of(group), parts[:1] - parts[1:2])
            self.parts.append(parts)

    def _separation(self, word: str, labels: Sequence[str], x: np.ndarray) -> np.ndarray:
        """(2 + permutations,): mean cosine of same-sense pairs, of cross-sense pairs, permuted separations; all NaN
        if the word hasn't two senses with two or more occurrences."""
        _, codes, sizes = np.unique(np.array(labels), return_inverse=True, return_counts=True)
        repeats = sizes[codes] > 1  # (n,) rows whose sense has another row
        codes, sizes = (np.cumsum(sizes > 1) - 1)[codes[repeats]], sizes[sizes > 1]
        if len(sizes) < 2:
            return np.full(2 + self.permutations, np.nan)
        x = x[repeats].astype(np.float64)
        n, n_same = len(x), float((sizes * (sizes - 1)).sum())
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            u = x / np.sqrt((x**2).sum(axis=1, keepdims=True))
            rng = np.random.default_rng([self.seed, Stream.LABELS, zlib.crc32(word.encode("utf-8", "surrogatepass"))])
            permuted = rng.permuted(np.tile(codes, (self.permutations, 1)), axis=1)
            labelings = np.stack([codes, *permuted])  # (1 + permutations, n)
            # Pairs (j, k), j != k, of one sense: |sum of its u|^2 - its rows. The rest of all pairs are cross-sense.
            sums = np.stack([(labelings == sense).astype(np.float64) @ u for sense in range(len(sizes))])
            n_or_nan = (u**2).sum()
            same = (sums**2).sum(axis=(0, 2)) - n_or_nan
            cross = (u.sum(axis=0) ** 2).sum() - n_or_nan - same
            same, cross = same / n_same, cross / (n * (n - 1) - n_same)
        return np.concatenate([[same[0], cross[0]], same[1:] - cross[1:]])

    def _row_influence(self, block: Block) -> np.ndarray:
        """Centred jackknife influence of each row: mean of the leave-one-out separations minus the row's, times
        sqrt((n - 1) / n); 0 for rows of senses with a single occurrence."""
        return np.stack([_influence(_labels(group), group.x) for group in block])

    def compute(self) -> dict[str, float | Estimate]:
        parts = np.stack(self.parts) if self.parts else np.empty((0, 2 + self.permutations))
        weights = self._group_scores().weights
        defined = np.isfinite(parts[:, :2]).all(axis=1)
        parts, weights = parts[defined], None if weights is None else weights[defined, None]
        order = np.lexsort(parts.T)  # so that the sum doesn't depend on the order of the words
        weights = None if weights is None else weights[order]
        means = finite_mean(parts[order], weights) if len(parts) else np.full(parts.shape[1], np.nan)
        low, high = np.percentile(means[2:], [2.5, 97.5]) if self.permutations else (np.nan, np.nan)
        return {
            **super().compute(),
            "same_sense": float(means[0]),
            "cross_sense": float(means[1]),
            "permuted": Estimate(float(means[2:].mean()) if self.permutations else np.nan, float(low), float(high)),
        }


def _influence(labels: Sequence[str], x: np.ndarray) -> np.ndarray:
    """Centred jackknife influence (n,) float64 of each row; NaN where the separation is undefined.

    No denominator is 0: with two senses of two or more rows each, pairs of both kinds remain when any row is left out.
    """
    _, codes, sizes = np.unique(np.array(labels), return_inverse=True, return_counts=True)
    at = np.flatnonzero(sizes[codes] > 1)
    codes, k, n = codes[at], sizes[codes[at]].astype(np.float64), len(at)
    if len(np.unique(codes)) < 2:
        return np.full(len(x), np.nan)
    u = x[at].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        u /= np.sqrt((u**2).sum(axis=1, keepdims=True))
        cosine, alike = u @ u.T, codes[:, None] == codes
        same, cross = (cosine * alike).sum(axis=1) - 1, (cosine * ~alike).sum(axis=1)
        n_same, n_cross = (k - 1).sum(), (n - k).sum()
        left = (same.sum() - 2 * same) / (n_same - 2 * (k - 1)) - (cross.sum() - 2 * cross) / (n_cross - 2 * (n - k))
    result = np.zeros(len(x))
    result[at] = (left.mean() - left) * np.sqrt((n - 1) / n)
    return result


def _labels(group: Group) -> tuple[str, ...]:
    if len(group.labels) != len(group.x):
        raise MetricError(
            f"sense_separation: word {group.key!r} has {len(group.x)} rows and {len(group.labels)} labels; "
            "expected one a row"
        )
    return group.labels
