"""Word norm: how long the vectors are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Self

import numpy as np

from ctxexp.maths.geometry import norms
from ctxexp.metric import GroupBy, Metric, summary


class WordNorm(Metric):
    """Mean, median and spread over occurrences of the vectors' Euclidean norm, >= 0. It has no chance level."""

    over: ClassVar[GroupBy] = "occurrence"
    title = "Length of word vectors"
    unit: ClassVar[str] = "l2 norm"
    definition = "mean Euclidean norm of an occurrence's vector"
    invariances = frozenset({"rotation", "permutation"})

    def __init__(self) -> None:
        self._norms: list[np.ndarray] = []

    def update(self, key: Hashable, x: np.ndarray) -> None:
        self.update_block([key], x[None])

    def update_block(self, keys: Sequence[Hashable], x: np.ndarray) -> None:
        self._norms.append(norms(x).ravel())

    def merge(self, other: Self) -> None:
        self._norms.extend(other._norms)

    def compute(self) -> dict[str, float]:
        """raw (mean), median, sd (ddof 1), n occurrences."""
        return summary(np.concatenate(self._norms) if self._norms else np.empty(0))
