"""Length of sentences' first words beside that of the others: where a model parks attention, it is large."""

from __future__ import annotations

import numpy as np

from ctxexp import GroupMean, Reading


class FirstWordLength(GroupMean):
    """Mean over sentences of the length of the first word's vector over the mean length of the others, >= 0.

    Where nothing stands before a text, its first position becomes an attention sink in most large causal models: its
    vector is many times as long as the others (Xiao et al. 2023; Sun et al. 2024). The chance level, 1, is that of any
    word in the first one's place. Sentences of one word have no score.
    """

    over = "sentence"
    title = "Length of the first word"
    reading = Reading(unit="ratio", subject="sentences' first words", lower="shorter", higher="longer")
    definition = "length of the first word's vector over the mean length of the sentence's others"
    invariances = frozenset({"rotation", "scale"})

    def score(self, x: np.ndarray) -> np.ndarray:
        norms = np.linalg.norm(x.astype(np.float64), axis=-1)  # (..., n)
        others = norms[..., 1:].mean(axis=-1)
        return np.divide(norms[..., 0], others, out=np.full(others.shape, np.nan), where=others > 0)

    def baseline_value(self, x: np.ndarray) -> float:
        """1, whatever the words: the mean length over the mean length."""
        return 1.0 if len(x) >= self.min_rows and np.any(x) else float("nan")

    def influence(self, x: np.ndarray) -> np.ndarray:
        """0: a sentence's words are drawn together, so that only whole sentences move the mean."""
        return np.zeros(x.shape[:-1])

    def _baseline_influence(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x))
