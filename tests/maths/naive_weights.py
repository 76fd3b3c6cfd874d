"""Contextuality of uses with weights, pair by pair in dense arrays: what its influences are the derivative of."""

from __future__ import annotations

import numpy as np

from ctxexp.maths.contextuality import Uses


def weighted_contextuality(uses: Uses, u: np.ndarray, stratum: np.ndarray, weight: np.ndarray) -> float:
    """Of rows u (n, d) of norm 1 with these weights (n,), where forms weigh alike."""
    form, document = uses.form[:, None] == uses.form, uses.document[:, None] == uses.document
    between_words = uses.neighbours[:, None] == uses.neighbours
    total = np.bincount(uses.form, weight)[uses.form]  # of each use's form
    of_use = weight / total
    numerator = denominator = 0.0
    for one in np.unique(stratum):
        at = np.flatnonzero(stratum == one)
        here = np.ix_(at, at)
        product, w = (u @ u.T)[here], of_use[at]
        pairs = (form & ~document & ~between_words)[here] * w[:, None] * w
        if not pairs.any():
            continue
        others = (~form & ~document)[here] * w[:, None] * w
        places = (uses.place[at][:, None] == np.unique(uses.place[at])).astype(float)  # (uses, places)
        by_place = (places.T @ (others * product) @ places) / (places.T @ others @ places)
        own = (np.diag(by_place)[:, None] + np.diag(by_place)) / 2
        share = places.T @ pairs @ places / pairs.sum()
        alike = (pairs * product).sum() / pairs.sum() + (share * (own - by_place)).sum()
        numerator += w.sum() * (1 - alike)
        denominator += w.sum() * (1 - (share * own).sum())
    return float(numerator / denominator)
