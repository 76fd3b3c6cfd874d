"""The metrics."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_metrics(register: Register) -> None:
    register("anisotropy", "ctxexp.metrics.contextuality:Anisotropy")
    register("intra_sentence_similarity", "ctxexp.metrics.contextuality:IntraSentenceSimilarity")
    register("max_explainable_variance", "ctxexp.metrics.contextuality:MaxExplainableVariance")
    register("self_similarity", "ctxexp.metrics.contextuality:SelfSimilarity")
    register("sense_separation", "ctxexp.metrics.annotated:SenseSeparation")
    register("sts", "ctxexp.metrics.annotated:STS")
    register("word_norm", "ctxexp.metrics.contextuality:WordNorm")
