"""What is measured: one metric a file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_metrics(register: Register) -> None:
    from ctxexp.metrics.anisotropy import Anisotropy
    from ctxexp.metrics.intra_sentence_similarity import IntraSentenceSimilarity
    from ctxexp.metrics.max_explainable_variance import MaxExplainableVariance
    from ctxexp.metrics.self_similarity import SelfSimilarity
    from ctxexp.metrics.word_norm import WordNorm

    register("anisotropy", Anisotropy)
    register("intra_sentence_similarity", IntraSentenceSimilarity)
    register("max_explainable_variance", MaxExplainableVariance)
    register("self_similarity", SelfSimilarity)
    register("word_norm", WordNorm)
