"""Sense neighbours: how often a tagged word's nearest other occurrence has its sense."""

from __future__ import annotations

import numpy as np

from ctxexp import Block, GroupMean, Reading
from ctxexp.errors import MetricError


class SenseNeighbours(GroupMean):
    """Mean over words of the share of occurrences whose nearest other one, by cosine, has the same sense, in [0, 1].

    A word needs two senses with two or more occurrences each; senses with a single occurrence are left out. Of equally
    near ones the first counts.
    """

    over = "sense"
    title = "Sense of the nearest neighbour"
    reading = Reading(unit="accuracy")
    definition = "share of occurrences whose nearest other one has the same sense"
    invariances = frozenset({"rotation", "scale", "row_scale"})

    def score(self, x: np.ndarray) -> np.ndarray:
        """NaN: rows without labels have no senses."""
        return np.full(x.shape[:-2], np.nan)

    def baseline_value(self, x: np.ndarray) -> float:
        return float("nan")

    def update_block(self, block: Block) -> None:
        for group in block:
            if len(group.labels) != len(group.x):
                raise MetricError(
                    f"sense_neighbours: word {group.key!r} has {len(group.x)} rows and {len(group.labels)} labels; "
                    "expected one a row"
                )
            first, _, _ = neighbour_hits(group.x, np.array(group.labels))
            self._keep(Block.of(group), np.array([first.mean() if len(first) else np.nan]))

    def _row_influence(self, block: Block) -> np.ndarray:
        """Centred jackknife influence (w, n): a row that is left out takes its own answer with it, and those that it
        was nearest to answer by their second nearest."""
        return np.stack([_influence(group.x, np.array(group.labels)) for group in block])


def neighbour_hits(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the n rows whose label another row has: whether the nearest, and the second nearest other row, has the same
    label (n,), and the nearest's number among them (n,); empty unless two labels remain."""
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    kept = sizes[codes] > 1
    codes, x = codes[kept], x[kept].astype(np.float64)
    if len(np.unique(codes)) < 2:
        return np.empty(0), np.empty(0), np.empty(0, np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        u = x / np.sqrt(np.vecdot(x, x))[:, None]
    cosine = np.nan_to_num(u @ u.T, nan=-2.0)
    np.fill_diagonal(cosine, -np.inf)
    near = np.argsort(-cosine, axis=1, kind="stable")[:, :2]
    first, second = (codes[near] == codes[:, None]).astype(np.float64).T
    return first, second, near[:, 0]


def _influence(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    first, second, nearest = neighbour_hits(x, labels)
    n = len(first)
    if not n:
        return np.full(len(x), np.nan)
    left = (first.sum() - first + np.bincount(nearest, second - first, n)) / (n - 1)
    result = np.zeros(len(x))
    result[sizes[codes] > 1] = (left.mean() - left) * np.sqrt((n - 1) / n)
    return result
