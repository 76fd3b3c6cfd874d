"""Families of tasks, such as retrieval and STS, within which a layer's scores go together: the unit that an interval
over tasks draws anew.

The variance of a mean over tasks is what it is for independent tasks times a design effect (Kish 1965). Of few families
a single comparison's is known badly, so the effect is taken as one for all comparisons of layers and estimated from all
of them together; its degrees of freedom are those of families times those of comparisons (Satterthwaite 1946).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

TYPES = {  # of MTEB's tasks by their names, and of `ctxexp layer`'s own
    "STS": r"STS.*|SICK-R|BIOSSES",
    "pair classification": r".*PairClassification|SprintDuplicateQuestions|TwitterSemEval2015|TwitterURLCorpus",
    "classification": r".*Classification",
    "clustering": r".*Clustering(S2S|P2P)?(\.v2)?",
    "reranking": r".*(Reranking|DupQuestions)|SciDocsRR",
    "retrieval": r".*Retrieval|ArguAna|ClimateFEVER|DBPedia|FEVER|FiQA2018|HotpotQA|MSMARCO|NFCorpus|NQ|QuoraRetrieval"
    r"|SCIDOCS|SciFact|Touche2020|TRECCOVID",
    "summarization": r"SummEval.*",
    "word senses": r"WiC|SemCor",
}
CORRELATION = 0.3  # mean over pairs, from which on tasks are one family; coverage decided: benchmarks/layer_choice.py
MIN_LAYERS = 5  # below, single tasks go together by chance


class DesignEffect(NamedTuple):
    """By how much a variance over tasks is larger than that of independent ones, at the least 1, and the degrees of
    freedom of the variance with it."""

    factor: float
    df: float


def families_by_name(tasks: Sequence[str]) -> tuple[str, ...]:
    """The type of each task by its name; empty unless all are known.

    Example:
        >>> families_by_name(["STSBenchmark", "SICK-R", "EmotionClassification"])
        ('STS', 'STS', 'classification')
    """
    found = [next((kind for kind, names in TYPES.items() if re.fullmatch(names, task)), "") for task in tasks]
    return tuple(found) if all(found) else ()


def families_by_correlation(scores: np.ndarray) -> tuple[str, ...]:
    """Numbers of families whose scores (tasks, layers), less the means of task and layer, correlate by CORRELATION or
    more in the mean over pairs (average linkage); empty where there are too few layers, or no two tasks go together."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    x = centre(scores)
    if x.shape[1] < MIN_LAYERS or not (np.abs(x).max(axis=1) > 0).all():
        return ()
    number = fcluster(linkage(pdist(x, "correlation"), "average"), 1 - CORRELATION, "distance")
    n_families = len(np.unique(number))
    return tuple(map(str, number.tolist())) if 1 < n_families < len(x) else ()


def design_effect(scores: np.ndarray, families: Sequence[str], *, of_level: bool = False) -> DesignEffect:
    """The design effect of comparisons of layers, or of the scores themselves.

    Args:
        scores: (tasks, layers) finite.
        families: Of each task its family's name, two of them or more; empty: tasks are independent.
        of_level: Whether it is that of the mean over tasks and layers.

    Returns:
        The effect on a variance that counts each task for one; of independent tasks 1, a degree of freedom fewer than
        tasks.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.normal(size=(4, 10))[[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]  # three times the same
        >>> round(design_effect(scores, list("aaabbbcccddd")).factor, 1)
        3.7
    """
    n = len(scores)
    _, number = np.unique(np.array(families or range(n)), return_inverse=True)
    size = np.bincount(number)
    if len(size) == n:
        return DesignEffect(1.0, n - 1)
    x = scores - scores.mean(axis=0)
    x = x.mean(axis=1, keepdims=True) if of_level else centre(scores)
    sums = np.zeros((len(size), x.shape[1]))
    np.add.at(sums, number, x)
    single = x.T @ x / (n - 1) / n
    share, df = _sandwich(size)
    factor = np.square(sums).sum() / n**2 / share / np.trace(single)
    comparisons = np.trace(single) ** 2 / np.square(single).sum()
    return DesignEffect(max(1.0, float(factor)), float(1 / (1 / (n - 1) + 1 / (df * comparisons))))


def _sandwich(size: np.ndarray) -> tuple[float, float]:
    """What squares of families' sums about the mean of all hold of its variance, and their degrees of freedom (1 - 1/G
    and G - 1 of G equal families): the lesser where tasks of a family are one, and where they are independent."""
    weight = size / size.sum()
    residual = np.eye(len(size)) - weight
    form = residual.T @ np.diag(weight**2) @ residual
    found = []
    for spread in (np.ones(len(size)), 1 / size):
        own = form * np.sqrt(np.outer(spread, spread))
        found.append((np.trace(own) / (weight**2 @ spread), np.trace(own) ** 2 / np.square(own).sum()))
    return min(share for share, _ in found), min(df for _, df in found)


def centre(scores: np.ndarray) -> np.ndarray:
    """Scores (tasks, layers) less the mean of each task and of each layer."""
    x = scores - scores.mean(axis=0)
    return x - x.mean(axis=1, keepdims=True)
