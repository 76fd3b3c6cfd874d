"""How evenly a layer's vectors use their space: measures of later papers, each over all occurrences or a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ctxexp
from ctxexp import Register, lazy_names

if TYPE_CHECKING:
    from ctxexp_measures.isotropy.clusters import ClusterAdjustedSimilarity, mean_silhouette
    from ctxexp_measures.isotropy.generalized_ratios import Gride, gride
    from ctxexp_measures.isotropy.intrinsic import IntrinsicDimension, mle, neighbour_distances, two_nn
    from ctxexp_measures.isotropy.partition import PartitionIsotropy, log_partition_ratio
    from ctxexp_measures.isotropy.rogue import RogueDimensions, contributions
    from ctxexp_measures.isotropy.sequence import Curvature, MatrixEntropy
    from ctxexp_measures.isotropy.shrunk import IsoScoreStar, isoscore_star
    from ctxexp_measures.isotropy.spectrum import EffectiveRank, FirstComponent, IsoScore, ParticipationRatio, Spectrum
    from ctxexp_measures.isotropy.weighted import Symmetry, symmetry, zipfian_whitening

__all__ = [
    "ClusterAdjustedSimilarity",
    "Curvature",
    "EffectiveRank",
    "FirstComponent",
    "Gride",
    "IntrinsicDimension",
    "IsoScore",
    "IsoScoreStar",
    "MatrixEntropy",
    "ParticipationRatio",
    "PartitionIsotropy",
    "RogueDimensions",
    "Spectrum",
    "Symmetry",
    "contributions",
    "gride",
    "isoscore_star",
    "log_partition_ratio",
    "mean_silhouette",
    "mle",
    "neighbour_distances",
    "symmetry",
    "two_nn",
    "zipfian_whitening",
]

__getattr__ = lazy_names(__name__, __file__)


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("isoscore", "ctxexp_measures.isotropy.spectrum:IsoScore")
    register("effective_rank", "ctxexp_measures.isotropy.spectrum:EffectiveRank")
    register("participation_ratio", "ctxexp_measures.isotropy.spectrum:ParticipationRatio")
    register("partition_isotropy", "ctxexp_measures.isotropy.partition:PartitionIsotropy")
    register("rogue_dimensions", "ctxexp_measures.isotropy.rogue:RogueDimensions")
    register("intrinsic_dimension", "ctxexp_measures.isotropy.intrinsic:IntrinsicDimension")
    register("gride", "ctxexp_measures.isotropy.generalized_ratios:Gride")
    register("cluster_adjusted_similarity", "ctxexp_measures.isotropy.clusters:ClusterAdjustedSimilarity")
    register("first_component", "ctxexp_measures.isotropy.spectrum:FirstComponent")
    register("isoscore_star", "ctxexp_measures.isotropy.shrunk:IsoScoreStar")
    register("symmetry", "ctxexp_measures.isotropy.weighted:Symmetry")
    register("matrix_entropy", "ctxexp_measures.isotropy.sequence:MatrixEntropy")
    register("curvature", "ctxexp_measures.isotropy.sequence:Curvature")
