"""Word in Context by layer: accuracy at telling from the cosine of two usages whether they have one sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ctxexp import Corpus, Estimate, Reading
from ctxexp.errors import DataError
from ctxexp.maths import resamples
from ctxexp_measures.senses.corpora.usages import USAGE, Compared
from ctxexp_measures.senses.usages.metric import UsageMetric, normalized

TRAIN = "train"


class Wic(UsageMetric):
    """Accuracy of a threshold on the cosine of two usages, fitted on the training pairs, in [0, 1]; chance is 0.5.

    A pair is said to have one sense if its cosine is at the threshold or above: that with the most right answers among
    the training pairs, the smallest of several. By sub-set (`dev/accuracy`, `test/accuracy`, and `train/accuracy`,
    which is what was fitted). Beside it the same with what is no meaning at all: `form`, whether both are spelled
    alike but for case, and `position`, how far apart their places in their sentences are. Intervals draw pairs anew,
    the threshold as it is. `threshold` is that of the cosine.
    """

    needs: ClassVar[str] = "metric wic compares usages in pairs that share a sense or don't"
    dataset: ClassVar[str] = "dataset=wic"
    title = "Word in Context"
    reading = Reading(
        unit="accuracy",
        subject="the usages of a word",
        lower="harder to tell apart",
        higher="easier to tell apart",
        main="accuracy",
    )
    definition = "accuracy of a threshold on the cosine of two usages, fitted on train"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def require(self, corpus: Corpus) -> None:
        super().require(corpus)
        there = {pair.subset for pair in getattr(corpus, "compared", ())}
        if TRAIN not in there or len(there) < 2:
            raise DataError(
                f"{self.needs}: corpus {corpus.name!r} has none to train on and to test; use {self.dataset}"
            )

    def compute(self) -> dict[str, float | Estimate]:
        if self.corpus is None:
            return {"threshold": float("nan")}
        pairs, ends, places = self._pairs()
        gold = np.array([pair.gold > 0.5 for pair in pairs], bool)
        subset = np.array([pair.subset for pair in pairs])
        u = normalized(self.x)
        words = [self.corpus.sentences[s].words[p].casefold() for s, p in places]
        scores = {
            "accuracy": np.vecdot(u[ends[:, 0]], u[ends[:, 1]]) if len(ends) else np.empty(0),
            "form": np.array([words[i] == words[j] for i, j in ends.tolist()], np.float64),
            "position": -np.abs(np.array([places[i][1] - places[j][1] for i, j in ends.tolist()], np.float64)),
        }
        is_defined = np.isfinite(scores["accuracy"])
        statistics: dict[str, float | Estimate] = {}
        train = is_defined & (subset == TRAIN)
        fitted = {name: threshold(score[train], gold[train]) for name, score in scores.items()}
        for part in dict.fromkeys(pair.subset for pair in self.corpus.compared):
            mine = is_defined & (subset == part)
            for name, score in scores.items():
                right = (score[mine] >= fitted[name]) == gold[mine]
                statistics[f"{part}/{name}"] = self._share(right) if name == "accuracy" else _mean(right)
            statistics[f"{part}/n"] = float(mine.sum())
            of_part = sum(pair.subset == part for pair in self.corpus.compared)
            statistics[f"{part}/undefined"] = float(of_part - mine.sum())
        return {**statistics, "threshold": fitted["accuracy"]}

    def _pairs(self) -> tuple[Sequence[Compared], np.ndarray, list[tuple[int, int]]]:
        """The pairs whose usages are both among `names`, their usages' numbers (n, 2), and every usage's sentence and
        word."""
        assert self.corpus is not None
        number = {name: i for i, name in enumerate(self.names)}
        pairs = [p for p in self.corpus.compared if p.first in number and p.second in number]
        ends = np.array([(number[p.first], number[p.second]) for p in pairs], np.int64).reshape(-1, 2)
        places = [(-1, -1)] * len(self.names)
        for s, labels in enumerate(self.corpus.tags[USAGE]):
            for position, label in enumerate(labels):
                if label in number:
                    places[number[label]] = (s, position)
        return pairs, ends, places

    def _share(self, right: np.ndarray) -> Estimate:
        if not len(right):
            return Estimate(float("nan"), float("nan"), float("nan"))
        rng, n = self.resampling
        draws = [counts @ right / len(right) for counts in resamples([len(right)], n, rng)]
        replicates = np.concatenate([np.empty(0), *draws])
        return Estimate.of(_mean(right), replicates)


def threshold(score: np.ndarray, gold: np.ndarray) -> float:
    """The smallest value that parts score (n,) at or above it from the rest with the most right answers; `gold` (n,)
    says which are positive. Infinity if calling nothing positive is best; NaN of nothing."""
    if not len(score):
        return float("nan")
    order = np.argsort(score, kind="stable")
    values, ups = score[order], gold[order].astype(np.int64)
    # at or above the k-th value: its positives above are right, and the negatives below
    right = (ups.sum() - np.cumsum(ups) + ups) + (np.cumsum(1 - ups) - (1 - ups))
    first = np.concatenate([[True], values[1:] != values[:-1]])
    right = np.append(np.where(first, right, -1), (1 - ups).sum())
    return float(np.append(values, np.inf)[int(np.argmax(right))])


def _mean(right: np.ndarray) -> float:
    return float(right.mean()) if len(right) else float("nan")
