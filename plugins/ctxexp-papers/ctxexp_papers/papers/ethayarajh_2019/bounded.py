"""Intervals of the authors' released per-layer figures, from how their code made them: wide, and right whatever the
model.

Their `analyze.py` (github.com/kawine/contextual, commit c10c992 and after) draws 1,000 sentences, a word of each, and
1,000 pairs of these words with replacement: the baseline is the pairs' mean cosine. What it says of sentences is the
mean over the 1,000. Cosines lie between -1 and 1, so that values of mean m have a variance of 1 - m^2 at the most
(Bhatia & Davis 2000), and the released figures an error that is known without the model. Self-similarity is by word:
its interval is over words.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.spans import Z
from ctxexp_papers.papers.ethayarajh_2019.contexts import ANISOTROPY, INTRA, SELF

DRAWS = 1000  # sentences, words and pairs of the released figures
PAIRED = 3.0
"""Times the variance of a cosine over DRAWS that a mean over pairs of drawn words has at the most: 2 by the words, of
which each is in many pairs (Hoeffding 1948), 1 by the pairs."""
ROUNDING = 0.0005


def bounded_mean(value: np.ndarray, times: float = 1.0) -> Estimates:
    """The mean of DRAWS values between -1 and 1 with an interval that holds in 95% of cases whatever they are, but for
    a mean's being nearly normal: all means m with |value - m| <= z sqrt(times (1 - m^2) / DRAWS).

    Args:
        value: (layers,) means.
        times: by how much their variance exceeds that of independent values.
    """
    k = times * Z**2 / DRAWS
    half = np.sqrt(np.maximum(k * (1 + k - value**2), 0.0)) / (1 + k)
    return Estimates(value, value / (1 + k) - half - ROUNDING, value / (1 + k) + half + ROUNDING)


def mean_of_words(table: pd.DataFrame) -> Estimates:
    """The mean over words (rows) by layer (columns) with its interval over words; NaN left out."""
    values = table.to_numpy(np.float64)
    mean, n = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    half = Z * np.nanstd(values, axis=0, ddof=1) / np.sqrt(n) + ROUNDING
    return Estimates(mean, mean - half, mean + half)


def adjusted(raw: Estimates, level: Estimates) -> Estimates:
    """Raw less its level, whose errors are independent."""
    value = raw.value - level.value
    low = value - np.hypot(raw.value - raw.low, level.high - level.value)
    return Estimates(value, low, value + np.hypot(raw.high - raw.value, level.value - level.low))


def corrected(raw: Estimates, level: Estimates) -> Estimates:
    """(raw - level) / (1 - level), from the worst ends of both to the best: it rises with raw and falls with level."""

    def share(x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.asarray((x - a) / np.maximum(1 - a, ROUNDING))

    ends = share(raw.low, level.high), share(np.minimum(raw.high, 1.0), level.low)
    return Estimates(share(raw.value, level.value), *ends)


def curves(similarity: pd.DataFrame, published: Mapping[Key, np.ndarray]) -> dict[Key, Estimates]:
    """Mean cosine, self-similarity and intra-sentence similarity of a model by layer, with intervals.

    Args:
        similarity: a row a word, a column a layer.
        published: the released per-layer figures.
    """
    level = bounded_mean(published[ANISOTROPY], PAIRED)
    found = {ANISOTROPY: level}
    for measure, raw in (
        (SELF, mean_of_words(similarity)),
        (INTRA, bounded_mean(published[Key(INTRA, "raw")])),
    ):
        found[Key(measure, "raw")] = raw
        found[Key(measure, "adjusted")] = adjusted(raw, level)
        found[Key(measure, "share_of_room")] = corrected(raw, level)
    return found
