"""The choice of a layer and a transform by scores of tasks, and its gains over the layers that one would use anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_compare.layer_choice.families import DesignEffect, design_effect, families_by_correlation, families_by_name
from ctxexp_compare.layer_choice.winner import (
    ALPHA,
    WinnerEstimate,
    regret_bound,
    simultaneous_quantile,
    winner_gain,
)

MIN_TASKS = 8  # behind an interval over tasks
MIN_FAMILIES = 3  # from which on intervals over tasks are taken where items are known too
MEAN: Literal["mean"] = "mean"
NONE = "none"
Over = Literal["tasks", "items"]
Families = Literal["given", "name", "correlation", "none"]  # how they are known
Place = int | Literal["mean"]  # a layer's number, or the mean of the layers


class Candidate(NamedTuple):
    """A way to get one vector: a layer's number, or `mean` of the layers, after a transform; of the untrained twin or
    not."""

    layer: Place
    transform: str = NONE
    twin: bool = False

    def __str__(self) -> str:
        place = "the mean of the layers" if self.layer == MEAN else f"layer {self.layer}"
        name = place if self.transform == NONE else f"{place} after {self.transform}"
        return f"{name}, untrained" if self.twin else name


@dataclass(frozen=True)
class ScoreTable:
    """Scores in points by task and candidate.

    `scores` is (tasks, candidates). `covariance` (tasks, candidates, candidates) is that of each task's scores over
    resamples of its items; None: single items aren't known. `families` are those of the tasks, empty: not given.
    """

    model: str
    tasks: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    scores: np.ndarray
    covariance: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    def columns(self, *, twin: bool) -> list[int]:
        """Numbers of the candidates that may be chosen: single layers of the model, or of its twin."""
        return [i for i, c in enumerate(self.candidates) if c.layer != MEAN and c.twin == twin]


class RivalGain(NamedTuple):
    """The gain over a rival: its estimate, and the mean over tasks where both were chosen on the other tasks."""

    rival: Candidate
    estimate: WinnerEstimate
    held_out: float

    @property
    def verdict(self) -> str:
        """Whether the interval lies above 0, below, or spans it."""
        if self.estimate.low > 0:
            return "better"
        return "worse" if self.estimate.high < 0 else "no difference that this data can show"


class LayerLoss(NamedTuple):
    """What a layer loses against the last one, in points, with the ends of an interval that holds for all layers at
    once (95%), so that it holds for one that was chosen by them."""

    layer: Candidate
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LayerChoice:
    """The best candidate of a table, its true score, its gains over rivals, and how much better another may be.

    `over` says what intervals draw anew: tasks, for a task like these, or the items of these very tasks. `held_out` is
    the mean score of the candidates that are chosen on other families' tasks, `regret` the 95% bound on what the truly
    best candidate has above this one, `may_be_best` the candidates that may be it.
    """

    table: ScoreTable
    over: Over
    best: Candidate
    score: WinnerEstimate
    held_out: float
    gains: Mapping[str, RivalGain]
    regret: float
    may_be_best: tuple[Candidate, ...]
    cut: LayerLoss | None = None  # the lowest layer that loses as little as was asked for
    chosen_without: Mapping[str, Candidate] = field(default_factory=dict)  # by task: the choice on other families'
    families: tuple[str, ...] = ()  # of the tasks; empty: they are taken as independent
    families_by: Families = "none"


def choose(
    table: ScoreTable,
    *,
    over: Over | Literal["auto"] = "auto",
    families: Literal["auto", "correlation", "none"] = "auto",
    loss: float | None = None,
    seed: int = 0,
) -> LayerChoice:
    """The best layer and transform of a table, with intervals that know of the choice.

    Args:
        table: Scores of at least one task.
        over: What intervals draw anew; auto: tasks where there are MIN_TASKS or more, in MIN_FAMILIES where items are
            known, else items.
        families: Which tasks are one family, the unit of intervals over tasks: auto for those that the table has, else
            those of known names, else by correlation over layers; none takes tasks as independent.
        loss: Points that a lower layer may lose against the last one; the choice's `cut` is the lowest that loses no
            more for certain (95%).
        seed: Of the draws behind simultaneous quantiles.

    Returns:
        The choice; rivals are `last`, `input`, `ends` (the better of these), `mean` and `twin`, those that the table
        has.

    Raises:
        MetricError: A score isn't finite, or there are too few tasks, or a single family, for an interval over them
            and no items.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> layers = tuple(Candidate(i) for i in range(4))
        >>> scores = np.array([50.0, 60.0, 58.0, 57.0]) + rng.normal(size=(12, 4))
        >>> chosen = choose(ScoreTable("mine", tuple(map(str, range(12))), layers, scores))
        >>> str(chosen.best), chosen.gains["last"].verdict
        ('layer 1', 'better')
    """
    groups, known_by = known_families(table, families)
    means, covariance, of_score, drawn = _estimates(table, over, groups)
    if drawn == "items":
        groups, known_by = (), "none"
    rng = np.random.default_rng(seed)
    own = table.columns(twin=False)
    by_name = {name: numbers for name, numbers in _rivals(table).items() if numbers}
    best = max(own, key=lambda i: means[i])
    gains = {}
    for name, numbers in by_name.items():
        rival = table.candidates[max(numbers, key=lambda i: means[i])]
        # an untrained network's layers are nearly tied: its best one counts as named beforehand
        estimate = winner_gain(means, covariance, own, numbers, rng, rival_is_given=name == "twin")
        gains[name] = RivalGain(rival, estimate, _held_out(table.scores, own, numbers, groups))
    regret, may_be_best = regret_bound(means, covariance, own, rng)
    return LayerChoice(
        table,
        drawn,
        table.candidates[best],
        winner_gain(means, of_score, own, (), rng),
        _held_out(table.scores, own, (), groups),
        gains,
        regret,
        tuple(table.candidates[i] for i in may_be_best),
        None if loss is None else _lowest(table, means, covariance, loss, rng),
        {t: table.candidates[i] for t, i in zip(table.tasks, _without_each(table.scores, own, groups), strict=False)},
        groups,
        known_by,
    )


def known_families(table: ScoreTable, families: str) -> tuple[tuple[str, ...], Families]:
    """The families of a table's tasks, and how they are known; none where each task is one of its own."""
    if families == "none":
        return (), "none"
    of_correlation = families_by_correlation(table.scores[:, table.columns(twin=False)])
    by_source: dict[Families, tuple[str, ...]] = {
        "given": table.families, "name": families_by_name(table.tasks), "correlation": of_correlation
    }  # fmt: skip
    for source, groups in by_source.items():
        if groups and (families == "auto" or source == families):
            return (groups, source) if len(set(groups)) < len(groups) else ((), source)
    return (), "none"


def _estimates(table: ScoreTable, over: str, groups: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, Over]:
    """Mean scores (m,), their covariance (m, m) for differences and for a score, and what was drawn anew for it."""
    n, n_families = len(table.tasks), len(set(groups)) or len(table.tasks)
    if not np.isfinite(table.scores).all():
        i, j = np.argwhere(~np.isfinite(table.scores))[0]
        raise MetricError(
            f"{table.model}: {table.tasks[i]} has no score at {table.candidates[j]}; leave the task out, or measure "
            "another pooling (a first piece's input layer is the same for all sentences)"
        )
    means, items = table.scores.mean(axis=0), table.covariance
    if over == "tasks" and n < MIN_TASKS:
        raise MetricError(
            f"over=tasks: {n} tasks; expected {MIN_TASKS} or more to tell how tasks differ, or over=items"
        )
    if over == "tasks" or (over == "auto" and n >= MIN_TASKS and (items is None or n_families >= MIN_FAMILIES)):
        if n_families < 2:
            raise MetricError(
                f"{table.model}: all {n} tasks are of one family, {groups[0]}; expected two families or more to tell "
                "how tasks differ, over=items, or families=none"
            )
        single = np.cov(table.scores.T) / n
        own = table.scores[:, table.columns(twin=False)]
        effects = design_effect(own, groups), design_effect(own, groups, of_level=True)
        return means, single * _variance_inflation(effects[0]), single * _variance_inflation(effects[1]), "tasks"
    if items is None:
        raise MetricError(
            f"{table.model}: {n} tasks by their scores alone; expected {MIN_TASKS} or more tasks, since a score "
            "doesn't say how sure it is"
        )
    covariance = items.sum(axis=0) / n**2
    return means, covariance, covariance, "items"


def _lowest(
    table: ScoreTable, means: np.ndarray, covariance: np.ndarray, loss: float, rng: np.random.Generator
) -> LayerLoss:
    """The lowest layer, without a transform, that loses at most so much; the last one itself loses 0."""
    plain = [i for i in table.columns(twin=False) if table.candidates[i].transform == NONE]
    last = plain[-1]
    quantile = simultaneous_quantile(covariance, plain, [last], rng, ALPHA)
    for i in plain:
        value = float(means[last] - means[i])
        reach = quantile * float(np.sqrt(max(covariance[i, i] + covariance[last, last] - 2 * covariance[i, last], 0.0)))
        if value + reach <= loss or i == last:
            return LayerLoss(table.candidates[i], value, value - reach, value + reach)
    raise AssertionError  # the last layer is among them


def _variance_inflation(effect: DesignEffect) -> float:
    """Factor on the covariance of independent tasks, for families, and for normal quantiles to stand for Student's."""
    from scipy.special import ndtri, stdtrit

    tail = 1 - ALPHA / 2
    return effect.factor * float(stdtrit(effect.df, tail) / ndtri(tail)) ** 2


def _rivals(table: ScoreTable) -> dict[str, list[int]]:
    """Numbers of each rival's candidates."""
    plain = [i for i in table.columns(twin=False) if table.candidates[i].transform == NONE]
    mean = [i for i, c in enumerate(table.candidates) if c == (MEAN, NONE, False)]
    has_input = bool(plain) and table.candidates[plain[0]].layer == 0 and len(plain) > 1
    return {
        "last": plain[-1:],
        "input": plain[:1] if has_input else [],
        "ends": [plain[0], plain[-1]] if has_input else [],
        "mean": mean,
        "twin": table.columns(twin=True),
    }


def _without_each(scores: np.ndarray, among: Sequence[int], groups: Sequence[str]) -> np.ndarray:
    """(tasks,) for each task the best of these columns on the mean of other families' tasks; empty for one family."""
    _, number = np.unique(np.array(groups or range(len(scores))), return_inverse=True)
    if number.max(initial=0) == 0:
        return np.empty(0, np.int64)
    sums = np.zeros((number.max() + 1, scores.shape[1]))
    np.add.at(sums, number, scores)
    others = (scores.sum(axis=0) - sums[number])[:, list(among)]
    return np.array(among)[others.argmax(axis=1)]


def _held_out(scores: np.ndarray, candidates: Sequence[int], rivals: Sequence[int], groups: Sequence[str]) -> float:
    """The mean over tasks of what the candidate chosen on other families' tasks has above the rival chosen likewise;
    NaN for a single task."""
    chosen, every = _without_each(scores, candidates, groups), np.arange(len(scores))
    if not len(chosen):
        return float("nan")
    value = scores[every, chosen]
    return float(np.mean(value - scores[every, _without_each(scores, rivals, groups)] if len(rivals) else value))
