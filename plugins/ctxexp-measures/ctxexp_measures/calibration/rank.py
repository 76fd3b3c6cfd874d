"""`transform=rank`: each vector's entries replaced by their ranks."""

from __future__ import annotations

from typing import Self

import numpy as np

from ctxexp import Transform

CHUNK_ROWS = 512  # rows that are ranked at a time: sorting takes several times the memory of what it sorts


class Rank(Transform):
    """Replace every entry by its rank in its row (ties share the mean of their ranks) minus the row's mean rank.

    The cosine of two rows is then **Spearman's correlation of the two vectors** over their columns, which Zhelezniak et
    al. 2019 (Correlation Coefficients and Semantic Textual Similarity) propose instead of the cosine: a few columns of
    extreme size no longer decide it. Rows take values in [-(d-1)/2, (d-1)/2]; a row of equal entries becomes 0. Nothing
    is fitted.
    """

    needs_fit = False

    def fit(self, x: np.ndarray) -> Self:
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, ranks, CHUNK_ROWS)


def ranks(x: np.ndarray) -> np.ndarray:
    """Ranks within each row of x (n, d), averaged over ties and centred, as (n, d) float32: exact multiples of 1/2."""
    from scipy.stats import rankdata

    if not x.size:
        return x.astype(np.float32)
    centred: np.ndarray = rankdata(x, axis=1) - (x.shape[1] + 1) / 2
    return centred.astype(np.float32)
