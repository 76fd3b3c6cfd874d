"""Leave out the first places of each sentence."""

from __future__ import annotations

import numpy as np

from ctxexp.control import Control
from ctxexp.errors import ConfigError
from ctxexp.model import TextStart


class NoFirst(Control):
    """The `first` places of each text are encoded but not measured: a causal model's first word sees no other word, and
    is its attention sink where nothing stands before it (Xiao et al. 2023).

    Places count every unit of the text that has a vector, punctuation included; what the tokenizer or `model.prefix`
    puts before the text has none."""

    name = "no_first"

    def __init__(self, *, first: int = 1) -> None:
        if first < 1:
            raise ConfigError(
                f"control no_first needs first of at least 1 place, got {first}; control=none leaves all in"
            )
        self.first = first
        self.label = "no first word" if first == 1 else f"no first {first} words"

    def note(self, start: TextStart | None) -> str:
        if start is None or not start.tokens:
            return ""
        return f"places are the text's own; what stands before it is never measured: {start}"

    def skips(self, places: np.ndarray) -> np.ndarray:
        out: np.ndarray = places < self.first
        return out
