"""Whether checkpoints lie on a training's path in the order that they claim.

A network moves away from where it was: of three checkpoints in order the outer two are the furthest apart. One that
breaks this with several others isn't what it is called. Wrong revisions have been published.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

TOLERANCE = 0.02  # of a distance: by how much the outer two may be nearer than one of the inner pairs


@dataclass(frozen=True)
class Misplaced:
    """A checkpoint by its place in the order (`at`), and the two places between which it would fit: -1 before the
    first, n behind the last, where another training's fit too; None: nowhere."""

    at: int
    between: tuple[int, int] | None


def distances(weights: list[np.ndarray]) -> np.ndarray:
    """(n, n) Euclidean distances of n checkpoints' weights, (m,) each."""
    out = np.zeros((len(weights), len(weights)))
    for i, j in combinations(range(len(weights)), 2):
        out[i, j] = out[j, i] = float(np.linalg.norm(weights[i].astype(np.float64) - weights[j]))
    return out


def misplaced(distance: np.ndarray) -> list[Misplaced]:
    """Checkpoints without which the others (n, n) are in order, those that break it most taken out first; and where
    each would fit."""
    left, out = list(range(len(distance))), []
    while any(blame := _blame(distance, left).values()):
        worst = left[int(np.argmax(list(blame)))]
        left.remove(worst)
        out.append(worst)
    return [Misplaced(i, _place(distance, left, i)) for i in sorted(out)]


def _blame(distance: np.ndarray, order: list[int]) -> dict[int, float]:
    """Of each checkpoint, in how many triples that are out of order it stands, each by how much it is."""
    blame = dict.fromkeys(order, 0.0)
    for i, j, k in combinations(order, 3):
        inner = max(distance[i, j], distance[j, k])
        if distance[i, k] < inner * (1 - TOLERANCE):
            for one in (i, j, k):
                blame[one] += 1 - float(distance[i, k] / inner)
    return blame


def _place(distance: np.ndarray, order: list[int], one: int) -> tuple[int, int] | None:
    """The two neighbours in the order between which a checkpoint breaks nothing, those that it is nearest to first."""
    fits = []
    for at in range(len(order) + 1):
        if not any(_blame(distance, [*order[:at], one, *order[at:]]).values()):
            around = order[max(at - 1, 0) : at + 1]
            fits.append((float(distance[one, around].sum()), at))
    if not fits:
        return None
    _, at = min(fits)
    return (order[at - 1] if at else -1, order[at] if at < len(order) else len(distance))
