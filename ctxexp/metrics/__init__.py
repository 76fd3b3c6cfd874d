"""The metrics, one per file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_metrics(register: Register) -> None:
    register("anisotropy", "ctxexp.metrics.anisotropy:Anisotropy")
    register("intra_sentence_similarity", "ctxexp.metrics.intra_sentence_similarity:IntraSentenceSimilarity")
    register("max_explainable_variance", "ctxexp.metrics.max_explainable_variance:MaxExplainableVariance")
    register("self_similarity", "ctxexp.metrics.self_similarity:SelfSimilarity")
    register("sense_separation", "ctxexp.metrics.sense_separation:SenseSeparation")
    register("sts", "ctxexp.metrics.sts:STS")
    register("word_norm", "ctxexp.metrics.word_norm:WordNorm")
