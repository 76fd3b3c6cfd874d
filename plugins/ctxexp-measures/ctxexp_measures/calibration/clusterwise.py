"""`transform=clusterwise`: in each cluster of the space its mean and its strongest directions removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np
from annotated_types import Ge

from ctxexp import Transform, maths
from ctxexp.errors import TransformError
from ctxexp.maths import principal_directions
from ctxexp_measures.calibration.weighted_removal import n_directions

CHUNK = 4096  # rows that are widened to float64 at a time
SAMPLE = 10_000  # rows that centres are sought on
ROUNDS = 50  # of Lloyd's algorithm, at most


def kmeans(x: np.ndarray, origin: np.ndarray, k: int, seed: int) -> np.ndarray:
    """At most k centres (c, d) float64, as differences to `origin`, of the rows of x (n, d).

    Of more than SAMPLE rows as many are drawn. Rows come in the order of their distance to the origin, so that the
    centres depend on the seed and on the rows as a set, up to rounding; a rotation turns them along. Fewer centres than
    k come back where there are fewer different rows.
    """
    rng = np.random.default_rng(seed)
    radius = np.concatenate([((x[at : at + CHUNK] - origin) ** 2).sum(axis=1) for at in range(0, len(x), CHUNK)])
    order = np.argsort(radius, kind="stable")
    if len(order) > SAMPLE:
        order = order[np.sort(rng.choice(len(order), SAMPLE, replace=False))]
    return maths.kmeans(x[order] - origin, k, seed=seed, rounds=ROUNDS)[1]


def nearest(y: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the nearest centre, (n,), of rows y (n, d) float64."""
    score = (centres**2).sum(axis=1) - 2 * (y @ centres.T)  # (n, c): squared distance less |y|^2
    return score.argmin(axis=1)


class Clusterwise(Transform):
    """Cluster the layer's rows; of each cluster remove the mean and the top `components` principal directions.

    Rajaee and Pilehvar 2021 (A Cluster-based Approach for Improving Isotropy in Contextual Embedding Space): Mu and
    Viswanath's removal, locally. Their released setting for BERT-base is 27 clusters and 12 directions of 768 columns;
    `components`, the number of directions removed, is `d / 64` rounded (12 of 768), at least 1, unless it is given. A
    row that was not in the fit is assigned to the cluster with the nearest centre. They transform token vectors and
    average those to sentences; here the rows that are measured are transformed themselves.

    Clusters are found by k-means, from `seed`. A cluster of fewer than `2 (components + 1)` rows is too small for its
    directions: it is dissolved, and its rows are assigned to the nearest that is left; if none is large enough, the
    whole layer is one cluster. `self.centres` are the centres of those that are left.

    Raises TransformError for fewer rows than one cluster needs and for
    `components` of at least the number of columns.

    clusters: of k-means; 27 is the authors' for BERT-base; clusters too small for their directions are dissolved
    components: directions to remove in each; null: d / 64 rounded (12 of 768, as theirs), at least 1
    seed: of k-means
    """

    def __init__(
        self, clusters: Annotated[int, Ge(1)] = 27, *, components: Annotated[int, Ge(0)] | None = None, seed: int = 0
    ) -> None:
        self.clusters, self.components, self.seed = clusters, components, seed

    def fit(self, x: np.ndarray) -> Self:
        d = x.shape[1]
        components = n_directions("components", self.components, d, 64)
        least = 2 * (components + 1)
        if len(x) < least:
            raise TransformError(
                f"{len(x)} rows are too few to remove {components} directions of a cluster; fit on at least {least}, "
                "or lower components"
            )
        first = x[0].astype(np.float64)  # clusters are found about the mean, where float64 loses nothing
        self.origin = first + sum((x[at : at + CHUNK] - first).sum(axis=0) for at in range(0, len(x), CHUNK)) / len(x)
        centres = kmeans(x, self.origin, self.clusters, self.seed)
        labels = self._labels(x, centres)
        sizes = np.bincount(labels, minlength=len(centres))
        if (sizes < least).any():
            centres = centres[sizes >= least] if (sizes >= least).any() else np.zeros((1, d))
            labels = self._labels(x, centres)
        self.centres = centres  # (c, d), about the origin
        self.means = np.empty_like(centres)  # (c, d)
        self.directions: list[np.ndarray] = []  # c of (d, components)
        for c in range(len(centres)):
            self.means[c], _, directions = principal_directions(x, np.flatnonzero(labels == c))
            self.directions.append(directions[:, :components])
        return self

    def record(self) -> dict[str, list[int]]:
        """How many clusters were large enough to keep."""
        return {"clusters": [len(self.centres)]}

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, self._piece)

    def _piece(self, x: np.ndarray) -> np.ndarray:
        y = np.empty(x.shape)
        for rows, c in self._clusters(nearest(x - self.origin, self.centres)):
            part = x[rows] - self.means[c]
            y[rows] = part - (part @ self.directions[c]) @ self.directions[c].T
        return y

    def _labels(self, x: np.ndarray, centres: np.ndarray) -> np.ndarray:
        pieces = [nearest(x[at : at + CHUNK] - self.origin, centres) for at in range(0, len(x), CHUNK)]
        return np.concatenate(pieces)

    @staticmethod
    def _clusters(labels: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """Each cluster that has rows, as (indices of its rows, its number)."""
        for c in np.unique(labels):
            yield np.flatnonzero(labels == c), int(c)
