"""Intra-sentence similarity: how alike the words of a sentence are to their mean."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp.errors import MetricError
from ctxexp.maths import influence
from ctxexp.maths.geometry import mean_cosine, mean_cosine_to_mean
from ctxexp.measuring.one_pass.additive import Addends, Additive, Batch, Found, OnePass, Sums, mean_and_spread
from ctxexp.metric import GroupMean, Over


class IntraSentenceSimilarity(GroupMean, OnePass):
    """Mean over sentences of the mean cosine of their words to the sentence's mean vector (Ethayarajh 2019,
    Definition 2).

    The chance level is, as in the paper, the mean cosine of unrelated occurrences, although the measure itself grows
    as the sentence gets shorter: for unit vectors it is sqrt((1 + (n - 1) c) / n), c the mean cosine within the
    sentence. `size_matched` adds the level that removes this, the same score on equally many random occurrences.
    `sample`: so many random sentences only (the paper: 500). `unit_norm`: scale words to norm 1 before taking the
    mean, so that a few long vectors don't rule it.
    """

    over: ClassVar[Over] = "sentence"
    title = "Intra-sentence similarity"
    unit: ClassVar[str] = "cosine"
    cosine_level: ClassVar[str] = "baseline"

    def __init__(self, *, sample: int | None = None, unit_norm: bool = False, size_matched: bool = False) -> None:
        super().__init__(sample=sample, size_matched=size_matched)
        self.unit_norm = unit_norm
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"row_scale"} if unit_norm else set()))
        self.variant = "unit_norm" if unit_norm else ""
        words = "its words scaled to norm 1" if unit_norm else "its words"
        self.definition = f"mean cosine of a sentence's words to the mean of {words} (Definition 2)"

    def score(self, x: np.ndarray) -> np.ndarray:
        return mean_cosine_to_mean(x, unit_norm=self.unit_norm)

    def null(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    def influence(self, x: np.ndarray) -> np.ndarray:
        return influence.of_mean_cosine_to_mean(x, unit_norm=self.unit_norm)

    def null_influence(self, x: np.ndarray) -> np.ndarray:
        return influence.of_mean_cosine(x)

    def additive(self) -> Additive:
        if self.size_matched:
            raise MetricError("size_matched=true measures random groups")
        return _SentenceScores(unit_norm=self.unit_norm)


class _SentenceScores(Additive):
    """From the scores of whole sentences, which a batch holds: their number, their sum, that of their squares."""

    def __init__(self, *, unit_norm: bool) -> None:
        self.unit_norm, self.name = unit_norm, f"intra-sentence{' unit norm' if unit_norm else ''}"

    def addends(self, batch: Batch) -> Addends:
        n, total = batch.lengths, batch.units_of_sentences
        mean = total if self.unit_norm else batch.rows_of_sentences
        length = mean.square().sum(1).sqrt()
        score = ((mean * total).sum(1) / (n * length)).clamp(-1.0, 1.0)
        scale = n if self.unit_norm else (n * batch.by_sentence(batch.norms.square())).sqrt()
        known = (
            (n > 1) & (length > 16 * float(np.finfo(np.float32).eps) * scale) & score.isfinite()
        )  # as in the stored form
        score = score.where(known, 0.0)
        sums = {"": score.sum(), " squared": score.square().sum(), " n": known.sum(), " undefined": (~known).sum()}
        return Addends(whole={f"{self.name}{what}": each.to(n.dtype) for what, each in sums.items()})

    def found(self, sums: Sums) -> Found:
        n, total, squares, undefined = self._read(sums)
        return Found({**mean_and_spread(n, total, squares), "undefined": undefined})

    def moved(self, part: Sums, whole: Sums) -> float:
        (n, total, *_), (own, of_part, *_) = self._read(whole), self._read(part)
        return (of_part - own * total / n) / n if n else float("nan")

    def _read(self, sums: Sums) -> tuple[float, ...]:
        """Sentences with a score, the sum of the scores, that of their squares, sentences without one."""
        return tuple(float(sums.whole[f"{self.name}{what}"]) for what in (" n", "", " squared", " undefined"))
