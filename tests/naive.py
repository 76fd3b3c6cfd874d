"""Measures of rows (n, d) from their definitions, by plain loops: what tests hold the quick ones against."""

from __future__ import annotations

import math
from itertools import combinations

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
