"""How evenly a layer's vectors use their space: measures of later papers, each over all occurrences or a sample."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("isoscore", "ctxexp_measures.isotropy.spectrum:IsoScore")
    register("effective_rank", "ctxexp_measures.isotropy.spectrum:EffectiveRank")
    register("participation_ratio", "ctxexp_measures.isotropy.spectrum:ParticipationRatio")
    register("rogue_dimensions", "ctxexp_measures.isotropy.sample:RogueDimensions")
    register("cluster_adjusted_similarity", "ctxexp_measures.isotropy.clusters:ClusterAdjustedSimilarity")
    register("first_component", "ctxexp_measures.isotropy.spectrum:FirstComponent")
    register("matrix_entropy", "ctxexp_measures.isotropy.sequence:MatrixEntropy")
    register("curvature", "ctxexp_measures.isotropy.sequence:Curvature")
