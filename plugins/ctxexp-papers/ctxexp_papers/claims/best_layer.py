"""Is a middle layer better than the ends? The best layer is held out, and a verdict covers the search for it.

The layer that is best on average is best in part by luck. So the gain that is shown is held out: for each task the
layer is chosen on the other tasks, and so is the rival among the ends. Its bootstrap interval over tasks is shown
beside it but can't decide alone: the choices of all tasks are nearly one choice, so that in worlds without a gain it
lies beyond 0 in 10% to 30%. What decides is an interval of the true best middle layer's gain over the true best end:
low, the largest lower bound of any middle layer, by a bound that covers all layers and ends at once (the bootstrap of
the largest t); high, the largest upper bound of any, each by itself, since all of them must lie below for the claim to
fail (an intersection-union test; Berger 1982). Where tasks are in families, a whole family is held out, and intervals
are wider by the design effect that all comparisons of layers show together, and by Student's t of so few families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ctxexp_compare.layer_choice.families import design_effect
from scipy.special import stdtrit

RESAMPLES = 5000
MIN_TASKS = 8


@dataclass(frozen=True)
class Gain:
    """A gain, its bootstrap interval over tasks, the interval that decides, and the layers that were chosen."""

    value: float
    low: float
    high: float
    least: float  # of the true best middle layer's gain over the true best end
    most: float
    layers: tuple[int, ...]  # chosen for one task or more, the most often chosen first
    by_task: np.ndarray
    wider: float = 1.0  # than of independent tasks these intervals are, for families

    @property
    def passed(self) -> bool | None:
        """Whether there is a gain; None where either interval spans 0."""
        if min(self.low, self.least) > 0:
            return True
        return False if max(self.high, self.most) < 0 else None


def best_layer_gain(
    scores: np.ndarray,
    *,
    rivals: Sequence[int],
    candidates: Sequence[int] | None = None,
    rng: np.random.Generator,
    n_refuting: int = 1,
    n_confirming: int = 1,
    resamples: int = RESAMPLES,
    families: Sequence[str] = (),
) -> Gain:
    """The gain of the best candidate layer over the best rival.

    Args:
        scores: (tasks, layers), all finite; tasks are independent but for their families.
        rivals: Layers to beat, from 0; the best of them counts.
        candidates: Layers to choose from; None: all between the first and the last.
        rng: Draws the resamples of tasks.
        n_refuting: Comparisons of which any one refutes a claim, such as one a model: `most` is Bonferroni-corrected.
        n_confirming: Comparisons of which any one confirms it: `least` is corrected.
        resamples: How many.
        families: Of each task its family's name; empty: each is one of its own.

    Returns:
        The gain in the units of the scores.

    Raises:
        ValueError: With fewer than MIN_TASKS tasks, without a candidate, or with scores that aren't finite.
    """
    n, layers = scores.shape
    middle = np.array(range(1, layers - 1) if candidates is None else candidates)
    ends = np.array(rivals)
    if n < MIN_TASKS or not len(middle) or not np.isfinite(scores).all():
        raise ValueError(
            f"expected finite scores of {MIN_TASKS} tasks and three layers at the least, got {scores.shape}"
        )
    _, number = np.unique(np.array(families or range(n)), return_inverse=True)
    sums = np.zeros((number.max() + 1, layers))
    np.add.at(sums, number, scores)
    others = (scores.sum(axis=0) - sums[number]) / (n - np.bincount(number))[number, None]
    chosen = middle[others[:, middle].argmax(axis=1)]
    rival = ends[others[:, ends].argmax(axis=1)]
    by_task = scores[np.arange(n), chosen] - scores[np.arange(n), rival]
    weights = rng.multinomial(n, np.full(n, 1 / n), resamples) / n
    wider = family_widening(scores, families)
    value = by_task.mean()
    low, high = value + wider * (np.quantile(weights @ by_task, [0.025, 0.975]) - value)
    differences = scores[:, middle, None] - scores[:, None, ends]
    least, most = _simultaneous(differences, weights, n_refuting, n_confirming, wider)
    values, counts = np.unique(chosen, return_counts=True)
    order = tuple(int(i) for i in values[np.argsort(-counts, kind="stable")])
    return Gain(float(value), float(low), float(high), least, most, order, by_task, wider)


def family_widening(scores: np.ndarray, families: Sequence[str]) -> float:
    """How many times as wide intervals over tasks are for their families; 1 where none are known."""
    effect, tail = design_effect(scores, families), 0.975
    return float(np.sqrt(effect.factor) * stdtrit(effect.df, tail) / stdtrit(len(scores) - 1, tail))


def _simultaneous(
    differences: np.ndarray, weights: np.ndarray, n_refuting: int, n_confirming: int, wider: float
) -> tuple[float, float]:
    """The interval of max over candidates of min over rivals of the true difference, from those by task (tasks,
    candidates, rivals) and resamples' weights (resamples, tasks)."""
    n = len(differences)
    mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n)
    means = np.tensordot(weights, differences, 1)
    spread = np.tensordot(weights, differences**2, 1) - means**2
    floor = np.finfo(np.float64).tiny
    t = (means - mean) / np.sqrt(np.maximum(spread / (n - 1), floor))
    t = np.where(spread > floor, t, 0.0)
    least = mean - np.quantile(t.max(axis=(1, 2)), 1 - 0.025 / n_confirming) * error * wider
    most = mean - np.quantile(t, 0.025 / (mean.shape[1] * n_refuting), axis=0) * error * wider
    return float(least.min(axis=1).max()), float(most.min(axis=1).max())
