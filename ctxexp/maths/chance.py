"""Cosines against their chance level, on a scale whose ends both mean something."""

from __future__ import annotations

import numpy as np

ROOM = 1e-4
"""The least 1 - level at which a value is given: below it rounding of single precision (1e-7) is no longer small."""


def chance_corrected(adjusted: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The chance-corrected cosine (raw - A) / (1 - A), float64: 0 at chance, 1 where all vectors are one.

    Adjusted cosines, raw - A, can't exceed 1 - A: in a narrow space all of them are small, whatever they mean. As with
    Cohen's kappa (1960) the excess over chance is divided by the largest that there is room for. It is negative below
    chance, without a bound. It holds A twice, so that it must not be correlated with A.

    Args:
        adjusted: raw - A, any shape.
        level: A, the mean cosine of unrelated occurrences, of a shape that broadcasts with it.

    Returns:
        The corrected values; NaN where 1 - A is not above ROOM, or either is NaN.
    """
    room = 1.0 - np.asarray(level, np.float64)
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.asarray(adjusted, np.float64) / np.where(room > ROOM, room, np.nan)
    return result
