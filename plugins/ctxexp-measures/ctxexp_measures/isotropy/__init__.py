"""How evenly a layer's vectors use their space: measures of later papers, each over all occurrences or a sample."""

from __future__ import annotations

import ctxexp
from ctxexp import Register
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


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("isoscore", IsoScore)
    register("effective_rank", EffectiveRank)
    register("participation_ratio", ParticipationRatio)
    register("partition_isotropy", PartitionIsotropy)
    register("rogue_dimensions", RogueDimensions)
    register("intrinsic_dimension", IntrinsicDimension)
    register("gride", Gride)
    register("cluster_adjusted_similarity", ClusterAdjustedSimilarity)
    register("first_component", FirstComponent)
    register("isoscore_star", IsoScoreStar)
    register("symmetry", Symmetry)
    register("matrix_entropy", MatrixEntropy)
    register("curvature", Curvature)
