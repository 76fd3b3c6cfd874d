"""`transform=weighted_removal`: the strongest directions damped, each by a weight of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from annotated_types import Ge

from ctxexp import Transform
from ctxexp.errors import ConfigError, TransformError
from ctxexp.maths import principal_directions


class WeightedRemoval(Transform):
    """Subtract the mean, and of each row's components along the top k principal directions the shares w_1 to w_k.

    `x - mean - sum_{i<=k} w_i (u_i . (x - mean)) u_i`, after the idea of Liang et al. 2021 (Learning to Remove), who
    **learn** the weights from word similarity data. The default weights here are not learned, but ctxexp's own:
    `w_i = s_i / s_1`, each direction's singular value over the first's, so that the first is removed entirely and the
    others as far as they dominate. Learned ones can be given as `weights`, one for each direction, from the strongest;
    with all of them at 1 this is `all_but_the_top`, whose default of k (`d / 100`, at least 1) it shares; with
    `weights` k is their number.

    Raises ConfigError for weights that aren't k, TransformError for a k of at least the
    number of columns.

    k: directions to damp; null: d / 100 rounded, at least 1, or the number of weights
    weights: the share of each direction that goes, from the strongest: [1.0, 0.8]; null: s_i / s_1
    """

    def __init__(self, k: Annotated[int, Ge(0)] | None = None, *, weights: Sequence[float] | None = None) -> None:
        self.k, self.given_weights = k, None
        if weights is not None:
            self.given_weights = np.asarray(weights, np.float64)
            if k not in (None, len(self.given_weights)):
                raise ConfigError(
                    f"{len(self.given_weights)} weights for k={k} directions; give one each, or leave k null"
                )
            self.k = len(self.given_weights)

    def fit(self, x: np.ndarray) -> Self:
        k = n_directions("k", self.k, x.shape[1], 100)
        self.mean, variances, directions = principal_directions(x)
        self.directions = directions[:, :k]  # (d, k)
        n = self.directions.shape[1]  # fewer than k where the rows have fewer directions
        weights = self.given_weights
        self.weights = np.sqrt(variances[:k] / variances[:1]) if weights is None else weights[:n]  # (n,)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, self._piece)

    def _piece(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = x - self.mean
        y -= ((y @ self.directions) * self.weights) @ self.directions.T
        return y


def n_directions(name: str, given: int | None, d: int, columns_each: int) -> int:
    """The number of directions to remove from d columns: `given`, else one for every `columns_each` columns (rounded,
    at least 1 where d allows it). Raises TransformError if that leaves nothing."""
    k = min(max(1, int(d / columns_each + 0.5)), d - 1) if given is None else given
    if k >= d > 0 and k > 0:
        raise TransformError(f"{name}={k} of {d} columns would leave nothing; choose {name} below {d}")
    return k
