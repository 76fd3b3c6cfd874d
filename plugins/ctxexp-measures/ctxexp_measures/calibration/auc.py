"""The area under the ROC curve by ranks, of pairs and of their bootstrap resamples."""

from __future__ import annotations

import numpy as np

from ctxexp.maths import midranks


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve, in [0, 1]: the chance that a positive outscores a negative, ties counting half.

    `score` (n,), `positive` (n,) bool. NaN if there are no positives or no negatives.
    """
    return float(resampled_auc(score, positive, np.ones((1, len(score))))[0])


def resampled_auc(score: np.ndarray, positive: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The area under the ROC curve in resamples given by counts (c, n): (c,); NaN where a class is missing."""
    positive = np.asarray(positive, bool)
    ups = counts[:, positive]
    n_up = ups.sum(axis=1)
    n_down = counts.sum(axis=1) - n_up
    ranked = (midranks(score, counts)[:, positive] * ups).sum(axis=1) if len(score) else np.zeros(len(counts))
    pairs = np.where(n_up * n_down > 0, n_up * n_down, np.nan)
    result: np.ndarray = (ranked - n_up * (n_up + 1) / 2) / pairs
    return result
