"""Seeded k-means on a bounded sample: the same centres whatever the order of the rows and however they are turned."""

from __future__ import annotations

import numpy as np

from ctxexp.transforms.center import CHUNK

SAMPLE = 10_000  # rows that centres are sought on
ROUNDS = 50  # of Lloyd's algorithm, at most


def kmeans(x: np.ndarray, origin: np.ndarray, k: int, seed: int, *, sample: int = SAMPLE) -> np.ndarray:
    """At most k centres (c, d) float64, as differences to `origin`, of the rows of x (n, d).

    k-means++ (Arthur and Vassilvitskii 2007) and Lloyd's algorithm, until no row changes its cluster, in at most 50
    rounds. Of more than `sample` rows as many are drawn. Rows are drawn by their place in the order of distance to the
    origin, so that the centres depend on the seed and on the rows as a set, up to rounding; a rotation turns them
    along. Fewer centres than k come back where there are fewer different rows.
    """
    rng = np.random.default_rng(seed)
    radius = np.concatenate([(_centred(x, origin, at) ** 2).sum(axis=1) for at in range(0, len(x), CHUNK)])
    order = np.argsort(radius, kind="stable")
    if len(order) > sample:
        order = order[np.sort(rng.choice(len(order), sample, replace=False))]
    drawn = np.empty((len(order), x.shape[1]), np.float32)
    for at in range(0, len(order), CHUNK):
        drawn[at : at + CHUNK] = x[order[at : at + CHUNK]] - origin
    centres = _spread(drawn, k, rng)
    labels = np.full(len(drawn), -1)
    for _ in range(ROUNDS):
        sums, counts, before = np.zeros_like(centres), np.zeros(len(centres)), labels.copy()
        for at in range(0, len(drawn), CHUNK):
            y = drawn[at : at + CHUNK].astype(np.float64)
            labels[at : at + CHUNK] = mine = nearest(y, centres)
            member = (mine == np.arange(len(centres))[:, None]).astype(np.float64)  # (c, rows)
            sums += member @ y
            counts += member.sum(axis=1)
        if np.array_equal(before, labels):
            break
        full = counts > 0  # a centre that lost its rows stays where it is
        centres[full] = sums[full] / counts[full, None]
    return centres


def nearest(y: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the nearest centre, (n,), of rows y (n, d) float64."""
    score = (centres**2).sum(axis=1) - 2 * (y @ centres.T)  # (n, c): squared distance less |y|^2
    label: np.ndarray = score.argmin(axis=1)
    return label


def _spread(drawn: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++'s first centres: each next one a row drawn in proportion to its squared distance to those before; of a
    few such draws the one that leaves the least (its authors' greedy variant)."""
    trials = 2 + int(np.log(k))
    chosen = [int(rng.random() * len(drawn))]
    square = _squares(drawn, chosen)[:, 0]  # (n,) to the nearest centre so far
    while len(chosen) < k and (total := np.cumsum(square))[-1] > 0:
        draws = np.searchsorted(total, rng.random(trials) * total[-1], side="right")
        draws = np.minimum(draws, len(drawn) - 1)
        left = np.minimum(_squares(drawn, draws), square[:, None])  # (n, trials)
        best = int(left.sum(axis=0).argmin())
        chosen.append(int(draws[best]))
        square = left[:, best]
    return drawn[chosen].astype(np.float64)


def _squares(drawn: np.ndarray, to: np.ndarray | list[int]) -> np.ndarray:
    """Squared distances (n, t) of the rows to the t rows numbered `to`; exactly 0 between equal ones."""
    centres = drawn[to].astype(np.float64)
    size = (centres**2).sum(axis=1)
    out = np.empty((len(drawn), len(centres)))
    for at in range(0, len(drawn), CHUNK):
        y = drawn[at : at + CHUNK].astype(np.float64)
        most = (y**2).sum(axis=1)[:, None] + size
        far = most - 2 * (y @ centres.T)
        out[at : at + CHUNK] = np.where(far > 1e-12 * most, far, 0.0)  # less is rounding
    return out


def _centred(x: np.ndarray, origin: np.ndarray, at: int) -> np.ndarray:
    result: np.ndarray = x[at : at + CHUNK] - origin
    return result
