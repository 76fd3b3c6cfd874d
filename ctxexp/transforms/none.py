"""`transform=none`: the space as the model has it."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp.transform import Transform


class Nothing(Transform):
    """The vectors as they are; costs nothing, since measuring then reads the store itself."""

    identity = True

    def fit(self, x: np.ndarray) -> Self:
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x
