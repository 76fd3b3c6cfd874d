"""Measures of rows (n, d) from their definitions, by plain loops: what tests hold the quick ones against."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache, partial
from itertools import combinations, permutations

import numpy as np


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    lengths = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / lengths if lengths else math.nan


def cosines(x: np.ndarray) -> list[float]:
    """Of each pair of rows once."""
    return [cosine(a, b) for a, b in combinations(x.astype(np.float64), 2)]


def mean_cosine(x: np.ndarray) -> float:
    """NaN without a pair, and with a zero row."""
    return sum(cosines(x)) / math.comb(len(x), 2) if len(x) > 1 else math.nan


def cosine_to_mean(x: np.ndarray, *, unit_norm: bool = False) -> float:
    x = x.astype(np.float64)
    if unit_norm and not all(row.any() for row in x):
        return math.nan
    mean = np.mean([row / np.linalg.norm(row) for row in x], axis=0) if unit_norm else x.mean(0)
    return sum(cosine(mean, row) for row in x) / len(x)


def explained(x: np.ndarray, definition: str) -> float:
    x = x.astype(np.float64)
    centred = x - x.mean(0)
    if not (x if definition == "uncentred" else centred).any():
        return math.nan
    if definition == "released":  # TruncatedSVD(1).fit(x).explained_variance_ratio_[0]
        direction = np.linalg.svd(x, full_matrices=False)[2][0]
        return float(np.var(x @ direction) / np.var(x, axis=0).sum())
    sigma = np.linalg.svd(x if definition == "uncentred" else centred, compute_uv=False)
    return float(sigma[0] ** 2 / (sigma**2).sum())


def singular_values(x: np.ndarray, *, centred: bool = True) -> np.ndarray:
    x = x.astype(np.float64)
    return np.linalg.svd(x - x.mean(0) * centred, compute_uv=False)


def effective_rank(x: np.ndarray, *, centred: bool = True) -> float:
    """Roy & Vetterli 2007, Definition 1: of the singular values, not of their squares."""
    s = singular_values(x, centred=centred)
    return math.exp(-sum(p * math.log(p) for p in s / sum(s)))


def participation_ratio(x: np.ndarray, *, centred: bool = True) -> float:
    v = singular_values(x, centred=centred) ** 2
    return float(sum(v) ** 2 / sum(v**2))


def isoscore(x: np.ndarray) -> float:
    """Rudman et al. 2022, Algorithm 1, step by step."""
    x = x.astype(np.float64)
    _, _, components = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return isoscore_of_variances(np.diag(np.cov((x @ components.T).T)))  # 1-3: reorient, covariance, its diagonal


def isoscore_of_variances(variances: np.ndarray) -> float:
    """Its steps 4 to 7."""
    d = len(variances)
    normalised = np.sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalised - np.ones(d)) / np.sqrt(2 * (d - np.sqrt(d)))
    share = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * share - 1) / (d - 1))


def cut(x: np.ndarray, share: float = 0.05) -> np.ndarray:
    """The rows about their mean, directions that hold more than this share of the variance scaled down until each holds
    it of what is left; all alike where there are too few directions for that."""
    x = x.astype(np.float64) - x.mean(0, dtype=np.float64)
    variances, directions = np.linalg.eigh(x.T @ x / len(x))
    alive = variances > 1e-10 * variances[-1]
    after = np.where(alive, variances, 0)
    while after.max() > share * after.sum() * (1 + 1e-12) and alive.sum() * share > 1:
        after = np.minimum(after, share * after.sum())
    if alive.sum() * share <= 1:
        after = alive.astype(float)
    return x @ (directions * np.sqrt(after / np.where(alive, variances, 1))) @ directions.T  # type: ignore[no-any-return]


def stratum(place: int) -> int:
    """0 to 15 singly, then four an octave."""
    return place if place < 16 else 16 + math.floor(4 * math.log2(place / 16))


def contextuality(
    x: np.ndarray,
    word: np.ndarray,
    place: np.ndarray,
    document: np.ndarray,
    neighbours: np.ndarray,
    weights: np.ndarray,
    *,
    any_place: bool = False,
) -> float:
    """How far two uses of a word at one place lie apart, over how far those of two words do; mean over bands.

    A row of x (n, d) is a use of word (n,), -1: it counts in the scale alone; neighbours (n, 2) are the words beside
    it, any number standing for none. weights (bands, words). `any_place`: pairs whatever their places, as one stratum.
    """
    u = cut(x)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    distance = 1 - u @ u.T
    rows, words = np.flatnonzero(word >= 0).tolist(), sorted(set(word.tolist()) - {-1})
    places = place.tolist()
    strata = [0 if any_place else stratum(p) for p in places]
    uses: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in rows:
        uses[word[i], places[i]].append(i)

    def between(weight: np.ndarray, p: int, q: int) -> float:
        """The mean distance of different words in different documents, the one at place p, the other at q."""
        total = norm = 0.0
        for v, w in permutations(words, 2):
            pairs = [distance[i, j] for i in uses[v, p] for j in uses[w, q] if document[i] != document[j]]
            if pairs:
                total += weight[v] * weight[w] * sum(pairs) / len(pairs)
                norm += weight[v] * weight[w]
        return total / norm if norm else math.nan

    def of_band(weight: np.ndarray) -> float:
        b = cache(partial(between, weight))
        sums = np.zeros(2)
        for s in set(strata):
            means, weight_of_means = np.zeros(2), 0.0
            for w in words:
                pairs = []
                for i, j in combinations([i for i in rows if word[i] == w and strata[i] == s], 2):
                    if document[i] != document[j] and (neighbours[i] != neighbours[j]).any():
                        p, q = places[i], places[j]
                        other_words = (b(p, p) + b(q, q)) / 2
                        pairs.append((distance[i, j] - (b(p, q) - other_words), other_words))
                pairs = [pair for pair in pairs if not np.isnan(pair).any()]
                if pairs:
                    means += weight[w] * np.mean(pairs, axis=0)
                    weight_of_means += weight[w]
            if weight_of_means:
                sums += sum(weight[word[i]] for i in rows if strata[i] == s) * means / weight_of_means
        return float(sums[0] / sums[1])

    return float(np.mean([of_band(weight) for weight in weights]))
