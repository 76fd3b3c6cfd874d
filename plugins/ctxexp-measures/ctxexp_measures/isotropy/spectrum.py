"""Measures of the covariance spectrum of all occurrences: IsoScore, effective rank, participation ratio."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

import ctxexp
from ctxexp import Block, Group, Reading
from ctxexp.maths import Moments, effective_rank, isoscore, participation_ratio

DIMENSIONS = Reading(
    unit="dimensions",
    subject="word vectors",
    lower="spread over fewer dimensions",
    higher="spread over more dimensions",
)


class Spectrum(ctxexp.Metric):
    """Base class of functions of the covariance of all occurrences. It accumulates their mean and scatter matrix
    (d, d), so that memory doesn't grow with the number of occurrences."""

    over = "occurrence"

    def __init__(self) -> None:
        self.moments = Moments()

    def update(self, group: Group) -> None:
        self.moments.add(group.x)

    def update_block(self, block: Block) -> None:
        self.moments.add(block.x.reshape(-1, block.x.shape[-1]))

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The statistics, from `moments`."""


class IsoScore(Spectrum):
    """IsoScore of all occurrences, in [0, 1] (Rudman et al. 2022, Algorithm 1).

    1: the covariance is a multiple of the identity; 0: one direction holds all variance. The paper normalises the
    variances v along the principal components to v' = sqrt(d) v / |v| and takes the defect |v' - 1| / sqrt(2 (d -
    sqrt d)); the score that it makes of the defect is (k - 1) / (d - 1) with k = (sum v)^2 / sum v^2 = tr(S)^2 /
    tr(S S), which needs no components. `dimensions` is k, the participation ratio: the variance is that of k dimensions
    used evenly. Invariant to shift, rotation and scale. With n occurrences a perfectly isotropic space reaches k =
    about d n / (d + n) only: take n well over d.
    """

    title = "IsoScore"
    reading = Reading(unit="isoscore", subject="word vectors", lower="less isotropic", higher="more isotropic")
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})
    definition = "IsoScore of all occurrences (Rudman et al. 2022)"

    def compute(self) -> dict[str, float]:
        """raw, in [0, 1]; dimensions, in [1, d]; n occurrences. NaN for equal vectors, and for d = 1."""
        s = self.moments.trace_one_covariance()
        return {"raw": isoscore(s), "dimensions": participation_ratio(s), "n": float(self.moments.n)}


class EffectiveRank(Spectrum):
    """Effective rank of the matrix of all occurrences, in [1, min(n, d)] (Roy & Vetterli 2007, Definition 1).

    exp of the entropy of the singular values divided by their sum; these are the roots of the eigenvalues of the second
    moments. Invariant to rotation and scale.

    centred: of the matrix about its mean row, so that a common direction doesn't count; false: of the vectors as they
        are
    """

    reading = DIMENSIONS

    def __init__(self, *, centred: bool = True) -> None:
        super().__init__()
        self.centred = centred
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"shift"} if centred else set()))
        self.definition = (
            f"effective rank of all occurrences{', mean removed' if centred else ''} (Roy & Vetterli 2007)"
        )

    def compute(self) -> dict[str, float]:
        """raw, n occurrences; NaN if all vectors are zero (equal, when centred)."""
        return {
            "raw": effective_rank(self.moments.trace_one_covariance(centred=self.centred)),
            "n": float(self.moments.n),
        }


class ParticipationRatio(Spectrum):
    """Participation ratio of all occurrences, in [1, d] dimensions (Gao et al. 2017, after Bell & Dean 1970).

    (sum l)^2 / sum l^2 over the eigenvalues l of the covariance matrix, which is tr(S)^2 / tr(S S) and needs no
    eigenvalue: k dimensions of equal variance give k. n occurrences of an isotropic d-dimensional space reach about
    d n / (d + n) only.

    centred: false takes the matrix about the origin, so that a common direction counts
    """

    reading = DIMENSIONS

    def __init__(self, *, centred: bool = True) -> None:
        super().__init__()
        self.centred = centred
        self.invariances = frozenset({"rotation", "scale", "permutation"} | ({"shift"} if centred else set()))
        about = "covariance spectrum" if centred else "spectrum about the origin"
        self.definition = f"participation ratio of the {about} of all occurrences (Gao et al. 2017)"

    def compute(self) -> dict[str, float]:
        """raw, in [1, d]; share, raw / d; n occurrences. NaN if all vectors are equal (zero, when not centred)."""
        s = self.moments.trace_one_covariance(centred=self.centred)
        ratio = participation_ratio(s)
        return {"raw": ratio, "share": ratio / len(s), "n": float(self.moments.n)}


class FirstComponent(Spectrum):
    """Share of a layer's variance along its first principal component, in [1/d, 1]: sigma_1^2 / sum sigma^2, centred.

    Some papers call this the anisotropy of a layer (Razzhigaev et al. 2024), as others call the mean cosine of
    occurrences, here of all pairs: `mean_cosine`. One can be large where the other is 0.
    """

    title = "Share of the first component"
    reading = Reading(
        unit="share of variance",
        subject="word vectors",
        lower="less ruled by one direction",
        higher="more ruled by one direction",
    )
    invariances = frozenset({"rotation", "scale", "permutation"})  # a shift changes mean_cosine
    definition = "first principal component's share of the variance of all occurrences"

    def compute(self) -> dict[str, float]:
        """raw; mean_cosine over all pairs of occurrences; n. NaN for equal vectors."""
        s = self.moments.trace_one_covariance()  # of which the eigenvalues are shares already
        share = float(np.linalg.eigvalsh(s)[-1]) if s.size and np.isfinite(s).all() else float("nan")
        return {"raw": share, "mean_cosine": self.moments.mean_cosine(), "n": float(self.moments.n)}
