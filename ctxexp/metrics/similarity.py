"""The measures of contextuality: how alike a word's vectors are across its contexts, the words of a sentence to their
mean and unrelated occurrences to each other, how well one static vector could stand for a word, and how long vectors
are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ctxexp.files import write_csv
from ctxexp.groups import Block, Group
from ctxexp.maths import resampling
from ctxexp.maths.geometry import (
    BINS,
    Definition,
    PreparedRows,
    explained_variance,
    histogram,
    mean_cosine,
    mean_cosine_to_mean,
    takes_prepared,
)
from ctxexp.maths.statistics import summary
from ctxexp.metrics import OF_RUN, GroupMean, Metric, Output, Reading

DEFINITIONS = {
    "uncentred": "uncentred, as printed: share of the first squared singular value (Definition 3)",
    "centred": "centred: share of the first principal component",
    "released": "as released: variance along the first uncentred direction over that about the mean",
}
MAX_OCCURRENCES = 2000  # at most, whose pairs are listed one by one
FILE = "cosine_histogram.csv"


class SelfSimilarity(GroupMean):
    """Mean over words of the mean cosine between a word's occurrences, in [-1, 1] (Ethayarajh 2019, Definition 1).

    1: the contexts change nothing. The chance level is the mean cosine of unrelated occurrences. Exact over all
    pairs; the released code samples at most 1,000 pairs per word. `sample`: so many random words only.

    sample: so many random words only
    baselines: what it is held against, such as [run, size_matched]
    """

    over = "word"
    title = "Self-similarity of words"
    reading = Reading(
        unit="cosine",
        subject="words",
        lower="more context-specific",
        higher="less context-specific",
        main="raw",
        maximum=1.0,
        extremes=("most_self_similar", "least_self_similar"),
    )
    definition = "mean cosine over all pairs of a word's occurrences (Definition 1)"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})
    cosine_statistic: ClassVar[str] = "baseline"

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return mean_cosine(x)

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return resampling.mean_cosine_influence(x)


class IntraSentenceSimilarity(GroupMean):
    """Mean over sentences of the mean cosine of their words to the sentence's mean vector (Ethayarajh 2019,
    Definition 2).

    The chance level is, as in the paper, the mean cosine of unrelated occurrences, although the measure itself grows
    as the sentence gets shorter: for unit vectors it is sqrt((1 + (n - 1) c) / n), c the mean cosine within the
    sentence. Size-matched random groups, as a second one of the `baselines`, remove this. `sample`: so many random
    sentences only (the paper: 500). `unit_norm`: scale words to norm 1 before taking the mean, so that a few long
    vectors don't rule it.

    sample: so many random sentences only; the paper took 500
    unit_norm: words at norm 1 before the mean, so that long vectors don't rule it
    """

    over = "sentence"
    title = "Intra-sentence similarity"
    reading = Reading(
        unit="cosine",
        subject="the words of a sentence",
        lower="less alike",
        higher="more alike",
        main="raw",
        maximum=1.0,
    )
    cosine_statistic: ClassVar[str] = "baseline"

    def __init__(
        self, *, sample: int | None = None, unit_norm: bool = False, baselines: Sequence[str] = (OF_RUN,)
    ) -> None:
        super().__init__(sample=sample, baselines=baselines)
        self.unit_norm = unit_norm
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"row_scale"} if unit_norm else set()))
        self.variant = "unit_norm" if unit_norm else ""
        words = "its words scaled to norm 1" if unit_norm else "its words"
        self.definition = f"mean cosine of a sentence's words to the mean of {words} (Definition 2)"

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return mean_cosine_to_mean(x, unit_norm=self.unit_norm)

    def baseline_value(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return resampling.mean_cosine_to_mean_influence(x, unit_norm=self.unit_norm)

    def _baseline_influence(self, x: np.ndarray) -> np.ndarray:
        return resampling.mean_cosine_influence(x)


class MaxExplainableVariance(GroupMean):
    """Mean over words of the share of variance that one direction explains, in [0, 1] (Ethayarajh 2019, Definition 3).

    Word and chance level are always by the same definition. The share falls with the number of rows even for noise: at
    768 dimensions .22 at 5 rows, .005 at 1,000. So `baselines=[size_matched]`, the default, is the same score on random
    groups of the word's own size. `[run]` is the paper's way, the score on the rows of the run's `baseline=` (1,000),
    with which noise has an adjusted share of .22 at 5 rows; `[run,size_matched]` has the other one beside it.

    definition: uncentred (as printed), centred (PCA) or released (what the published code computed)
    sample: so many random words only
    baselines: random groups of the word's own size; run: the rows of the run's baseline, as the paper
    """

    over = "word"
    title = "Maximum explainable variance"
    reading = Reading(
        unit="share",
        subject="words",
        lower="harder to replace by one vector each",
        higher="easier to replace by one vector each",
        main="raw",
        line=0.05,  # "on average, less than 5% of the variance" (Section 4.3)
        maximum=1.0,
    )

    def __init__(
        self,
        *,
        definition: Definition = "uncentred",
        baselines: Sequence[str] = ("size_matched",),
        sample: int | None = None,
    ) -> None:
        super().__init__(sample=sample, baselines=baselines)
        self._of: Definition = definition
        self.variant = "" if definition == "uncentred" else definition
        shift = {"shift"} if definition == "centred" else set()
        self.invariances = frozenset({"rotation", "scale", "permutation"} | shift)
        self.definition = DEFINITIONS[definition]

    @takes_prepared
    def score(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return explained_variance(x, definition=self._of)

    @takes_prepared
    def influence(self, x: np.ndarray | PreparedRows) -> np.ndarray:
        return resampling.explained_variance_influence(x, definition=self._of)


class Anisotropy(Metric):
    """Mean cosine over all pairs of the baseline's random occurrences, in [-1, 1]; 0 for directions spread evenly.

    The baseline decides whether it is computed from a random sample or, in closed form, over all pairs of occurrences
    of different sentences; the interval is over the corpus's documents or sentences. `positive_pairs` is the share of
    the sample's pairs with a cosine above 0, in [0, 1] (in the histograms that Liang et al. 2021 plot, hardly any is
    below); of more than 2,000 occurrences, 2,000 evenly spaced ones are paired. The histogram of their cosines, with
    one column per layer, is saved as cosine_histogram.csv.
    """

    over = "sample"
    title = "Anisotropy"
    reading = Reading(
        unit="cosine", subject="unrelated words", lower="less alike", higher="more alike", main="mean_cosine"
    )
    cosine_statistic: ClassVar[str] = "mean_cosine"
    definition = "mean cosine over all pairs of random occurrences"
    invariances = frozenset({"rotation", "scale", "row_scale", "permutation"})

    def __init__(self) -> None:
        self._value, self._n = math.nan, 0
        self._histogram = np.zeros(BINS, np.int64)
        self._positive = math.nan

    def update(self, group: Group) -> None:
        if group.key != 0:
            return  # 0 is the sample itself, the others are redraws
        x = group.x
        self._value, self._n = self.baseline_value(x), len(x)
        if len(x) > MAX_OCCURRENCES:
            x = x[np.linspace(0, len(x) - 1, MAX_OCCURRENCES).round().astype(int)]
        self._histogram, self._positive = histogram(x)

    def compute(self) -> dict[str, float]:
        """mean_cosine and positive_pairs of the sample, n occurrences."""
        return {"mean_cosine": self._value, "positive_pairs": self._positive, "n": float(self._n)}

    def baseline_value(self, x: np.ndarray) -> float:
        return float(mean_cosine(x))

    def outputs(self) -> dict[str, Histogram]:
        return {"cosine_histogram": Histogram(self._histogram)}


@dataclass(frozen=True)
class Histogram(Output):
    """How many pairs of a layer have a cosine in each bin."""

    counts: np.ndarray  # (BINS,) int64

    def write_together(self, by_place: Mapping[str, Histogram], folder: Path, *, n_layers: int, title: str) -> None:
        """Write one table of all layers: each bin's lower and upper edge, and the number of pairs of each layer."""
        import pandas as pd

        edges = (2 * np.arange(BINS + 1) - BINS) / BINS
        columns = {place: by_place[place].counts.tolist() for place in sorted(by_place)}
        table = pd.DataFrame({"from": edges[:-1], "to": edges[1:], **columns})
        write_csv(table, folder / FILE)


class WordNorm(Metric):
    """Mean, median and spread over occurrences of the vectors' Euclidean norm, >= 0. It has no chance level."""

    over = "occurrence"
    title = "Length of word vectors"
    reading = Reading(unit="l2 norm", subject="word vectors", lower="shorter", higher="longer")
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
        with np.errstate(invalid="ignore"):  # of an infinite length
            return summary(np.concatenate(self._norms) if self._norms else np.empty(0))
