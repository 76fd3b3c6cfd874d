"""Without the first places of each sentence."""

from __future__ import annotations

import numpy as np

from ctxexp.control import Control
from ctxexp.errors import ConfigError


class NoFirst(Control):
    """The `first` places of each sentence are encoded but not measured: a causal model's first word sees only itself,
    and may serve as an attention sink. Places count every unit that has a vector, punctuation included."""

    name = "no_first"

    def __init__(self, *, first: int = 1) -> None:
        if first < 1:
            raise ConfigError(
                f"control no_first needs first of at least 1 place, got {first}; control=none leaves all in"
            )
        self.first = first
        self.words = "no first word" if first == 1 else f"no first {first} words"

    def skips(self, places: np.ndarray) -> np.ndarray:
        out: np.ndarray = places < self.first
        return out
