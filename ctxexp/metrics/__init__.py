"""The metrics, one per file."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_metrics(register: Register) -> None:
    register("anisotropy", "ctxexp.metrics.contextuality:Anisotropy")
    register("intra_sentence_similarity", "ctxexp.metrics.contextuality:IntraSentenceSimilarity")
    register("max_explainable_variance", "ctxexp.metrics.contextuality:MaxExplainableVariance")
    register("self_similarity", "ctxexp.metrics.contextuality:SelfSimilarity")
    register("sense_separation", "ctxexp.metrics.sense_separation:SenseSeparation")
    register("sts", "ctxexp.metrics.similarity:STS")
    register("word_norm", "ctxexp.metrics.contextuality:WordNorm")
