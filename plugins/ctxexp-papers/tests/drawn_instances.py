"""Instances, drawn here, of what follows from definitions: how often a statement comes out as it says, by case.

A theorem, or a claim on a measure, is tried on drawn vectors and distributions. That is no evidence on any model, and
says that the statement is stated rightly and under which conditions, which the papers' files name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from ctxexp_measures.isotropy.clusters import mean_silhouette

from ctxexp.command import registry
from ctxexp.maths import isoscore, mean_cosine, spearman

MARGIN = 0.05  # what a difference must be at the least to be one
Case = Mapping[str, bool]
Instance = Callable[[np.random.Generator], Case]


def counts(paper: str, id: str) -> dict[str, tuple[int, int]]:
    """In how many instances a statement is as it says, and of how many, by case."""
    draw, n = INSTANCES[f"{paper}/{id}"]
    rng = np.random.default_rng([0, 12, len(id)])
    rows = [draw(rng) for _ in range(n)]
    return {case: (sum(row[case] for row in rows), n) for case in rows[0]}


def massive_row(rng: np.random.Generator) -> np.ndarray:
    """Rows of which the first is up to a thousand times as long as the others."""
    n, d = [(8, 4), (12, 30)][rng.integers(2)]
    x = rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.2, 2.0, d)) + rng.normal(size=d)
    x[0] *= 10 ** rng.uniform(0, 3)
    return x


def shares_of(x: np.ndarray) -> np.ndarray:
    """Squared singular values of rows (n, d) as shares of their sum, descending."""
    squares = np.linalg.svd(x, compute_uv=False) ** 2
    return np.asarray(squares / squares.sum())


def least_share(x: np.ndarray) -> float:
    """(c + a) / (c + 1): what the first row alone makes of the first singular value's share."""
    size, others = float(x[0] @ x[0]), x[1:]
    rest = float((others**2).sum())
    along = float(((others @ x[0]) ** 2).sum() / size / rest)
    return (size / rest + along) / (size / rest + 1)


def most_entropy(p: float, rank: int) -> float:
    """The largest entropy of `rank` shares of which one is at least p >= 1 / rank."""
    return entropy_of(np.array([p, *np.full(rank - 1, (1 - p) / (rank - 1))]))


def entropy_of(p: np.ndarray) -> float:
    """- sum p log p, in nats."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def one_direction(rng: np.random.Generator) -> Case:
    x = massive_row(rng)
    return {"": bool(shares_of(x)[0] >= least_share(x) - 1e-9)}


def entropy_bound(rng: np.random.Generator) -> Case:
    x = massive_row(rng)
    rank = min(x.shape)
    return {"": entropy_of(shares_of(x)) <= most_entropy(max(least_share(x), 1 / rank), rank) + 1e-9}


def no_isotropy(rng: np.random.Generator) -> Case:
    """Clouds whose isotropy is known by their making: an even one that is shifted, and an uneven one."""
    d = int(rng.choice([10, 50]))
    even = rng.normal(size=(5000, d))
    uneven = even * np.geomspace(1, 10, d)
    misled = abs(float(mean_cosine(uneven))) < MARGIN and isoscore(np.cov(uneven, rowvar=False)) < 0.5
    return {"even, shifted": float(mean_cosine(even + 10)) > MARGIN, "uneven, centred": misled}


def clusters(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Clusters 20 standard deviations from the middle of 20 dimensions, (n, d), and their labels, by case."""
    axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    found = {}
    for case, means in (("three clusters", axes[:3]), ("at both ends of every axis", np.concatenate([axes, -axes]))):
        labels = rng.integers(0, len(means), 1000)
        found[case] = 20 * means[labels] + rng.normal(size=(1000, 20)), labels
    return found


def excludes_clusters(rng: np.random.Generator) -> Case:
    drawn = clusters(rng).items()
    return {c: isoscore(np.cov(x, rowvar=False)) < 0.9 and mean_silhouette(x, of) > 0.5 for c, (x, of) in drawn}


def costs_clusters(rng: np.random.Generator) -> Case:
    found = {}
    for case, (x, labels) in clusters(rng).items():
        values, directions = np.linalg.eigh(np.cov(x, rowvar=False))
        white = (x - x.mean(axis=0)) @ directions / np.sqrt(values)
        found[case] = mean_silhouette(x, labels) - mean_silhouette(white, labels) > MARGIN
    return found


def scale_inflates(rng: np.random.Generator) -> Case:
    by_width, by_depth = noise_similarities(rng)
    return {"width": bool((np.diff(by_width[0]) > 0).all()), "depth": bool((np.diff(by_depth[0]) > 0).all())}


def noise_similarities(rng: np.random.Generator) -> list[tuple[list[float], list[float]]]:
    """Similarity of independent noise, and of the same with rows exchanged: linear CKA by width, and the largest share
    of mutual neighbours of any two layers by depth."""
    from ctxexp_compare import MutualNeighbours, Sample

    rows = 100
    width = ([], [])
    for d in (16, 64, 256):
        x, y = rng.normal(size=(2, rows, d))
        width[0].append(biased_cka(x, y))
        width[1].append(float(np.mean([biased_cka(x, y[rng.permutation(rows)]) for _ in range(5)])))
    measure, sample = MutualNeighbours(), Sample(np.arange(rows))
    sides = [[measure.prepare_side(x, sample) for x in rng.normal(size=(9, rows, 16))] for _ in range(3)]
    depth = ([], [])
    for n in (1, 3, 9):
        for values, other in zip(depth, sides[1:], strict=True):  # noise is its own exchange
            values.append(max(measure.score(a, b).value for a in sides[0][:n] for b in other[:n]))
    return [width, depth]


def biased_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA as most papers take it, with the biased estimate of HSIC (Kornblith et al. 2019)."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def rogue_space(rng: np.random.Generator, *, wide: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of vectors (2 pairs, d) whose similarity (pairs,) is known by their making, in all dimensions or in the
    wide half; and the same space with one to three dimensions more, which carry nothing and lie far from the origin."""
    d, n = int(rng.choice([50, 200])), 500
    carries = np.arange(d) < (d // 2 if wide else d)
    similarity = rng.uniform(0, 1, n)
    one, other = rng.normal(size=(2, n, d))
    like = similarity[:, None] * one + np.sqrt(1 - similarity[:, None] ** 2) * other
    clean = np.concatenate([one, np.where(carries, like, other)]) * np.where(carries, 1.0, 0.2)
    k = int(rng.integers(1, 4))
    mean = rng.uniform(1, 3, k) * rng.choice([-1, 1], k)
    rogue = np.sqrt(d) * (mean + rng.uniform(0.3, 1, k) * rng.normal(size=(2 * n, k)))
    return similarity, clean, np.concatenate([clean, rogue], axis=1)


def ranked(x: np.ndarray, similarity: np.ndarray) -> float:
    """Spearman's rho of the cosines of rows by twos with a similarity that is known."""
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    n = len(similarity)
    return spearman(np.vecdot(u[:n], u[n:]), similarity)


def standardised(x: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def standardising_corrects(rng: np.random.Generator) -> Case:
    found = {}
    for case in ("similarity in all dimensions", "in the wide ones"):
        similarity, clean, x = rogue_space(rng, wide=case == "in the wide ones")
        rho = ranked(standardised(x), similarity)
        scaled = ranked(x * np.exp(rng.normal(size=x.shape[1])), similarity)
        metric = registry().find("metric", "rogue_dimensions").factory()
        is_rogue = metric.values(x)["top_3"] > 0.5 and clean.shape[1] < x.shape[1]
        found[case] = is_rogue and min(rho - ranked(x, similarity), rho - scaled) > MARGIN
    return found


def standardising_reveals(rng: np.random.Generator) -> Case:
    found = {}
    for case in ("similarity in all dimensions", "in the wide ones"):
        similarity, clean, x = rogue_space(rng, wide=case == "in the wide ones")
        found[case] = abs(ranked(clean, similarity) - ranked(standardised(x), similarity)) < MARGIN
    return found


INSTANCES: dict[str, tuple[Instance, int]] = {
    "groeger_2026/scale-inflates": (scale_inflates, 16),
    "mickus_2024/isotropy-costs-clusters": (costs_clusters, 8),
    "mickus_2024/isotropy-excludes-clusters": (excludes_clusters, 8),
    "queipo_2025/entropy-bound": (entropy_bound, 60),
    "queipo_2025/one-direction": (one_direction, 60),
    "rudman_2022/cosine-is-no-isotropy": (no_isotropy, 12),
    "timkey_2021/standardising-corrects": (standardising_corrects, 12),
    "timkey_2021/standardising-reveals": (standardising_reveals, 12),
}
