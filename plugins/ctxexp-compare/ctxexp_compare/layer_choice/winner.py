"""A true value of the best of several noisy estimates, with an interval that knows that it was chosen by them.

The best of several noisy scores looks better than it is, so that its plain interval misses its true score far more
often than it says. Here the true value of the winner, or of its gain over a rival that may have been chosen too, gets
the hybrid interval of Andrews, Kitagawa and McCloskey (2024, Inference on Winners, Quarterly Journal of Economics 139,
section 5): conditional on who won, the estimate is a truncated normal (Lee, Sun, Sun and Taylor 2016, Exact
post-selection inference, theorem 5.2); the true value is sought inside an interval that holds for all comparisons at
once with probability 1 - BETA, so that the ends stay finite. Coverage lies between 95% and 95.5% where scores are
normal and their covariance is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALPHA, BETA = 0.05, 0.005
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
    level = (ALPHA - BETA) / (1 - BETA)
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
    covariance: np.ndarray,
    candidates: Sequence[int],
    rivals: Sequence[int],
    rng: np.random.Generator,
    alpha: float = BETA,
) -> float:
    """The 1 - alpha quantile of the largest |t| over all candidates, against all rivals where there are some."""
    noise = draws(covariance, rng)
    own = noise[:, list(candidates)]
    differences = own[:, :, None] - noise[:, None, list(rivals)] if len(rivals) else own[:, :, None]
    variance = np.diag(covariance)
    spread = variance[list(candidates), None]
    if len(rivals):
        spread = spread + variance[None, list(rivals)] - 2 * covariance[np.ix_(list(candidates), list(rivals))]
    differs = spread > 1e-12 * variance.max()
    t = np.abs(differences[:, differs]) / np.sqrt(spread[differs])
    return float(np.quantile(t.max(axis=1), 1 - alpha)) if t.size else 0.0


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
            reach[others] = np.quantile(t.max(axis=1), 1 - ALPHA) * error[others]
        above = x[k] - x + reach
        if (np.delete(above, k) >= 0).all():
            may_be_best.append(int(own[k]))
            most = max(most, float(above[winner]) if k != winner else 0.0)
    return most, may_be_best


def draws(covariance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(DRAWS, m) of the centred normal distribution; a covariance of any rank will do."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.standard_normal((DRAWS, len(values))) @ root.T


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
