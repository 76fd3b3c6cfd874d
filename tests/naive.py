"""Measures of rows (n, d) from their definitions, by plain loops: what tests hold the quick ones against."""

from __future__ import annotations

import math
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
    return x @ (directions * np.sqrt(after / np.where(alive, variances, 1))) @ directions.T


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
    shares: np.ndarray,
    *,
    all_places: bool = False,
) -> float:
    """How far two uses of a word at one place lie apart, over how far those of two words do; mean over bands.

    A row of x (n, d) is a use of word (n,) between the neighbours (n,), equal for equal ones; a word of n uses has
    weights (bands, words) / n^2 a pair, and shares (bands, words) / n a use. `all_places`: they are one stratum.
    """
    u = cut(x)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    distance, rows = 1 - u @ u.T, range(len(x))
    places, strata = place.tolist(), [0 if all_places else stratum(p) for p in place.tolist()]
    uses = np.maximum(np.bincount(word, minlength=weights.shape[1]), 1)

    def between(share: np.ndarray, p: int, q: int) -> float:
        """The mean distance of different words in different documents, the one at place p, the other at q."""
        total = weight = 0.0
        for i, j in permutations(rows, 2):
            if (places[i], places[j]) == (p, q) and word[i] != word[j] and document[i] != document[j]:
                total += share[i] * share[j] * distance[i, j]
                weight += share[i] * share[j]
        return total / weight

    def of_band(of_word: np.ndarray, share_of_word: np.ndarray) -> float:
        share = (share_of_word / uses)[word]
        b = cache(partial(between, share))
        sums = np.zeros(2)
        for s in set(strata):
            total, weight = np.zeros(2), 0.0
            inside = [i for i in rows if strata[i] == s]
            for i, j in combinations(inside, 2):
                if word[i] == word[j] and document[i] != document[j] and neighbours[i] != neighbours[j]:
                    p, q, of_pair = places[i], places[j], of_word[word[i]] / uses[word[i]] ** 2
                    other_words = (b(p, p) + b(q, q)) / 2
                    total += of_pair * np.array([distance[i, j] - (b(p, q) - other_words), other_words])
                    weight += of_pair
            if weight:
                sums += share[inside].sum() * total / weight
        return float(sums[0] / sums[1])

    return float(np.mean([of_band(*band) for band in zip(weights, shares, strict=True)]))
