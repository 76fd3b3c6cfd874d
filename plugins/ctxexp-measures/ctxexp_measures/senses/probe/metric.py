"""Labels that a linear classifier reads out of a layer: `metric=probe`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from ctxexp import Corpus, Estimate, Reading, Text
from ctxexp.datasets import user_path
from ctxexp.maths import Curve, Resamples
from ctxexp_measures.senses.attributes import TextMetric, once
from ctxexp_measures.senses.components.estimate import ValueWithInfluence
from ctxexp_measures.senses.components.metric import to_estimate
from ctxexp_measures.senses.probe.task import SENSE, ProbeTask, probe_task, read_lexicon, require_labels

Classifier = Literal["logistic", "ridge"]


def linear(name: str) -> Any:
    """An unfitted scikit-learn classifier: multinomial logistic regression (C = 1), or ridge regression of the labels'
    indicators (alpha = 1), which is quicker."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier

    return LogisticRegression(max_iter=2000, tol=1e-3) if name == "logistic" else RidgeClassifier()


def predictions(x: np.ndarray, label: np.ndarray, fold: np.ndarray, problem: np.ndarray, classifier: str) -> np.ndarray:
    """(n,) the label of each row of x (n, d) as predicted by a classifier of its problem fitted on the other folds.

    Columns are brought to mean 0 and variance 1 by the rows of the other folds. Where these have one label of the
    problem alone, that is predicted; where they have none, -1.
    """
    from sklearn.preprocessing import StandardScaler

    predicted = np.full(len(label), -1, np.int64)
    for k in np.unique(fold):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(train):
            continue
        scaler = StandardScaler().fit(x[train].astype(np.float64))
        for p in np.unique(problem[test]):
            mine, others = test[problem[test] == p], train[problem[train] == p]
            if len(labels := np.unique(label[others])) < 2:
                predicted[mine] = labels[0] if len(labels) else -1
                continue
            model = linear(classifier).fit(scaler.transform(x[others]), label[others])
            predicted[mine] = model.predict(scaler.transform(x[mine]))
    return predicted


def majority(label: np.ndarray, fold: np.ndarray, problem: np.ndarray) -> np.ndarray:
    """(n,) probability that the commonest label of the problem in the other folds is right; labels that tie share it.

    Where labels are balanced this is below chance: a row that is held out leaves its own label rarer in the others.
    """
    share = np.zeros(len(label))
    for k in np.unique(fold):
        for p in np.unique(problem[fold == k]):
            counts = np.bincount(label[(fold != k) & (problem == p)], minlength=int(label.max()) + 1)
            mine = np.flatnonzero((fold == k) & (problem == p))
            top = counts == counts.max()
            share[mine] = top[label[mine]] / top.sum() if counts.any() else 0.0
    return share


MOST = 5000
CONTROLS = 10  # tasks: accuracy on a single one differs by more than a text's interval


class Probe(TextMetric):
    """Accuracy of a linear probe for labels of words, less that of the same probe on a control task.

    `labels`: a kind of tags that the corpus has (`pos`), `sense`, or a TSV of word and label. One classifier tells the
    labels of all words; of senses, each word's tells its own. Cross-validated: what is told is of documents (sentences,
    where the corpus has none) that the classifier hasn't seen.

    `raw` is the accuracy, `baseline` that on the control task (Hewitt & Liang 2019, "Designing and Interpreting Probes
    with Control Tasks"): every spelling has a label drawn at random by the labels' own distribution, so that nothing
    but the word can be read; of senses, the word's labels in random order. It is the mean of `controls` such tasks.
    `adjusted`, their difference, is the selectivity. `held_out_words` is the accuracy on words of which the classifier
    saw no occurrence. Beside them, the same in each layer: `random`, the accuracy where each spelling has a random
    vector, which is what knowing the word gives (neither is of senses), and `majority`, that of the commonest label in
    the other folds. Intervals draw documents or sentences anew, those of `held_out_words` words, and control tasks;
    folds and classifiers are held.

    labels: a kind of tags that the data set has (pos; label of dataset=tagged), sense, or a TSV of word and label
    classifier: or ridge, which is quicker
    most: labelled words, a random sample of more; null: all
    controls: control tasks drawn, whose mean is the baseline and whose spread is in the interval
    """

    over = "corpus"
    title = "Linear probe"
    reading = Reading(unit="accuracy", own_baseline="the same probe on a control task")
    invariances = frozenset({"scale", "shift"})  # columns are standardised: a rotation counts

    def __init__(
        self,
        *,
        labels: str = "pos",
        classifier: Classifier = "logistic",
        folds: Annotated[int, Ge(2)] = 5,
        most: Annotated[int, Ge(1)] | None = MOST,
        controls: Annotated[int, Ge(2)] = CONTROLS,
        seed: int = 0,
    ) -> None:
        self.labels, self.classifier, self.folds, self.most, self.seed = labels, classifier, folds, most, seed
        self.controls = controls
        self.definition = f"accuracy of a linear probe for labels={labels}, less that on a control task"
        self._right: dict[str, np.ndarray] = {}
        self._by_control = np.empty(0)  # (controls,) accuracy

    def require(self, corpus: Corpus) -> None:
        require_labels(corpus, self.labels)
        if self.labels not in (*corpus.tags, SENSE):
            read_lexicon(user_path(self.labels))

    def take(self, text: Text, rows: np.ndarray, x: np.ndarray) -> None:
        task = self._task(text)
        x = x[0][np.searchsorted(rows[0], task.rows)]
        control = [
            predictions(x, label, fold, task.problem, self.classifier) == label
            for label, fold in zip(task.control, task.control_fold, strict=True)
        ]
        self._by_control = np.mean(control, axis=1)
        self._right = {
            "raw": predictions(x, task.label, task.fold, task.problem, self.classifier) == task.label,
            "baseline": np.mean(control, axis=0),
        }
        if task.is_one_problem:
            by_word = predictions(x, task.label, task.word_fold, task.problem, self.classifier)
            self._right["held_out_words"] = by_word == task.label
        self._right |= self._without_layers(text, task, x.shape[1])

    def compute(self) -> dict[str, float | Estimate]:
        if self._text is None or not self._right:
            return {"raw": float("nan")}
        task, clusters = self._task(self._text), self._text.occurrences.clusters
        rng, replicates = self.resampling
        resamples = Resamples(clusters, replicates, rng)
        blocks = clusters.of_row[task.rows]
        words = replace(clusters, n=int(task.word.max()) + 1)  # drawn in place of these clusters
        of_words = Resamples(words, replicates, rng)
        of_controls = Resamples.of_clusters(np.arange(self.controls), replicates, rng)
        influence = (self._by_control - self._by_control.mean()) / self.controls
        drawn = of_controls.of(Curve(np.zeros(1), influence[None]))[0]
        signs = {"baseline": 1, "adjusted": -1}  # of what a statistic moves by with its control tasks
        right = {**self._right, "adjusted": self._right["raw"].astype(np.float64) - self._right["baseline"]}
        statistics: dict[str, float | Estimate] = {}
        for name, scores in right.items():
            by_word = name == "held_out_words"
            where = task.word % words.n_blocks if by_word else blocks
            share = _mean(scores.astype(np.float64), where, (words if by_word else clusters).n_blocks)
            estimate = to_estimate(share, of_words if by_word else resamples)
            if name in signs and estimate.replicates is not None and replicates:
                estimate = Estimate.of(estimate.value, estimate.replicates + signs[name] * drawn)
            statistics[name] = estimate
        return statistics | {"n": float(len(task)), "words": float(words.n), "labels": float(len(task.names))}

    def _task(self, text: Text) -> ProbeTask:
        def make() -> ProbeTask:
            return probe_task(
                text, self.labels, folds=self.folds, most=self.most, controls=self.controls, seed=self.seed
            )

        return once(text, f"probe {self.labels} {self.folds} {self.most} {self.controls} {self.seed}", make)

    def _without_layers(self, text: Text, task: ProbeTask, dim: int) -> dict[str, np.ndarray]:
        """Whether each row's label is told without any layer: from a random vector a spelling, and by the majority."""

        def make() -> dict[str, np.ndarray]:
            right = {"majority": majority(task.label, task.fold, task.problem)}
            if task.is_one_problem:
                vectors = np.random.default_rng(self.seed).normal(size=(int(task.word.max()) + 1, dim))
                random = predictions(vectors[task.word], task.label, task.fold, task.problem, self.classifier)
                right["random"] = random == task.label
            return right

        key = f"probe {self.labels} {self.folds} {self.most} {self.seed} {self.classifier} {dim}"
        return once(text, key, make)


def _mean(scores: np.ndarray, blocks: np.ndarray, n_blocks: int) -> ValueWithInfluence:
    """The mean of scores (n,), and the influence of each block of clusters on it."""
    value = float(scores.mean())
    return ValueWithInfluence(value, np.bincount(blocks, (scores - value) / len(scores), minlength=n_blocks))
