"""Word in Context by layer: accuracy at telling from the cosine of two usages whether they have one sense."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ctxexp import Corpus, Estimate, Reading, Text
from ctxexp.errors import DataError
from ctxexp.maths import resamples
from ctxexp_measures.senses.attributes import TextMetric, tags_of_rows
from ctxexp_measures.senses.corpora.usages import USAGE, Compared, Usages

TRAIN = "train"
NEEDS = "metric wic compares usages in pairs that share a sense or don't"


class Wic(TextMetric):
    """Accuracy of a threshold on the cosine of two usages, fitted on the training pairs, in [0, 1]; chance is 0.5.

    A pair is said to have one sense if its cosine is at the threshold or above: that with the most right answers among
    the training pairs, the smallest of several. By sub-set (`dev/accuracy`, `test/accuracy`, and `train/accuracy`,
    which is what was fitted). Beside it the same with what is no meaning at all: `form`, whether both are spelled
    alike but for case, and `position`, how far apart their places in their sentences are. Intervals draw pairs anew,
    the threshold as it is. `threshold` is that of the cosine.
    """

    over = "occurrence"
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

    def __init__(self) -> None:
        self.corpus: Usages | None = None
        self.names: list[str] = []  # of the usages, in x's order
        self.x = np.empty((0, 0), np.float32)  # (usages, d); NaN where the tokenizer or a control leaves a usage out
        self._at = np.empty(0, np.int64)

    def require(self, corpus: Corpus) -> None:
        if not isinstance(corpus, Usages) or USAGE not in corpus.tags:
            raise DataError(
                f"{NEEDS}, but corpus {corpus.name!r} has none; choose a data set that does, as dataset=wic"
            )
        there = {pair.subset for pair in corpus.compared}
        if TRAIN not in there or len(there) < 2:
            raise DataError(f"{NEEDS}: corpus {corpus.name!r} has none to train on and to test; use dataset=wic")

    def bind_text(self, text: Text) -> None:
        super().bind_text(text)
        assert isinstance(text.corpus, Usages)  # `require` has seen it
        self.corpus = text.corpus
        rows = np.unique(text.occurrences.by_sentence.rows)
        labels = tags_of_rows(text, USAGE, rows)
        self.names = [label for label in labels if label]
        self._at = np.full(len(text.occurrences.forms), -1, np.int64)
        self._at[rows[[bool(label) for label in labels]]] = np.arange(len(self.names))

    def take(self, text: Text, rows: np.ndarray, x: np.ndarray) -> None:
        x = x.reshape(rows.size, -1)
        if not self.x.shape[1]:
            self.x = np.full((len(self.names), x.shape[1]), np.nan, np.float32)
        at = self._at[rows.ravel()]
        self.x[at[at >= 0]] = x[at >= 0]

    def compute(self) -> dict[str, float | Estimate]:
        if self.corpus is None:
            return {"threshold": float("nan")}
        pairs, ends, places = self._pairs()
        gold = np.array([pair.gold > 0.5 for pair in pairs], bool)
        subset = np.array([pair.subset for pair in pairs])
        wide = self.x.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN for a usage without a direction
            u = wide / np.sqrt(np.vecdot(wide, wide))[:, None]
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
