"""Cross-validated predictions of linear classifiers (scikit-learn)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from ctxexp.errors import UnknownName

Classifier = Literal["logistic", "ridge"]


def check_classifier(name: str) -> None:
    """Raise UnknownName for a name of none."""
    if name not in get_args(Classifier):
        raise UnknownName("classifier", name, get_args(Classifier))


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
