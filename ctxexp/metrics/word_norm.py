"""Word norm: how long the vectors are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.maths.geometry import norms
from ctxexp.maths.summary import summary
from ctxexp.measuring.one_pass.additive import Addends, Additive, Batch, Found, OnePass, Sums, mean_and_spread
from ctxexp.metric import Block, Group, Metric, Over


class WordNorm(Metric, OnePass):
    """Mean, median and spread over occurrences of the vectors' Euclidean norm, >= 0. It has no chance level."""

    over: ClassVar[Over] = "occurrence"
    title = "Length of word vectors"
    unit: ClassVar[str] = "l2 norm"
    definition = "mean Euclidean norm of an occurrence's vector"
    invariances = frozenset({"rotation", "permutation"})

    def __init__(self) -> None:
        self._norms: list[np.ndarray] = []

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        self._norms.append(norms(block.x).ravel())

    def compute(self) -> dict[str, float]:
        """raw (mean), median, sd (ddof 1), n occurrences."""
        return summary(np.concatenate(self._norms) if self._norms else np.empty(0))

    def additive(self) -> Additive:
        return _Lengths()


class _Lengths(Additive):
    """From the number of rows, the sum of their lengths and that of the squares."""

    def addends(self, batch: Batch) -> Addends:
        norms = batch.norms
        return Addends(whole={"rows": batch.lengths.sum(), "norms": norms.sum(), "norms squared": norms.square().sum()})

    def found(self, sums: Sums) -> Found:
        return Found(mean_and_spread(*(float(sums.whole[name]) for name in ("rows", "norms", "norms squared"))))
