"""Sense separation: whether a word's vectors lie closer to those of the same sense than to those of another."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.groups import Block, Group
from ctxexp.maths.resampling import Stream
from ctxexp.maths.statistics import finite_mean
from ctxexp.metric import Estimate, GroupMean, Reading


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
    """

    over = "sense"
    title = "Separation of word senses"
    unit = "cosine"
    reading = Reading(subject="the senses of a word", lower="less separate", higher="more separate")
    definition = "mean cosine of a word's same-sense pairs minus that of its cross-sense pairs"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def __init__(self, *, sample: int | None = None, permutations: int = 200, seed: int = 0) -> None:
        if permutations < 0 or seed < 0:
            raise MetricError(
                f"permutations={permutations}, seed={seed}: expected 0 or more of each (0: no chance level)"
            )
        super().__init__(sample=sample)
        self.permutations, self.seed = permutations, seed
        self.parts: list[np.ndarray] = []  # one for each word: same, cross, permuted separations

    def score(self, x: np.ndarray) -> np.ndarray:
        """NaN: rows without labels have no separation."""
        return np.full(x.shape[:-2], np.nan)

    def baseline_value(self, x: np.ndarray) -> float:
        return float("nan")

    def _update_block(self, block: Block) -> None:
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
        result: np.ndarray = np.concatenate([[same[0], cross[0]], same[1:] - cross[1:]])
        return result

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
