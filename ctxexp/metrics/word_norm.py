"""Word norm: how long the vectors are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.maths.summary import summary
from ctxexp.measuring.groups import Block, Group
from ctxexp.metric import Metric, Over


class WordNorm(Metric):
    """Mean, median and spread over occurrences of the vectors' Euclidean norm, >= 0. It has no chance level."""

    over: ClassVar[Over] = "occurrence"
    title = "Length of word vectors"
    unit: ClassVar[str] = "l2 norm"
    subject: ClassVar[str] = "word vectors"
    lower: ClassVar[str] = "shorter"
    higher: ClassVar[str] = "longer"
    definition = "mean Euclidean norm of an occurrence's vector"
    invariances = frozenset({"rotation", "permutation"})

    def __init__(self) -> None:
        self._norms: list[np.ndarray] = []

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        self._norms.append(block.prepared_rows.norms.ravel())

    def compute(self) -> dict[str, float]:
        """raw (mean), median, sd (ddof 1), n occurrences."""
        return summary(np.concatenate(self._norms) if self._norms else np.empty(0))
