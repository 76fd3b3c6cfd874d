"""What is measured: one metric a file."""

from __future__ import annotations

from ctxexp.metrics.anisotropy import Anisotropy
from ctxexp.metrics.degeneration import Degeneration
from ctxexp.metrics.edit_distance import EditDistance
from ctxexp.metrics.frequency.metric import FrequencyGeometry
from ctxexp.metrics.intra_sentence_similarity import IntraSentenceSimilarity
from ctxexp.metrics.max_explainable_variance import MaxExplainableVariance
from ctxexp.metrics.qnli import QNLI
from ctxexp.metrics.self_similarity import SelfSimilarity
from ctxexp.metrics.sense_separation import SenseSeparation
from ctxexp.metrics.sentence_geometry import SentenceGeometry
from ctxexp.metrics.sts import STS
from ctxexp.metrics.word_norm import WordNorm
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_metrics(register: Register) -> None:
    register("anisotropy", Anisotropy)
    register("degeneration", Degeneration)
    register("edit_distance", EditDistance)
    register("frequency_geometry", FrequencyGeometry)
    register("intra_sentence_similarity", IntraSentenceSimilarity)
    register("max_explainable_variance", MaxExplainableVariance)
    register("qnli", QNLI)
    register("self_similarity", SelfSimilarity)
    register("sense_separation", SenseSeparation)
    register("sentence_geometry", SentenceGeometry)
    register("sts", STS)
    register("word_norm", WordNorm)
