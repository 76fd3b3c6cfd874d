"""Length of sentences' first words beside that of the others: where a model parks attention, it is large."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.metric import GroupMean, Over


class FirstWordLength(GroupMean):
    """Mean over sentences of the length of the first word's vector over the median length of the others, >= 0.

    Where nothing stands before a text, its first position becomes an attention sink in most causal models: its vector
    is many times as long as the others (Xiao et al. 2023; Sun et al. 2024). At the chance level a random occurrence
    stands in the first word's place. Sentences of one word have no score.
    """

    over: ClassVar[Over] = "sentence"
    title = "Length of the first word"
    unit: ClassVar[str] = "ratio"
    subject: ClassVar[str] = "sentences' first words"
    lower: ClassVar[str] = "shorter"
    higher: ClassVar[str] = "longer"
    definition = "length of the first word's vector over the median length of the sentence's others"
    invariances = frozenset({"rotation", "scale"})

    def score(self, x: np.ndarray) -> np.ndarray:
        norms = np.linalg.norm(x.astype(np.float64), axis=-1)  # (..., n)
        others = np.median(norms[..., 1:], axis=-1)
        ratio: np.ndarray = np.divide(norms[..., 0], others, out=np.full(others.shape, np.nan), where=others > 0)
        return ratio
