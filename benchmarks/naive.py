"""Measuring the way the released code of Ethayarajh 2019 does, word by word and pair by pair, to time it.

Per word and layer: list every ordered pair of occurrences, draw at most 1,000 of them, one cosine each in Python
(self-similarity); a full singular value decomposition of the occurrence matrix and one of the centred matrix (maximum
explainable variance). Per sentence and layer: the mean vector, one cosine a word. `double_loop` is the definition
without sampling: a cosine for every pair. Vectors are in memory here; the released code also fetches each from HDF5.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import numpy as np

from ctxexp import Occurrences


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def self_similarity(x: np.ndarray) -> float:
    pairs = [(i, j) for i, j in itertools.product(range(len(x)), repeat=2) if i != j]
    chosen = random.sample(pairs, min(1000, len(pairs)))
    return float(np.mean([cosine(x[i], x[j]) for i, j in chosen]))


def double_loop(x: np.ndarray) -> float:
    n = len(x)
    return sum(cosine(x[i], x[j]) for i in range(n) for j in range(n) if i != j) / (n * n - n)


def explained_variance(x: np.ndarray) -> tuple[float, float]:
    shares = []
    for rows in (x, x - x.mean(axis=0)):
        sigma = np.linalg.svd(rows, compute_uv=False)
        shares.append(float(sigma[0] ** 2 / (sigma**2).sum()))
    return shares[0], shares[1]


def intra_sentence_similarity(x: np.ndarray) -> float:
    mean = x.mean(axis=0)
    return float(np.mean([cosine(mean, row) for row in x]))


def seconds(
    f: Callable[[np.ndarray], object],
    layer: np.ndarray,
    occurrences: Occurrences,
    kind: str,
    *,
    order: float,
    most: int,
    budget: float,
) -> float:
    """CPU seconds of `f` over one layer's groups of a kind (word, sentence), from a sample in each band of sizes.

    A band (sizes within a factor of 1.5) is timed on up to five of its groups. Groups of more than `most` rows are not
    run: their time grows from the last band's as n to the power `order`. `budget`: about how many seconds the sample
    may take.
    """
    rng = np.random.default_rng(0)
    groups = occurrences.groups(kind)
    counts = groups.counts
    edges = np.unique(np.round(2 * 1.5 ** np.arange(0, 40)).astype(int))
    band = np.searchsorted(edges, counts, side="right")
    total, last, spent = 0.0, (0.0, 1.0), 0.0
    used = np.unique(band)
    for b in used.tolist():
        members = np.flatnonzero(band == b)
        runnable = members[counts[members] <= most]
        took = []
        for g in rng.permutation(runnable)[:5]:
            x = layer[groups.rows[groups.starts[g] : groups.starts[g + 1]]]
            if len(x) < 2:
                continue
            began = time.process_time()
            f(x)
            took.append((time.process_time() - began, len(x)))
            spent += took[-1][0]
            if spent > budget * (b + 1) / (used[-1] + 1):
                break
        if took:
            last = (float(np.mean([t for t, _ in took])), float(np.mean([n for _, n in took])))
        total += sum(last[0] * (n / last[1]) ** order for n in counts[members].tolist())
    return total
