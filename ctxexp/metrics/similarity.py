"""What metrics of gold pairs share: the pairs' similarities, kept by task, and intervals over resampled pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.maths.correlation import percentiles
from ctxexp.measuring.groups import Group, Pairs, paired
from ctxexp.measuring.pair_resamples import Statistics, replicates_of
from ctxexp.metric import Estimate, Metric, Over

Similarity = Literal["cosine", "dot", "euclidean"]
SIMILARITIES: dict[str, str] = {"cosine": "cosine", "dot": "dot product", "euclidean": "negative Euclidean distance"}
ROWS = 4096  # pairs compared at a time
AVERAGE = "avg"  # stands where a task's name stands, for the mean over tasks


def similarities(x: np.ndarray, y: np.ndarray, kind: str = "cosine") -> np.ndarray:
    """Similarity of each row of x (n, d) with that row of y (n, d): (n,) float64, NaN where undefined.

    cosine: in [-1, 1], as 1 - |u - v|^2 / 2 of the unit rows, which is exactly 1 for equal rows (so that equal
    sentences tie) and keeps its precision near 1. dot: the dot product. euclidean: minus the Euclidean distance.
    """
    result = np.empty(len(x))
    for at in range(0, len(x), ROWS):
        a, b = (np.asarray(side[at : at + ROWS], np.float64) for side in (x, y))
        with np.errstate(invalid="ignore", divide="ignore"):
            if kind == "cosine":
                u, v = (side / np.sqrt((side**2).sum(1, keepdims=True)) for side in (a, b))
                value = 1 - ((u - v) ** 2).sum(1) / 2
            elif kind == "dot":
                value = (a * b).sum(1)
            else:
                value = -np.sqrt(((a - b) ** 2).sum(1))
        result[at : at + ROWS] = value
    result[~np.isfinite(result)] = np.nan
    return result


@dataclass(frozen=True)
class Scored:
    """The pairs of one sub-set: columns `similarity`, `gold` and those of the metric's own, each (n,) float64."""

    subset: str
    columns: dict[str, np.ndarray]
    ends: np.ndarray  # (n, 2) the pairs' sentences

    def __len__(self) -> int:
        return len(self.columns["gold"])

    @property
    def defined(self) -> np.ndarray:
        """Which pairs have both similarity and gold: (n,) bool."""
        known: np.ndarray = np.isfinite(self.columns["similarity"]) & np.isfinite(self.columns["gold"])
        return known

    def of(self, *names: str) -> list[np.ndarray]:
        """Columns of the defined pairs."""
        return [self.columns[name][self.defined] for name in names]


def joined(parts: Sequence[Scored]) -> Scored:
    """All pairs of the sub-sets, one after the other."""
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
    return Scored("", columns, np.concatenate([p.ends for p in parts]))


@dataclass
class Found:
    """A task's statistics: values by name, their replicates (each (r,)), and counts, which tasks add up."""

    values: dict[str, float]
    replicates: dict[str, np.ndarray]
    counts: dict[str, int] = field(default_factory=dict)

    def estimates(self, main: str) -> dict[str, float | Estimate]:
        """Values, each with its interval if it has replicates, which `main` keeps; then counts."""
        found: dict[str, float | Estimate] = {name: float(value) for name, value in self.values.items()}
        for name, drawn in self.replicates.items():
            found[name] = Estimate(self.values[name], *percentiles(drawn), drawn if name == main else None)
        return found | {name: float(count) for name, count in self.counts.items()}


def average(tasks: Sequence[Found]) -> Found:
    """The unweighted mean over tasks of every value and replicate (NaN if a task's is); counts are added."""
    first = tasks[0]
    return Found(
        {name: float(np.mean([t.values[name] for t in tasks])) for name in first.values},
        {name: np.mean([t.replicates[name] for t in tasks], axis=0) for name in first.replicates},
        {name: sum(t.counts[name] for t in tasks) for name in first.counts},
    )


class SimilarityMetric(Metric):
    """A measure of how a pair's similarity goes with what is known of the pair, task by task.

    A pair whose similarity is undefined (the cosine of a zero vector) is left out and counted. Where the corpus has
    several tasks the names of statistics begin with the task (`STS12/all`), and `avg/...` is the mean over tasks, NaN
    if a task's value is. Intervals: 95%, percentile bootstrap over pairs, resampled within each sub-set, those that
    share a sentence together (`ctxexp.measuring.pair_resamples`); the same pairs in each layer.
    """

    over: ClassVar[Over] = "pair"

    def __init__(self, *, similarity: Similarity = "cosine") -> None:
        if similarity not in SIMILARITIES:
            raise ConfigError(f"similarity={short(similarity)}: no such choice{near(str(similarity), SIMILARITIES)}")
        self.similarity = similarity
        self._parts: dict[str, Scored] = {}
        self._rng, self._draws = np.random.default_rng(0), 0

    def resample(self, rng: np.random.Generator, replicates: int) -> None:
        self._rng, self._draws = rng, replicates

    def update(self, group: Group) -> None:
        subset, pairs = str(group.key), paired(group)
        if subset in self._parts:
            raise MetricError(f"sub-set {subset!r} came twice; expected all of its pairs in one update")
        n = len(pairs)
        columns = {
            "similarity": similarities(group.x[:, 0], group.x[:, 1], self.similarity),
            "gold": np.array(pairs.gold, np.float64),
        }
        ends = np.arange(2 * n).reshape(n, 2) if pairs.ends is None else np.array(pairs.ends)
        self._parts[subset] = Scored(subset, {**columns, **self.columns(subset, pairs)}, ends)

    def columns(self, subset: str, pairs: Pairs) -> Mapping[str, np.ndarray]:
        """More about each pair, by name, each (n,) float64."""
        return {}

    def resampled(self, parts: Sequence[Scored], statistics: Statistics) -> dict[str, np.ndarray]:
        """The statistics' replicates (r,), of counts (c, n) of the pairs of all parts."""
        none = {name: values[:0] for name, values in statistics(np.ones((1, sum(map(len, parts))))).items()}
        return none | replicates_of([part.ends for part in parts], self._draws, self._rng, statistics)

    @abstractmethod
    def task(self, parts: Sequence[Scored]) -> Found:
        """The statistics of one task, of its sub-sets."""

    def compute(self) -> dict[str, float | Estimate]:
        tasks = self.tasks()
        if not tasks:
            raise MetricError("no gold pairs: choose a data set that has them, such as sts_b, sick_r or sts")
        found = {name: self.task(parts) for name, parts in tasks.items()}
        if len(found) == 1:
            (only,) = found.values()
            return only.estimates(self.main)
        found[AVERAGE] = average(list(found.values()))
        of_tasks = {name: task.estimates(self.main) for name, task in found.items()}
        return {f"{name}/{key}": value for name, task in of_tasks.items() for key, value in task.items()}

    def tasks(self) -> dict[str, list[Scored]]:
        """The sub-sets by task, the name's part before the slash, in order of appearance."""
        tasks: dict[str, list[Scored]] = {}
        for subset, part in self._parts.items():
            tasks.setdefault(subset.split("/")[0] or "other", []).append(part)
        return tasks


def undefined(parts: Sequence[Scored]) -> dict[str, int]:
    """How many pairs have a similarity (`n`), and how many have none (`undefined`)."""
    n = sum(int(p.defined.sum()) for p in parts)
    return {"n": n, "undefined": sum(map(len, parts)) - n}
