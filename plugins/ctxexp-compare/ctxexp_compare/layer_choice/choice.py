"""The choice of a layer and a transform by scores of tasks, and its gains over the layers that one would use anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths import Resamples
from ctxexp_compare.layer_choice.winners import WinnerEstimate, regret_bound, winner_gain

MIN_TASKS = 8  # behind an interval over tasks
MEAN: Literal["mean"] = "mean"
NONE = "none"
Over = Literal["tasks", "items"]


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
    resamples of its items; None: single items aren't known.
    """

    model: str
    tasks: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    scores: np.ndarray
    covariance: np.ndarray | None = None
    notes: tuple[str, ...] = ()

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


@dataclass(frozen=True)
class LayerChoice:
    """The best candidate of a table, its true score, its gains over rivals, and how much better another may be.

    `over` says what intervals draw anew: tasks, for a task like these, or the items of these very tasks. `regret` is
    the 95% bound on what the truly best candidate has above this one, `may_be_best` the candidates that may be it.
    """

    table: ScoreTable
    over: Over
    best: Candidate
    score: WinnerEstimate
    held_out: float
    gains: Mapping[str, RivalGain]
    regret: float
    may_be_best: tuple[Candidate, ...]
    chosen_without: Mapping[str, Candidate] = field(default_factory=dict)  # by task: the choice on the others


def choose(table: ScoreTable, *, over: Over | Literal["auto"] = "auto", seed: int = 0) -> LayerChoice:
    """The best layer and transform of a table, with intervals that know of the choice.

    Args:
        table: Scores of at least one task.
        over: What intervals draw anew; auto: tasks where there are MIN_TASKS or more, else items.
        seed: Of the draws behind simultaneous quantiles.

    Returns:
        The choice; rivals are `last`, `input`, `ends` (the better of these), `mean` and `twin`, those that the table
        has.

    Raises:
        MetricError: A score isn't finite, or there are too few tasks for an interval over them and no items.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> layers = tuple(Candidate(i) for i in range(4))
        >>> scores = np.array([50.0, 60.0, 58.0, 57.0]) + rng.normal(size=(12, 4))
        >>> chosen = choose(ScoreTable("mine", tuple(map(str, range(12))), layers, scores))
        >>> str(chosen.best), chosen.gains["last"].verdict
        ('layer 1', 'better')
    """
    means, covariance, drawn = _estimates(table, over)
    rng = np.random.default_rng(seed)
    own = table.columns(twin=False)
    by_name = {name: numbers for name, numbers in _rivals(table).items() if numbers}
    best = max(own, key=lambda i: means[i])
    gains = {}
    for name, numbers in by_name.items():
        rival = table.candidates[max(numbers, key=lambda i: means[i])]
        # the layers of an untrained network are nearly tied
        estimate = winner_gain(means, covariance, own, numbers, rng, rival_is_given=name == "twin")
        gains[name] = RivalGain(rival, estimate, _held_out(table.scores, own, numbers))
    regret, may_be_best = regret_bound(means, covariance, own, rng)
    return LayerChoice(
        table,
        drawn,
        table.candidates[best],
        winner_gain(means, covariance, own, (), rng),
        _held_out(table.scores, own, ()),
        gains,
        regret,
        tuple(table.candidates[i] for i in may_be_best),
        {t: table.candidates[i] for t, i in zip(table.tasks, _without_each(table.scores, own), strict=False)},
    )


def _estimates(table: ScoreTable, over: str) -> tuple[np.ndarray, np.ndarray, Over]:
    """Mean scores (m,), their covariance (m, m), and what was drawn anew for it."""
    n = len(table.tasks)
    if not np.isfinite(table.scores).all():
        i, j = np.argwhere(~np.isfinite(table.scores))[0]
        raise MetricError(
            f"{table.model}: {table.tasks[i]} has no score at {table.candidates[j]}; leave the task out, or measure "
            "another pooling (a first piece's input layer is the same for all sentences)"
        )
    if over == "tasks" or (over == "auto" and n >= MIN_TASKS):
        if n < MIN_TASKS:
            raise MetricError(
                f"over=tasks: {n} tasks; expected {MIN_TASKS} or more to tell how tasks differ, or over=items"
            )
        # Resamples.student() is for a variance over n instead of n - 1
        wider = Resamples.student(n) ** 2 * (n - 1) / n
        return table.scores.mean(axis=0), np.cov(table.scores.T) / n * wider, "tasks"
    if table.covariance is None:
        raise MetricError(
            f"{table.model}: {n} tasks by their scores alone; expected {MIN_TASKS} or more tasks, since a score "
            "doesn't say how sure it is"
        )
    return table.scores.mean(axis=0), table.covariance.sum(axis=0) / n**2, "items"


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


def _without_each(scores: np.ndarray, among: Sequence[int]) -> np.ndarray:
    """(tasks,) for each task the best of these columns on the mean of the other tasks; none for a single task."""
    if len(scores) < 2:
        return np.empty(0, np.int64)
    others = (scores.sum(axis=0) - scores)[:, list(among)]
    result: np.ndarray = np.array(among)[others.argmax(axis=1)]
    return result


def _held_out(scores: np.ndarray, candidates: Sequence[int], rivals: Sequence[int]) -> float:
    """The mean over tasks of what the candidate chosen on the other tasks has above the rival chosen likewise; NaN for
    a single task."""
    if len(scores) < 2:
        return float("nan")
    every = np.arange(len(scores))
    value = scores[every, _without_each(scores, candidates)]
    return float(np.mean(value - scores[every, _without_each(scores, rivals)] if len(rivals) else value))
