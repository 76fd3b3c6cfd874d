"""The word and sentence geometry against the plain way to the same numbers, as ratios of CPU seconds on one thread.

`python benchmarks/geometry.py` makes up its rows, takes the least of alternating rounds of both sides, checks that they
agree, and prints plain / ours, and the memory that neighbours among many rows need.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  # after the number of threads
from ctxexp_measures.frequency.neighbours import nearest  # noqa: E402
from ctxexp_measures.words.directions import first_directions  # noqa: E402

from ctxexp.command import registry  # noqa: E402
from ctxexp.maths import resampled_spearman, resamples  # noqa: E402

Side = Callable[[], Any]


def static_vectors(rng: np.random.Generator, dim: int) -> tuple[Side, Side, float]:
    """First principal directions of words' occurrences, groups of one size at once, against an SVD a word."""
    groups = [rng.normal(0.5, 1, (200, n, dim)).astype(np.float32) for n in (5, 12, 40)] + [
        rng.normal(0.5, 1, (10, 500, dim)).astype(np.float32)
    ]

    def loop() -> np.ndarray:
        each = []
        for x in (x for block in groups for x in block):
            v = np.linalg.svd(x.astype(np.float64), full_matrices=False)[2][0]
            each.append(v if v @ x.mean(axis=0) > 0 else -v)
        return np.array(each)

    return lambda: np.concatenate([first_directions(x) for x in groups]), loop, 1e-6


def neighbours(rng: np.random.Generator, dim: int) -> tuple[Side, Side, float]:
    """Three measures' nearest of every row, exact, against scikit-learn's brute force, a search a measure."""
    from sklearn.neighbors import NearestNeighbors

    x = rng.normal(0.3, 1, (4000, dim)).astype(np.float32)

    def ours() -> np.ndarray:
        found = nearest(x, k=7)
        return np.stack([found["l2"].mean(7), 1 - found["cosine"].mean(7), found["dot"].mean(7)])

    def brute() -> np.ndarray:
        means = []
        for metric in ("euclidean", "cosine"):
            far = NearestNeighbors(n_neighbors=8, algorithm="brute", metric=metric).fit(x).kneighbors(x)[0]
            means.append(far[:, 1:].mean(axis=1))
        products = x @ x.T
        np.fill_diagonal(products, -np.inf)
        means.append(np.partition(products, -7, axis=1)[:, -7:].mean(axis=1))
        return np.stack(means)

    return ours, brute, 1e-3


def spearman_bootstrap(rng: np.random.Generator, _dim: int) -> tuple[Side, Side, float]:
    """500 resamples of 1,379 sentence pairs (the STS benchmark's test split), against scipy's function on each."""
    from scipy.stats import spearmanr

    gold = rng.integers(0, 26, 1379) / 5.0
    score = gold + rng.normal(size=len(gold))
    drawn = np.concatenate(list(resamples([len(gold)], 500, np.random.default_rng(1))))

    def ours() -> np.ndarray:
        steps = [resampled_spearman([gold, score], drawn[i : i + 100]) for i in range(0, len(drawn), 100)]
        return np.concatenate(steps)[:, 0, 1]

    def loop() -> np.ndarray:
        return np.array([spearmanr(np.repeat(gold, n), np.repeat(score, n))[0] for n in drawn.astype(int)])

    return ours, loop, 1e-9


def whitening(rng: np.random.Generator, dim: int) -> tuple[Side, Side, float]:
    """Fitting and applying, against the SVD of the centred rows, as a plain implementation takes it."""
    whiten = registry().find("transform", "whitening").factory
    x = (rng.normal(size=(4 * dim, dim)) @ np.diag(np.geomspace(1, 30, dim))).astype(np.float32)
    among = rng.integers(0, len(x), (2, 200))

    def cosines(y: np.ndarray) -> np.ndarray:
        u = y / np.linalg.norm(y, axis=1, keepdims=True)
        return np.vecdot(u[among[0]], u[among[1]])

    def plain() -> np.ndarray:
        rows = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        return cosines(rows @ (vt.T / s))

    return lambda: cosines(whiten().fit(x).apply(x)), plain, 1e-4


BENCHES = {
    "static vectors / SVD a word": static_vectors,
    "neighbours / scikit-learn, brute": neighbours,
    "Spearman resamples / scipy, a loop": spearman_bootstrap,
    "whitening / SVD of all rows": whitening,
}


def clocked(side: Side) -> tuple[float, np.ndarray]:
    began = time.process_time()
    result = side()
    return time.process_time() - began, result


def memory(rows: int, dim: int) -> float:
    """MB of arrays held at most beside the rows, in a search of some of them among all."""
    x = np.random.default_rng(0).standard_normal((rows, dim), dtype=np.float32)
    tracemalloc.start()
    nearest(x, k=7, queries=np.arange(2000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=30_000, help="of the neighbours whose memory is measured")
    asked = parser.parse_args()
    print(f"{'':36s} ours, CPU s   plain / ours   largest difference")
    for name, make in BENCHES.items():
        ours, plain, within = make(np.random.default_rng(0), asked.dim)
        least, results = {}, {}
        for _ in range(asked.rounds):
            for side, call in (("ours", ours), ("plain", plain)):
                seconds, results[side] = clocked(call)
                least[side] = min(seconds, least.get(side, seconds))
        differs = float(np.abs(results["ours"] - results["plain"]).max())
        if not differs <= within:
            raise SystemExit(f"{name}: the two sides differ by {differs:.1e}, more than {within:.0e}")
        print(f"{name:36s} {least['ours']:11.3f} {least['plain'] / least['ours']:14.1f} {differs:20.1e}")
    held = memory(asked.rows, asked.dim)
    table = asked.rows**2 * 4 / 2**20
    print(f"neighbours among {asked.rows:,} rows: {held:,.0f} MB beside the rows; all products: {table:,.0f} MB")


if __name__ == "__main__":
    main()
