"""The choice of a layer and a transform by scores of tasks, and its gains over the layers that one would use anyway.

The best of several noisy scores looks better than it is, so that its plain interval misses its true score far more
often than it says. Here the true value of the winner, or of its gain over a rival that may have been chosen too, gets
the hybrid interval of Andrews, Kitagawa and McCloskey (2024, Inference on Winners, Quarterly Journal of Economics 139,
section 5): conditional on who won, the estimate is a truncated normal (Lee, Sun, Sun and Taylor 2016, Exact
post-selection inference, theorem 5.2); the true value is sought inside an interval that holds for all comparisons at
once with probability 1 - BETA, so that the ends stay finite. Coverage lies between 95% and 95.5% where scores are
normal and their covariance is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ctxexp.errors import MetricError
from ctxexp_compare.layer_choice.families import (
    DesignEffect,
    design_effect,
    families_by_correlation,
    families_by_name,
)

LEVEL, BETA = 0.05, 0.005
DRAWS = 4000  # of the normal distribution behind simultaneous quantiles
STEPS = 60  # of bisection: far below rounding


@dataclass(frozen=True)
class WinnerEstimate:
    """A true value of a winner: its median-unbiased estimate, and the ends of its 95% interval."""

    value: float
    low: float
    high: float
    plain: float  # the estimate that knows nothing of the choice


def winner_gain(
    means: np.ndarray,
    covariance: np.ndarray,
    candidates: Sequence[int],
    rivals: Sequence[int],
    rng: np.random.Generator,
    *,
    rival_is_given: bool = False,
) -> WinnerEstimate:
    """The gain of the best candidate over the best rival, both chosen by these means.

    Args:
        means: (m,) estimates, about normal.
        covariance: (m, m) theirs.
        candidates: Numbers of the means of which the largest was chosen.
        rivals: Those of the rivals, of which the largest counts; empty: the candidate's own value is estimated.
        rng: Draws for the simultaneous quantile.
        rival_is_given: Whether the best rival is taken as if it had been named beforehand. Where rivals are nearly
            tied, that they were chosen tells next to nothing of the gain, but makes its conditional interval
            lopsided. The gain comes out too small rather than too large by it.

    Returns:
        The gain in the units of the means; 0 for certain where the winner is that rival itself.
    """
    winner, rival = _largest(means, candidates), _largest(means, rivals) if len(rivals) else None
    contrast = np.zeros(len(means))
    contrast[winner] += 1
    if rival is not None:
        contrast[rival] -= 1
    value = float(contrast @ means)
    error = float(np.sqrt(max(contrast @ covariance @ contrast, 0.0)))
    if not contrast.any() or error <= 1e-12 * (1 + float(np.abs(means).max())):
        return WinnerEstimate(value, value, value, value)
    lost = [(j, winner) for j in candidates if j != winner]
    lost += [] if rival is None or rival_is_given else [(j, rival) for j in rivals if j != rival]
    bounds = truncation(means, covariance, contrast, lost)
    width = simultaneous_quantile(covariance, candidates, rivals, rng) * error
    level = (LEVEL - BETA) / (1 - BETA)
    low, middle, high = (_solve(value, error, bounds, width, tail) for tail in (1 - level / 2, 0.5, level / 2))
    return WinnerEstimate(middle, low, high, value)


def truncation(
    means: np.ndarray, covariance: np.ndarray, contrast: np.ndarray, lost: Sequence[tuple[int, int]]
) -> tuple[float, float]:
    """The interval in which the contrast of the means must lie for each `(j, i)` of `lost` to have means[j] at most
    means[i], whatever is independent of the contrast held fixed (the polyhedral lemma)."""
    slope = covariance @ contrast / (contrast @ covariance @ contrast)
    value = contrast @ means
    low, high = -np.inf, np.inf
    for j, i in lost:
        rate, gap = slope[j] - slope[i], means[j] - means[i]  # gap + rate * (y - value) must stay at most 0
        if abs(rate) < 1e-12:
            continue
        edge = value - min(gap, 0.0) / rate
        low, high = (low, min(high, edge)) if rate > 0 else (max(low, edge), high)
    return float(low), float(high)


def simultaneous_quantile(
    covariance: np.ndarray, candidates: Sequence[int], rivals: Sequence[int], rng: np.random.Generator
) -> float:
    """The 1 - BETA quantile of the largest |t| over all candidates, against all rivals where there are some."""
    noise = draws(covariance, rng)
    own = noise[:, list(candidates)]
    differences = own[:, :, None] - noise[:, None, list(rivals)] if len(rivals) else own[:, :, None]
    variance = np.diag(covariance)
    spread = variance[list(candidates), None]
    if len(rivals):
        spread = spread + variance[None, list(rivals)] - 2 * covariance[np.ix_(list(candidates), list(rivals))]
    differs = spread > 1e-12 * variance.max()
    t = np.abs(differences[:, differs]) / np.sqrt(spread[differs])
    return float(np.quantile(t.max(axis=1), 1 - BETA))


def regret_bound(
    means: np.ndarray, covariance: np.ndarray, candidates: Sequence[int], rng: np.random.Generator
) -> tuple[float, list[int]]:
    """How much better than the winner the truly best candidate is at most (95%), and the candidates that may be it.

    Multiple comparisons with the best (Hsu 1984, Annals of Statistics 12): only comparisons with the truly best one
    need to hold at once. As that isn't known, each candidate in its place has a quantile of its own.
    """
    own = np.array(candidates)
    x, s = means[own], covariance[np.ix_(own, own)]
    noise, variance = draws(s, rng), np.diag(s)
    winner, most, may_be_best = int(x.argmax()), 0.0, []
    for k in range(len(own)):
        error = np.sqrt(np.maximum(variance + variance[k] - 2 * s[k], 0.0))
        others = error > 1e-12 * (1 + np.sqrt(variance.max()))
        reach = np.zeros(len(own))
        if others.any():
            t = (noise[:, others] - noise[:, k, None]) / error[others]
            reach[others] = np.quantile(t.max(axis=1), 1 - LEVEL) * error[others]
        above = x[k] - x + reach
        if (np.delete(above, k) >= 0).all():
            may_be_best.append(int(own[k]))
            most = max(most, float(above[winner]) if k != winner else 0.0)
    return most, may_be_best


def draws(covariance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(DRAWS, m) of the centred normal distribution; a covariance of any rank will do."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    result: np.ndarray = rng.standard_normal((DRAWS, len(values))) @ root.T
    return result


def _largest(means: np.ndarray, among: Sequence[int]) -> int:
    numbers = np.array(among)
    return int(numbers[means[numbers].argmax()])


def _solve(value: float, error: float, bounds: tuple[float, float], width: float, tail: float) -> float:
    """The true value at which the estimate, truncated, lies below `value` with probability `tail`."""
    low, high = value - width, value + width
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _probability(value, middle, error, bounds, width) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _probability(value: float, mean: float, error: float, bounds: tuple[float, float], width: float) -> float:
    """P(Y <= value) of a normal Y about `mean`, truncated to `bounds` and to `width` about the mean."""
    a, b = (max(bounds[0], mean - width) - mean) / error, (min(bounds[1], mean + width) - mean) / error
    at = min(max((value - mean) / error, a), b)
    whole = _mass(a, b)
    return _mass(a, at) / whole if whole > 0 else 0.5


def _mass(a: float, b: float) -> float:
    """The standard normal's probability between a and b, precise in both tails."""
    from scipy.special import ndtr

    return float(ndtr(-a) - ndtr(-b) if a > 0 else ndtr(b) - ndtr(a))


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
    chosen_without: Mapping[str, Candidate] = field(default_factory=dict)  # by task: the choice on other families'
    families: tuple[str, ...] = ()  # of the tasks; empty: they are taken as independent
    families_by: Families = "none"


def choose(
    table: ScoreTable,
    *,
    over: Over | Literal["auto"] = "auto",
    families: Literal["auto", "correlation", "none"] = "auto",
    seed: int = 0,
) -> LayerChoice:
    """The best layer and transform of a table, with intervals that know of the choice.

    Args:
        table: Scores of at least one task.
        over: What intervals draw anew; auto: tasks where there are MIN_TASKS or more, in MIN_FAMILIES where items are
            known, else items.
        families: Which tasks are one family, the unit of intervals over tasks: auto for those that the table has, else
            those of known names, else by correlation over layers; none takes tasks as independent.
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
        # the layers of an untrained network are nearly tied
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
        return means, single * _widening(effects[0]), single * _widening(effects[1]), "tasks"
    if items is None:
        raise MetricError(
            f"{table.model}: {n} tasks by their scores alone; expected {MIN_TASKS} or more tasks, since a score "
            "doesn't say how sure it is"
        )
    covariance = items.sum(axis=0) / n**2
    return means, covariance, covariance, "items"


def _widening(effect: DesignEffect) -> float:
    """What a covariance of independent tasks is multiplied by, for a normal quantile to stand for Student's."""
    from scipy.special import ndtri, stdtrit

    tail = 1 - LEVEL / 2
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
    """(tasks,) for each task the best of these columns on the mean of the tasks of other families; none for one."""
    _, number = np.unique(np.array(groups or range(len(scores))), return_inverse=True)
    if number.max(initial=0) == 0:
        return np.empty(0, np.int64)
    sums = np.zeros((number.max() + 1, scores.shape[1]))
    np.add.at(sums, number, scores)
    others = (scores.sum(axis=0) - sums[number])[:, list(among)]
    result: np.ndarray = np.array(among)[others.argmax(axis=1)]
    return result


def _held_out(scores: np.ndarray, candidates: Sequence[int], rivals: Sequence[int], groups: Sequence[str]) -> float:
    """The mean over tasks of what the candidate chosen on other families' tasks has above the rival chosen likewise;
    NaN for a single task."""
    chosen, every = _without_each(scores, candidates, groups), np.arange(len(scores))
    if not len(chosen):
        return float("nan")
    value = scores[every, chosen]
    return float(np.mean(value - scores[every, _without_each(scores, rivals, groups)] if len(rivals) else value))
