"""Geometry of sentence vectors: how isotropic the space is in which pairs of sentences are compared."""

from __future__ import annotations

import hashlib

import numpy as np

from ctxexp import Group, Metric, Reading
from ctxexp.maths import Moments, effective_rank, isoscore, participation_ratio


class SentenceGeometry(Metric):
    """Mean cosine over all pairs of distinct sentences, in [-1, 1]: the anisotropy of the vectors that `sts` compares.

    Every sentence of the gold pairs counts once, whatever number of pairs it is in. Beside it, of the covariance of the
    same vectors: `isoscore` (Rudman et al. 2022), in [0, 1]; `participation_ratio`, in [1, d] dimensions;
    `effective_rank` (Roy and Vetterli 2007), in [1, d]; columns that are zero in every sentence (left by a transform
    that returns fewer) are no dimensions. `n` sentences, of which `zero_vectors` have no direction and no share in the
    mean cosine. Gold scores don't matter. Invariant to rotation and scale of the space, the three of the covariance
    to a shift too. With n sentences an even space of d dimensions reaches a participation ratio of about
    d n / (d + n).
    """

    over = "pair"
    title = "Geometry of sentence vectors"
    reading = Reading(
        unit="cosine", subject="unrelated sentences", lower="less alike", higher="more alike", main="mean_cosine"
    )
    definition: str = "mean cosine over all pairs of distinct sentences"

    def __init__(self) -> None:
        self._moments = Moments()
        self._seen: set[bytes] = set()  # of sentences, by text and vector

    def update(self, group: Group) -> None:
        pairs = group.gold_pairs()
        for end in (0, 1):
            side = group.x[:, end]
            # The vector is part of what is "the same", so that the order of sub-sets can never matter.
            new = [i for i, row in enumerate(side) if self._is_new(pairs.texts[i][end], row)]
            self._moments.add(side if len(new) == len(side) else side[new])

    def compute(self) -> dict[str, float]:
        moments = self._moments
        varying = moments.nonzero_columns()
        s = moments.trace_one_covariance()[np.ix_(varying, varying)]
        return {
            "mean_cosine": moments.mean_cosine(),
            "isoscore": isoscore(s),
            "participation_ratio": participation_ratio(s),
            "effective_rank": effective_rank(s),
            "n": float(moments.n),
            "zero_vectors": float(moments.n - moments.n_directed),
        }

    def _is_new(self, text: str, row: np.ndarray) -> bool:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
        key.update(np.ascontiguousarray(row).tobytes())
        before = len(self._seen)
        self._seen.add(key.digest())
        return len(self._seen) > before
