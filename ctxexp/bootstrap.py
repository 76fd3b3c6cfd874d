"""Percentile bootstrap over groups that also redraws the chance level: every resample serves all layers at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ctxexp.baselines import Matched

CHUNK = 2**21  # counts drawn at a time


def counts(size: int, replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each of `size` things is drawn, `size` draws with replacement: (c, size) float64, c rows at a time."""
    step = max(1, CHUNK // max(size, 1))
    for at in range(0, replicates, step):
        c = min(step, replicates - at)
        drawn = rng.integers(0, size, (c, size), dtype=np.int32)
        drawn += (np.arange(c, dtype=np.int32) * size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=c * size).reshape(c, size).astype(np.float64)


def interval(replicates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2.5% and 97.5% percentiles over the first axis, NaN where fewer than two replicates are defined."""
    defined = np.isfinite(replicates).sum(axis=0) > 1
    low, high = np.full((2, replicates.shape[1]), np.nan)
    if defined.any():
        low[defined], high[defined] = np.nanpercentile(replicates[:, defined], [2.5, 97.5], axis=0)
    return low, high


class Resampled:
    """Means of resampled groups: scores (n_groups, columns), one column per layer and measure, NaN left out.

    A column with fewer than two defined scores has NaN means: a single group says nothing about the spread of groups.
    `sizes` (n_groups,) ascending; `matched` weighs, per replicate, the chance level of the groups' own sizes.
    """

    def __init__(
        self,
        scores: np.ndarray,
        sizes: np.ndarray,
        replicates: int,
        rng: np.random.Generator,
        matched: tuple[Matched, list[np.ndarray]] | None = None,
    ) -> None:
        finite = np.isfinite(scores)
        filled = np.where(finite, scores, 0.0)
        whole = finite.all(axis=0)
        alone = finite.sum(axis=0) < 2
        distinct, first = np.unique(sizes, return_index=True)
        ladder = matched[0].weights(distinct) if matched else None  # (distinct sizes, rungs)
        levels = _levels(matched[1], replicates, rng) if matched else None  # (replicates, rungs, columns)
        n_columns = scores.shape[1]
        self.means = np.full((replicates, n_columns), np.nan)
        self.chance = np.full((replicates, n_columns), np.nan)
        done = 0
        with np.errstate(invalid="ignore"):
            for drawn in counts(len(scores), replicates, rng):
                now = slice(done, done + len(drawn))
                done += len(drawn)
                totals = np.full((len(drawn), n_columns), float(len(scores)))
                if not whole.all():
                    totals[:, ~whole] = drawn @ finite[:, ~whole]
                self.means[now] = np.where(alone, np.nan, drawn @ filled / totals)
                if ladder is None or levels is None:
                    continue
                usual = np.add.reduceat(drawn, first, axis=1) @ ladder  # (c, rungs)
                for column in range(n_columns):
                    weight = usual
                    if not whole[column]:
                        weight = np.add.reduceat(drawn * finite[:, column], first, axis=1) @ ladder
                    self.chance[now, column] = weighted(weight, levels[now, :, column])


def weighted(weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Weighted mean over the last axis; rungs without a level are left out."""
    known = np.isfinite(levels)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = (weights * np.where(known, levels, 0)).sum(-1) / (weights * known).sum(-1)
    return result


def _levels(draws: list[np.ndarray], replicates: int, rng: np.random.Generator) -> np.ndarray:
    """Mean of resampled draws, rung by rung: draws[k] is (draws, columns); (replicates, rungs, columns).

    Resamples of few draws spread too little, as a variance that divides by k instead of k - 1: `unbiased` widens them.
    """
    result = np.full((replicates, len(draws), draws[0].shape[1]), np.nan)
    for k, scores in enumerate(draws):
        finite = np.isfinite(scores)
        filled, wider = np.where(finite, scores, 0.0), unbiased(finite.sum(axis=0))
        done = 0
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = filled.sum(axis=0) / finite.sum(axis=0)
            for drawn in counts(len(scores), replicates, rng):
                means = drawn @ filled / (drawn @ finite)
                result[done : done + len(drawn), k] = centre + (means - centre) * wider
                done += len(drawn)
    return result


def unbiased(k: np.ndarray) -> np.ndarray:
    """sqrt(k / (k - 1)): what deviations of k values from their own mean lack; 1 where k is below 2."""
    return np.sqrt(np.where(k > 1, k / np.maximum(k - 1, 1), 1.0))
